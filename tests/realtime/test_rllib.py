"""RLlib's PPO pauses games in real time while it updates, and late samples are reported.

One program runs all trainings. The first test that needs the program's report starts the program.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from sc2pool.errors import SampleTimeoutError
from sc2pool.realtime.sample_timeout import Discards, Fragment, check_fragment
from tests.support.on_ray import TIMEOUT_S, Report, report_of

TRAININGS = Path(__file__).parent / "programs" / "rllib_trainings.py"
UPDATE_S = 0.5


@pytest.fixture(scope="module")
def report(python_with_ray: str, freezing: Path) -> Report:
    """A function that returns the report of the trainings. Its first call runs the trainings."""
    return report_of(python_with_ray, TRAININGS, freezing)


@pytest.mark.standin("its games do not catch up after a pause")
@pytest.mark.timeout(TIMEOUT_S + 30)
@pytest.mark.parametrize(
    ("envs", "games", "counted"),
    [
        ("in this process", 1, 1),  # the last pause is not counted, because it has not ended
        ("in another process", 2, 2),
    ],
)
def test_no_loop_passes_in_updates(report, envs, games, counted):
    result = report()[envs]
    assert result["games in updates"] == [["stopped"] * games] * 4, "before and after each of two"
    assert result["steps"] == 16 * games, "four fragments, one update after two of them"
    assert result["pause"]["loops_passed"] == 0
    assert result["pause"]["paused_s"] >= counted * UPDATE_S


@pytest.mark.timeout(TIMEOUT_S + 30)
def test_a_single_game_is_paused_by_its_key(report):
    result = report()["single game"]
    assert result["updates"] == 2
    assert result["paused"], "until its next step"
    assert result["pause"]["loops_passed"] == 0
    assert result["pause"]["paused_s"] >= UPDATE_S
    assert result["ended"], "with the algorithm"


@pytest.mark.standin("its games do not catch up after a pause")
@pytest.mark.timeout(TIMEOUT_S + 30)
@pytest.mark.parametrize("mode", ["vector_entry_point", "async"])
def test_no_loop_passes_between_samples_of_vectorised_games(report, mode):
    result = report()[mode]
    assert result["games"] == [["stopped"] * 2] * 2
    assert result["pause"]["loops_passed"] == 0
    assert result["pause"]["paused_s"] >= 2 * UPDATE_S


@pytest.mark.standin("its games do not catch up after a pause")
@pytest.mark.timeout(TIMEOUT_S + 30)
def test_a_fragment_longer_than_the_timeout_is_an_error_before_the_first_step(report):
    error = report()["too long a fragment"]
    assert error["type"] == "SampleTimeoutError"
    assert error["text"].startswith(
        "50 steps in each of 1 envs, with step_mul 4 at 22.4 game loops a second, take at least "
        "8.9 s, but RLlib discards samples that are not complete after sample_timeout_s=5.0; "
        "expected at most 27 steps"
    )
    assert report()["games in the end"] == []


@pytest.mark.standin("its games do not catch up after a pause")
@pytest.mark.timeout(TIMEOUT_S + 30)
def test_late_samples_alone_are_an_error_within_the_iteration(report):
    error = report()["in another process"]["too slow"]
    assert error["type"] == "SampleTimeoutError"
    assert error["text"].startswith(
        "RLlib has discarded 1 samples that came after sample_timeout_s=5.0"
    )


@pytest.mark.standin("its games do not catch up after a pause")
@pytest.mark.timeout(TIMEOUT_S + 30)
def test_another_kind_of_env_is_a_config_error_before_the_first_step(report):
    error = report()["another env"]
    assert error["type"] == "ConfigError"
    assert error["text"] == (
        "RLlibPauseCallback needs SC2GymEnvs, an SC2VectorEnv or envs with a pause method, "
        "such as PausableEnv(env, PauseGate(pid)), got SyncVectorEnv(CartPole-v1, num_envs=1)"
    )


@pytest.mark.standin("its games do not catch up after a pause")
@pytest.mark.timeout(TIMEOUT_S + 30)
def test_the_example(report):
    first, second = report()["example"].splitlines()
    assert first.startswith("iteration 0: ")
    assert second.startswith("iteration 1: ")
    assert " 8 steps, " in first
    assert " 16 steps, " in second
    assert "paused for 0.0 s" not in second
    assert second.endswith("in which 0 game loops passed")


SAMPLE_TIMEOUT_S = 60.0
"""RLlib's default timeout in seconds, in which a game plays 1,344 loops."""


@pytest.mark.parametrize(("longest", "step_mul"), [(167, 8), (1343, 1), (9, 140)])
def test_the_longest_fragment_within_the_timeout(longest, step_mul):
    check_fragment(Fragment(longest, 1, step_mul), SAMPLE_TIMEOUT_S)
    with pytest.raises(SampleTimeoutError, match=f"expected at most {longest} steps"):
        check_fragment(Fragment(longest + 1, 1, step_mul), SAMPLE_TIMEOUT_S)
    check_fragment(Fragment(longest + 1, 1, step_mul), None)  # no timeout


def test_the_error_names_the_fragment_and_the_timeout():
    message = (
        "500 steps in each of 8 envs, with step_mul 8 at 22.4 game loops a second, take at least "
        r"178\.6 s, but RLlib discards samples that are not complete after sample_timeout_s=60\.0"
    )
    with pytest.raises(SampleTimeoutError, match=message):
        check_fragment(Fragment(500, 8, 8), SAMPLE_TIMEOUT_S)


def test_two_training_steps_without_data_in_a_row_are_an_error(caplog):
    discards = Discards()
    discards.after_training_step(0, 100, SAMPLE_TIMEOUT_S)
    assert not caplog.records
    discards.after_training_step(1, 100, SAMPLE_TIMEOUT_S)
    discards.after_training_step(1, 200, SAMPLE_TIMEOUT_S)  # the game was replaced
    discards.after_training_step(2, 200, SAMPLE_TIMEOUT_S)
    assert len(caplog.records) == 2
    with pytest.raises(SampleTimeoutError, match="discarded 1 samples that came after"):
        discards.after_training_step(3, 200, SAMPLE_TIMEOUT_S)


def test_discards_are_only_logged_if_other_env_runners_were_in_time(caplog):
    discards = Discards()
    for training_step in range(1, 5):
        discards.after_training_step(2 * training_step, 100 * training_step, SAMPLE_TIMEOUT_S)
    message = "RLlib has discarded 2 samples that came after sample_timeout_s=60.0"
    assert [record.getMessage() for record in caplog.records] == [message] * 4


def test_training_steps_without_data_and_without_discards_are_ignored():
    discards = Discards()
    for _ in range(3):
        discards.after_training_step(0, 0, SAMPLE_TIMEOUT_S)
