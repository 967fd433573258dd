"""The network between two nodes is cut, and mended some seconds later."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.ray.conftest import only_long
from tests.support.on_ray import TIMEOUT_S

PROGRAM = Path(__file__).with_name("network_cases.py")

pytestmark = [
    only_long,
    pytest.mark.skipif(
        os.geteuid() != 0 or shutil.which("ip") is None, reason="needs root and iproute2"
    ),
    pytest.mark.standin("only its games are known by their folder"),
    pytest.mark.timeout(TIMEOUT_S),
]


def test_a_cut_is_one_truncation_and_no_game_outlives_it(run_on_ray, standin_dir, monkeypatch):
    for name, value in {"timeout_ms": 3000, "period_ms": 1000, "failure_threshold": 3}.items():
        monkeypatch.setenv(f"RAY_health_check_{name}", str(value))
    found = run_on_ray(PROGRAM, standin_dir)()
    assert found["nodes"] == 2
    assert found["kinds"] == [None, "node-lost"]
    assert found["dones"] == [False, True]
    assert found["rewards"][1] == 0
    assert not any(map(any, found["then"]))
    assert found["gone_s"] >= 0, "the games of the node that was cut off end when it is back"
    assert found["left"] >= 0
