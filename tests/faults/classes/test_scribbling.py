"""What is handed out is the trainer's own: whatever it writes there, what comes later is true."""

from __future__ import annotations

import json

import pytest
from tested import TESTED

from tests.tiers import is_long

TRANSITIONS = 20_000 if is_long() else 150
TIMEOUT_S = 2400.0 if is_long() else 240.0


@pytest.mark.timeout(TIMEOUT_S + 60)
@pytest.mark.parametrize("name", TESTED)
def test_every_last_observation_is_true(name, run_with, standin_dir, monkeypatch):
    monkeypatch.setenv("SC2PATH", str(standin_dir))
    done = run_with("scribbling.py", name, TRANSITIONS, timeout_s=TIMEOUT_S)
    assert done.returncode == 0, done.stderr[-3000:]
    assert all(played["faults"] > 0 for played in json.loads(done.stdout))
