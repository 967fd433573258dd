"""CPU time for a loop, compared with the first episodes."""

from __future__ import annotations

import pytest

from sc2pool.game.loop_count import LoopCost, LoopCount


class Playing:
    """A game whose loops cost what is asked for."""

    def __init__(self) -> None:
        self.cost = LoopCost()
        self._cpu_s, self._loops, self._now_s = 3.0, 0, 0.0

    def play(self, episodes: int, s_per_loop: float, loops: int = 1000) -> float | None:
        for _ in range(episodes):
            self._now_s += 1.0
            self._cpu_s += s_per_loop * loops
            self._loops += loops
            self.cost.count_episode()
            if self.cost.is_due(self._now_s):
                self.cost.note(self._cpu_s, self._loops, self._now_s)
        return self.cost.growth


def test_the_launch_does_not_count_and_two_comparisons_are_needed():
    playing = Playing()
    assert playing.play(1 + 4 + 4, 0.001) is None
    assert playing.play(4, 0.001) == 1.0


def test_loops_that_cost_twice_as_much():
    playing = Playing()
    playing.play(13, 0.001)
    assert playing.play(4, 0.002) == 1.0, "once may be chance"
    assert playing.play(4, 0.002) == 2.0


def test_shorter_episodes_are_no_slowdown():
    playing = Playing()
    playing.play(9, 0.001)
    assert playing.play(40, 0.001, loops=200) == pytest.approx(1.0)


def test_little_cpu_time_says_nothing():
    playing = Playing()
    assert playing.play(100, 0.000_001) is None


def test_it_is_not_read_more_often_than_needed():
    cost = LoopCost()
    assert cost.is_due(10.0)
    cost.note(1.0, 100, 10.0)
    assert not cost.is_due(10.1)
    assert cost.is_due(10.6)


def test_loops_of_all_games_of_a_process():
    loops = LoopCount()
    loops.created()
    loops.play(100)
    loops.play(50, simulation_loop=150)
    loops.created()
    loops.play(30)
    assert loops.in_all == 180
