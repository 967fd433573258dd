"""Games in real time are paused while RLlib's PPO updates; late samples are reported.

A program runs all trainings once, started by the first test that needs its report.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.on_ray import TIMEOUT_S, Report, report_of

TRAININGS = Path(__file__).parent / "programs" / "rllib_trainings.py"
UPDATE_S = 0.5

pytestmark = [
    pytest.mark.standin("its games do not catch up after a pause"),
    pytest.mark.timeout(TIMEOUT_S + 30),
]


@pytest.fixture(scope="module")
def report(python_with_ray: str, freezing: Path) -> Report:
    """Returns the report of the trainings, and runs them at the first call."""
    return report_of(python_with_ray, TRAININGS, freezing)


def test_no_loop_passes_in_updates_with_envs_in_the_algorithms_process(report):
    result = report()["in this process"]
    assert result["games in updates"] == [["stopped"]] * 4, "before and after each of two updates"
    assert result["steps"] == 16, "four fragments, one update after two of them"
    assert result["pause"]["loops_passed"] == 0
    assert result["pause"]["paused_s"] >= UPDATE_S, (
        "the last pause has not ended and does not count"
    )


def test_no_loop_passes_in_updates_with_an_env_runner_process(report):
    result = report()["in another process"]
    assert result["games in updates"] == [["stopped"] * 2] * 4
    assert result["steps"] == 32
    assert result["pause"]["loops_passed"] == 0
    assert result["pause"]["paused_s"] >= 2 * UPDATE_S


@pytest.mark.parametrize("mode", ["vector_entry_point", "async"])
def test_no_loop_passes_between_samples_of_vectorised_games(report, mode):
    result = report()[mode]
    assert result["games"] == [["stopped"] * 2] * 2
    assert result["pause"]["loops_passed"] == 0
    assert result["pause"]["paused_s"] >= 2 * UPDATE_S


def test_a_fragment_longer_than_the_timeout_is_an_error_before_the_first_step(report):
    error = report()["too long a fragment"]
    assert error["type"] == "SampleTimeoutError"
    assert error["text"].startswith(
        "50 steps in each of 1 envs, with step_mul 4 at 22.4 game loops a second, take at least "
        "8.9 s, but RLlib discards samples that are not complete after sample_timeout_s=5.0; "
        "expected at most 27 steps"
    )
    assert report()["games in the end"] == []


def test_late_samples_alone_are_an_error_within_the_iteration(report):
    error = report()["in another process"]["too slow"]
    assert error["type"] == "SampleTimeoutError"
    assert error["text"].startswith(
        "RLlib has discarded 1 samples that came after sample_timeout_s=5.0"
    )


def test_another_kind_of_env_is_a_config_error_before_the_first_step(report):
    error = report()["another env"]
    assert error["type"] == "ConfigError"
    assert error["text"] == (
        "RLlibPauseCallback needs SC2GymEnvs or an SC2VectorEnv, "
        "got SyncVectorEnv(CartPole-v1, num_envs=1)"
    )


def test_the_example(report):
    first, second = report()["example"].splitlines()
    assert first.startswith("iteration 0: ")
    assert second.startswith("iteration 1: ")
    assert " 8 steps, " in first
    assert " 16 steps, " in second
    assert "paused for 0.0 s" not in second
    assert second.endswith("in which 0 game loops passed")
