"""Fragments that take longer than RLlib waits, and the samples it discards for that."""

from __future__ import annotations

import pytest

from sc2pool.errors import SampleTimeoutError
from sc2pool.realtime.sample_timeout import Discards, Fragment, check_fragment

TIMEOUT_S = 60.0
"""RLlib's default: 1,344 game loops."""


def test_games_of_an_env_runner_play_in_parallel():
    assert Fragment(steps=4000 // 8, envs=8, step_mul=8).minimum_s == pytest.approx(
        178.57, abs=0.01
    )


@pytest.mark.parametrize(("longest", "step_mul"), [(167, 8), (1343, 1), (9, 140)])
def test_the_longest_fragment_within_the_timeout(longest, step_mul):
    check_fragment(Fragment(longest, 1, step_mul), TIMEOUT_S)
    with pytest.raises(SampleTimeoutError, match=f"expected at most {longest} steps"):
        check_fragment(Fragment(longest + 1, 1, step_mul), TIMEOUT_S)


def test_without_timeout_any_fragment_is_allowed():
    check_fragment(Fragment(10**6, 1, 8), None)


def test_the_error_names_the_fragment_and_the_timeout():
    message = (
        "500 steps in each of 8 envs, with step_mul 8 at 22.4 game loops a second, take at least "
        r"178\.6 s, but RLlib discards samples that are not complete after sample_timeout_s=60\.0"
    )
    with pytest.raises(SampleTimeoutError, match=message):
        check_fragment(Fragment(500, 8, 8), TIMEOUT_S)


def test_two_training_steps_without_data_in_a_row_are_an_error(caplog):
    discards = Discards()
    discards.after_training_step(0, 100, TIMEOUT_S)
    assert not caplog.records
    discards.after_training_step(1, 100, TIMEOUT_S)
    discards.after_training_step(1, 200, TIMEOUT_S)  # the game has been replaced
    discards.after_training_step(2, 200, TIMEOUT_S)
    assert len(caplog.records) == 2
    with pytest.raises(SampleTimeoutError, match="discarded 1 samples that came after"):
        discards.after_training_step(3, 200, TIMEOUT_S)


def test_discards_are_only_logged_if_other_env_runners_were_in_time(caplog):
    discards = Discards()
    for training_step in range(1, 5):
        discards.after_training_step(2 * training_step, 100 * training_step, TIMEOUT_S)
    message = "RLlib has discarded 2 samples that came after sample_timeout_s=60.0"
    assert [record.getMessage() for record in caplog.records] == [message] * 4


def test_training_steps_without_data_and_without_discards_are_ignored():
    discards = Discards()
    for _ in range(3):
        discards.after_training_step(0, 0, TIMEOUT_S)
