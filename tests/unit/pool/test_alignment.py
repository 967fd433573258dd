"""Which games are put off so that all are due together."""

from __future__ import annotations

import pytest

from sc2pool.pool.alignment import Alignment

PACE = 10.0
"""Loops a second."""


@pytest.fixture
def phases() -> Alignment:
    return Alignment(PACE)


def test_who_is_always_early_is_put_off_by_the_whole_loops(phases):
    for _ in range(3):
        assert phases.delay() is None, "one batch says nothing, nor do two"
        phases.note([0.0, 0.25, 0.15])
    assert phases.delay() == [0, 2, 1]
    assert phases.delay() is None, "once"


def test_a_slow_answer_moves_nobody(phases):
    phases.note([0.0, 0.3])
    phases.note([0.0, 0.0])
    phases.note([0.3, 0.0])
    assert phases.delay() is None


def test_a_slow_policy_is_late_for_all(phases):
    for _ in range(3):
        phases.note([0.5, 0.5])
    assert phases.delay() is None


def test_what_was_before_an_episode_counts_for_nothing(phases):
    for _ in range(2):
        phases.note([0.0, 0.3])
    phases.forget()
    phases.note([0.0, 0.3])
    assert phases.delay() is None
