"""What is handed out is the trainer's own: whatever it writes there, what comes later is true."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from every_class import LIBRARIES
from tested import TESTED

from tests.tiers import is_long

PROGRAM = Path(__file__).with_name("scribbling.py")
TRANSITIONS = 20_000 if is_long() else 150
TIMEOUT_S = 2400.0 if is_long() else 240.0


@pytest.mark.timeout(TIMEOUT_S + 60)
@pytest.mark.parametrize("name", TESTED)
def test_every_last_observation_is_true(
    name: str, python_with: Callable[[str], str], standin_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SC2PATH", str(standin_dir))
    python = python_with(LIBRARIES[name]) if LIBRARIES[name] else sys.executable
    done = subprocess.run(
        [python, PROGRAM, name, str(TRANSITIONS)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert all(played["faults"] > 0 for played in json.loads(done.stdout))
