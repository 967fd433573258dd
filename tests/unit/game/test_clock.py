"""Tests when an action is due, and how late it came. No test reads a clock: all times are given."""

from __future__ import annotations

import math

import pytest

from sc2pool.game.clock import ElasticClock, LoopTimer, Tick, loops_passed

PACE = 10.0
"""Loops per second: a loop lasts 0.1 s."""
PERIOD = 4


@pytest.fixture
def clock() -> ElasticClock:
    clock = ElasticClock(PACE)
    clock.begin(100, 50.0)
    return clock


def step(clock: ElasticClock, at_s: float, loop: int) -> Tick:
    """Act at a time, and observe this loop at the first moment at which it can have been played."""
    clock.act(PERIOD, at_s)
    return clock.observe(loop, max(at_s, 50.0 + (loop - 100) / PACE))


@pytest.mark.parametrize(
    ("at_s", "loop", "lost", "following"),
    [
        pytest.param(50.1, 104, (0, 0), 108, id="in time"),
        pytest.param(50.1, 105, (0, 0), 108, id="the game's answer is a loop too late"),
        pytest.param(50.1, 102, (0, 0), 108, id="the game ends before the loop that is due"),
        pytest.param(50.6, 106, (1, 0), 108, id="late by less than a period: the grid stays"),
        pytest.param(50.7, 107, (1, 0), 108, id="one loop less than a whole period"),
        pytest.param(50.7, 108, (2, 4), 112, id="a whole period"),
    ],
)
def test_an_action_and_the_loop_that_follows(clock, at_s, loop, lost, following):
    assert step(clock, at_s, loop) == Tick(pytest.approx(at_s - 50.0), *lost)
    assert clock.act(PERIOD, max(at_s, 50.4)) == following


def test_a_period_overrun_moves_the_grid_and_counts(clock):
    assert step(clock, 51.3, 113) == Tick(pytest.approx(1.3), 3, 9)
    assert clock.act(PERIOD, 51.3) == 117
    assert clock.observe(117, 51.7) == Tick(pytest.approx(0.0), 0, 0)


def test_a_pause_is_no_delay(clock):
    clock.pause(50.1)
    clock.resume(60.1)
    clock.pause(60.2)
    clock.resume(70.2)
    clock.act(PERIOD, 70.3)
    assert clock.observe(104, 70.4) == Tick(pytest.approx(0.3), 0, 0)
    clock.act(PERIOD, 70.5)
    assert clock.observe(108, 70.8).gap_s == pytest.approx(0.1), "and is counted once"


def test_loops_that_pass_in_a_pause_are_lost(clock):
    clock.pause(50.1)
    clock.resume(52.1)
    clock.note_loop(122)
    assert clock.act(PERIOD, 52.2) == 126, "the action gets a whole period"
    assert clock.observe(126, 52.6) == Tick(pytest.approx(0.2), 5, 22)
    assert clock.act(PERIOD, 52.7) == 130
    assert clock.observe(130, 53.0) == Tick(pytest.approx(0.1), 0, 0), "and it is counted once"


def test_current_loop_within_the_period_moves_nothing(clock):
    clock.note_loop(103)
    assert clock.act(PERIOD, 50.3) == 104
    assert clock.observe(104, 50.4) == Tick(pytest.approx(0.3), 0, 0)


def test_late_twice(clock):
    clock.note_loop(104)
    assert clock.act(PERIOD, 50.4) == 108
    assert clock.observe(112, 51.2) == Tick(pytest.approx(0.4), 3, 8)
    assert clock.act(PERIOD, 51.2) == 116


def test_an_episode_begun_in_a_pause_knows_nothing_of_it(clock):
    clock.pause(50.1)
    clock.begin(0, 60.0)
    clock.resume(61.0)
    clock.act(PERIOD, 60.2)
    assert clock.observe(4, 60.4) == Tick(pytest.approx(0.2), 0, 0)


def test_a_game_that_is_delayed_has_one_longer_period(clock):
    clock.delay(2)
    assert clock.act(PERIOD, 50.1) == 106
    assert clock.observe(106, 50.6) == Tick(pytest.approx(0.1), 0, 2)
    assert clock.act(PERIOD, 50.7) == 110, "once"
    assert clock.observe(110, 51.0) == Tick(pytest.approx(0.1), 0, 0)


@pytest.mark.parametrize(
    ("before", "after", "ran_s", "expected"),
    [
        (100, 100, 0.001, 0),
        (100, 101, 0.001, 0),  # loop 100 was nearly over when `ran_s` began
        (100, 102, 0.001, 2),
        (100, 102, 0.050, 0),  # the game had time to play both loops
        (100, 122, 0.010, 22),
    ],
)
def test_loops_passed(before, after, ran_s, expected):
    assert loops_passed(before, after, ran_s) == expected


class Played:
    """A game in real time that begins at 20 s, and is observed at times that a timer predicts."""

    def __init__(self, loops_per_s: float = PACE) -> None:
        self.timer = LoopTimer(PACE)
        self.now_s = 20.33
        self.looks = 0
        self._begun_s, self._loops_per_s = 20.0, loops_per_s

    def loop(self) -> int:
        return int((self.now_s - self._begun_s) * self._loops_per_s + 1e-9)

    def look(self) -> int:
        """Observe the game; a reply takes 0.2 ms."""
        self.looks += 1
        asked_s, self.now_s = self.now_s, self.now_s + 0.0002
        loop = self.loop()
        self.timer.note(loop, asked_s, self.now_s)
        return loop

    def late_at(self, due: int) -> float:
        """Observe until the game has played this loop; returns how many seconds late that was."""
        while True:
            self.now_s = max(self.now_s, self.timer.due_s(due))
            if self.look() >= due:
                return self.now_s - self._begun_s - due / self._loops_per_s

    def stop(self, seconds: float) -> None:
        """Stop the game for a while, after which it continues with the same loop."""
        self.now_s += seconds
        self._begun_s += seconds


class TestLoopTimer:
    def test_nothing_known_is_due_at_once(self):
        assert LoopTimer(PACE).due_s(7) == -math.inf

    def test_it_finds_the_beginning_of_loops_in_a_few_looks(self):
        game = Played()
        game.look()
        lateness_s = [game.late_at(due) for due in range(10, 200, 4)]
        assert max(lateness_s) < 1 / PACE
        assert max(lateness_s[8:]) < 0.004
        assert game.looks < 1.3 * len(lateness_s)

    @pytest.mark.parametrize("pace", [0.999, 1.001, 0.9])
    def test_it_follows_a_game_whose_clock_is_another(self, pace):
        game = Played(pace * PACE)
        game.look()
        lateness_s = [game.late_at(due) for due in range(10, 400, 4)]
        assert max(lateness_s[8:]) < 0.5 / PACE
        assert game.looks < 10 * len(lateness_s)

    def test_a_game_that_stood_still_is_found_again(self):
        game = Played()
        game.look()
        game.late_at(10)
        game.stop(3.3)
        assert game.late_at(14) < 1 / PACE
        for due in range(18, 60, 4):
            lateness_s = game.late_at(due)
        assert lateness_s < 0.004

    def test_what_is_forgotten_is_due_at_once(self):
        game = Played()
        game.look()
        game.timer.forget()
        assert game.timer.due_s(1000) == -math.inf
