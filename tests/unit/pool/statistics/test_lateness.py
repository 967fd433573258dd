"""What a pool counts of late actions."""

from __future__ import annotations

from sc2pool.game.clock import Tick
from sc2pool.pool.statistics.durations import Durations
from sc2pool.pool.statistics.lateness import HeldSpares, Lateness, LatenessCounter


def test_the_one_long_gap_is_not_hidden():
    ticks = LatenessCounter()
    for _ in range(199):
        ticks.note(0, Tick(0.01, 0, 0))
    ticks.note(0, Tick(2.0, 11, 36))
    stats = ticks.snapshot()
    assert stats.gap_s == Durations(200, p50=0.01, p95=0.01, p99=0.01, max=2.0)
    assert (stats.steps, stats.misses) == (200, 1)
    assert (stats.lost_periods, stats.skipped_loops) == (11, 36)


def test_each_env_by_itself_and_all_together():
    ticks = LatenessCounter()
    ticks.note(3, Tick(0.3, 0, 0))
    ticks.note(1, Tick(0.1, 2, 8))
    ticks.note(1, Tick(0.1, 1, 0))
    stats = ticks.snapshot()
    assert list(stats.envs) == ["env 1", "env 3"]
    assert stats.envs["env 1"] == Lateness(
        steps=2,
        gap_s=Durations(2, p50=0.1, p95=0.1, p99=0.1, max=0.1),
        misses=2,
        lost_periods=3,
        skipped_loops=8,
    )
    assert stats.envs["env 3"].misses == 0
    assert (stats.gap_s.p50, stats.gap_s.max) == (0.1, 0.3)
    assert stats.steps == 3


def test_spares():
    ticks = LatenessCounter()
    assert ticks.snapshot().spares == HeldSpares(0, 0, "")
    for loops in (3, None, 4):
        ticks.note_hold(loops)
    assert ticks.note_problem("may not be stopped")
    assert not ticks.note_problem("may not be stopped")
    assert ticks.snapshot().spares == HeldSpares(3, 7, "may not be stopped")
