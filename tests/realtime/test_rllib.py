"""RLlib's PPO learns while games in real time stand still; what comes too late is told of.

The trainings are a program's, run once by whichever test comes first.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

TRAININGS = Path(__file__).parent / "rllib_trainings.py"
TRAININGS_TIMEOUT_S = 300.0
UPDATE_S = 0.5

pytestmark = [
    pytest.mark.standin("its games go on where they were stopped"),
    pytest.mark.timeout(TRAININGS_TIMEOUT_S + 30),
]


@pytest.fixture(scope="module")
def report(python_with_ray: str, freezing: Path) -> Callable[[], dict[str, Any]]:
    """Runs the trainings, unless they were, and returns what they have told."""

    @cache
    def run() -> dict[str, Any]:
        # Ray's sockets are called after its folder, and a socket's name has 107 bytes at most.
        folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")
        written = Path(folder, "report.json")
        try:
            subprocess.run(
                [python_with_ray, TRAININGS, freezing, folder, written],
                env=os.environ
                | {
                    "HOME": folder,  # where RLlib logs
                    "RAY_AUTH_MODE": "disabled",
                    "RAY_USAGE_STATS_ENABLED": "0",
                },
                stdin=subprocess.DEVNULL,
                timeout=TRAININGS_TIMEOUT_S,
                check=True,
            )
            return dict(json.loads(written.read_text()))
        finally:
            shutil.rmtree(folder)

    return run


def test_in_the_algorithms_process_nothing_is_missed(report):
    told = report()["in this process"]
    assert told["games in updates"] == [["stopped"]] * 4, "before and after each of two updates"
    assert told["steps"] == 16, "four fragments, one update after two of them"
    assert told["pause"]["loops_passed"] == 0
    assert told["pause"]["paused_s"] >= UPDATE_S, "the pause that is not over does not count"


def test_nor_in_an_env_runners_own_process(report):
    told = report()["in another process"]
    assert told["games in updates"] == [["stopped"] * 2] * 4
    assert told["steps"] == 32
    assert told["pause"]["loops_passed"] == 0
    assert told["pause"]["paused_s"] >= 2 * UPDATE_S


@pytest.mark.parametrize("mode", ["vector_entry_point", "async"])
def test_nor_with_games_that_are_stepped_together(report, mode):
    told = report()[mode]
    assert told["games"] == [["stopped"] * 2] * 2
    assert told["pause"]["loops_passed"] == 0
    assert told["pause"]["paused_s"] >= 2 * UPDATE_S


def test_a_fragment_that_cannot_be_in_time_is_told_at_once(report):
    kind, told = report()["too long a fragment"]
    assert kind == "SampleTimeoutError"
    assert told.startswith(
        "50 steps in each of 1 envs, with step_mul 4 at 22.4 game loops a second, take at least "
        "8.9 s, but RLlib discards samples that are not complete after sample_timeout_s=5.0; "
        "expected at most 27 steps"
    )
    assert report()["games in the end"] == []


def test_samples_that_were_all_late_are_told_of_within_the_iteration(report):
    kind, told = report()["in another process"]["too slow"]
    assert kind == "SampleTimeoutError"
    assert told.startswith("RLlib has discarded 1 samples that came after sample_timeout_s=5.0")


def test_another_env_is_told_at_once(report):
    assert report()["another env"] == [
        "ConfigError",
        "PauseBetweenSamples needs SC2GymEnvs or an SC2VectorEnv, "
        "got SyncVectorEnv(CartPole-v1, num_envs=1)",
    ]


def test_the_example(report):
    first, second = report()["example"].splitlines()
    assert first.startswith("iteration 0: 8 steps, ")
    assert second.startswith("iteration 1: 16 steps, ")
    assert "paused for 0.0 s" not in second
    assert second.endswith("in which 0 game loops passed")
