"""Which games are delayed so that all are due together."""

from __future__ import annotations

import pytest

from sc2pool.pool.stepping.alignment import Alignment

PACE = 10.0
"""Loops a second."""


@pytest.fixture
def alignment() -> Alignment:
    return Alignment(PACE)


def test_an_env_that_is_always_early_is_delayed_by_whole_loops(alignment):
    for _ in range(3):
        assert alignment.delays_loops() is None, "one batch says nothing, nor do two"
        alignment.note([0.0, 0.25, 0.15])
    assert alignment.delays_loops() == [0, 2, 1]
    assert alignment.delays_loops() is None, "once"


def test_one_slow_answer_delays_no_env(alignment):
    alignment.note([0.0, 0.3])
    alignment.note([0.0, 0.0])
    alignment.note([0.3, 0.0])
    assert alignment.delays_loops() is None


def test_a_slow_policy_is_late_for_all(alignment):
    for _ in range(3):
        alignment.note([0.5, 0.5])
    assert alignment.delays_loops() is None


def test_gaps_before_an_episode_do_not_count(alignment):
    for _ in range(2):
        alignment.note([0.0, 0.3])
    alignment.note(None)
    alignment.note([0.0, 0.3])
    assert alignment.delays_loops() is None
