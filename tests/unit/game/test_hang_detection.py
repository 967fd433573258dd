"""A game that works is slow, and waited for once more; an idle one is hung."""

from __future__ import annotations

from sc2pool.game.hang_detection import HangDetector


def play(*cpu_s: float) -> list[float]:
    """The waits, in units of the limit, of a game whose CPU time reads as given."""
    readings = iter(cpu_s)
    detector = HangDetector(lambda: next(readings))
    waits = [detector.begin(1000.0).remaining_s()]
    while (later := detector.extend()) is not None:
        waits.append(later.remaining_s())
    return [round(wait / 1000.0, 2) for wait in waits]


def test_idle_is_hung():
    assert play(7.0, 7.0) == [0.5, 0.5]


def test_hardly_working_is_hung():
    assert play(7.0, 11.0) == [0.5, 0.5]


def test_working_is_slow_once():
    assert play(7.0, 400.0) == [0.5, 0.5, 2.0]
