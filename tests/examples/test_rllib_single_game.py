"""RLlib's PPO on one live game. `PauseGate` with RLlib is tested in `tests/realtime`."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.support.on_ray import environment_for_ray
from tests.support.programs import run

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(
    shutil.which("supertux2", path="/usr/games:/usr/bin") is None, reason="no SuperTux"
)
def test_an_iteration_on_supertux(python_with_ray):
    with environment_for_ray() as environment:
        done = run(
            *(python_with_ray, "-m", "examples.rllib_single_game", "--iterations", "1"),
            cwd=ROOT,
            env=environment | {"PYTHONPATH": str(ROOT)},
            timeout_s=500,
        )
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(
        r"iteration 0: 256 steps, mean return -?[\d.]+, paused for 0\.0 s, "
        r"\d+ periods missed, \d+ deaths, \d+ of them without an action\n",
        done.stdout,
    )
