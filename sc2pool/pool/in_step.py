"""Keeps games in real time in step that are played together: `phases` decides, here it is done."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sc2pool.pool.alignment import Alignment
from sc2pool.pool.batch import Outcome
from sc2pool.pool.instances.seats import Seat
from sc2pool.protocol.game_time import LOOPS_PER_S


class InStep:
    """The envs of one pool.

    Args:
        seats: of all envs.
    """

    def __init__(self, seats: Sequence[Seat]) -> None:
        self._seats = seats
        self._phases = Alignment(LOOPS_PER_S)

    def before_step(self, envs: Sequence[int]) -> None:
        """These envs are about to be sent actions: put off those that are early."""
        if len(envs) < len(self._seats):
            self._phases.forget()
        loops = self._phases.delay() or [0] * len(self._seats)
        for env in envs:
            seat = self._seats[env]
            if seat.fault is None:
                seat.instance.end.delay(loops[env])

    def after_step(self, outcomes: Iterable[Outcome | None]) -> None:
        """What came of actions: note how late each was, where all were played on together."""
        gaps_s = [one.tick.gap_s for one in outcomes if one and one.tick and not one.over]
        if len(gaps_s) == len(self._seats):
            self._phases.note(gaps_s)
        else:
            self._phases.forget()
