"""The end of an episode that the game does not tell in the usual way.

The usual way: the status is `ended`, or an observation holds the player's result. Reports of the
real game name other ends: refused observations, observations without a state, silence, and in
matches in real time a game that continues, or stands still, as if nothing had happened. Such an
episode ends as terminated, with the last real observation; its result is undecided, and
`Game.untold_end` says by which sign the end was noticed.

Rules: pure, and all times are arguments. A sign must last for about a second before it counts,
because units are replaced, orders fail and processes stop for a moment in running games too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from s2clientprotocol import error_pb2, raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.game.events import events_of
from sc2pool.protocol.observed import Observed

REFUSED: Final = "the game refused to show its state, as one that is over"
WITHOUT_RESULT: Final = "the game ended without a result"
SILENT: Final = "the game did not answer any more and did nothing"
_STANDS_STILL: Final = "the game loop stood still"
_ALL_GONE: Final = "no own unit was left"
_NOT_OURS: Final = "the own units could not be commanded any more"

_STANDSTILL_S: Final = 1.0
"""A game in real time plays 22 loops in this time."""
LONGEST_LOOK_S: Final = 0.1
"""How much of the time between two looks counts for a standstill: one of the processes may have
been stopped between the looks."""
_LASTING_LOOPS: Final = 22
"""For how many loops a sign must last: a second in real time."""
_CANNOT_CONTROL: Final = int(error_pb2.YouCantControlThatUnit)


class EndSigns:
    """Looks for signs that a game in real time is over although it does not say so.

    Attributes:
        stood_s: for how long the game loop has stood still, as far as it was looked at.
    """

    def begin(self, *, has_opponent: bool) -> None:
        """An episode begins.

        Args:
            has_opponent: the game is lost, for one of two players, when no unit of theirs is left.
        """
        self._has_opponent = has_opponent
        self._loop = -1
        self._seen_s = self._still_since_s = 0.0
        self.stood_s = 0.0
        self._had_units = False
        self._gone_since: int | None = None
        self._obeyed = False
        self._disobeyed_since: int | None = None

    def resume(self) -> None:
        """The game was paused until now."""
        self._loop = -1

    def note_results(self, results: Sequence[int], loop: int) -> None:
        """The game gave these results to the actions sent at this loop."""
        if not results:
            return
        if any(result != _CANNOT_CONTROL for result in results):
            self._obeyed, self._disobeyed_since = True, None
        elif self._disobeyed_since is None:
            self._disobeyed_since = loop

    def look(self, observed: Observed, now_s: float, others_answered_s: float = math.inf) -> str:
        """The sign that the game is over; empty for none.

        Args:
            observed: the newest observation.
            now_s: when it came.
            others_answered_s: when the other game of a match answered last. A game of two players
                stands still also if the other game has stopped, which is a fault.
        """
        loop = observed.game_loop
        if loop != self._loop:
            self._loop, self.stood_s, self._still_since_s = loop, 0.0, now_s
        else:
            self.stood_s += min(now_s - self._seen_s, LONGEST_LOOK_S)
        self._seen_s = now_s
        others_answer = others_answered_s >= self._still_since_s + _STANDSTILL_S / 2
        if self.stood_s >= _STANDSTILL_S and others_answer:
            return _STANDS_STILL
        if not self._has_opponent:
            return ""
        if raw_pb2.Self in observed.columns.alliance:
            self._had_units, self._gone_since = True, None
        elif self._gone_since is None:
            self._gone_since = loop
        if self._had_units and _lasts(self._gone_since, loop):
            return _ALL_GONE
        if self._obeyed and _lasts(self._disobeyed_since, loop):
            return _NOT_OURS
        return ""


def _lasts(since: int | None, loop: int) -> bool:
    return since is not None and loop - since >= _LASTING_LOOPS


def shown_again(last: Observed, told: sc_pb.ResponseObservation | None = None) -> Observed:
    """The state of an observation again, without its events, which were delivered with it.

    Args:
        last: the newest observation that holds a state.
        told: a later reply without a state, whose events take the place of the old ones.
    """
    response = sc_pb.ResponseObservation()
    response.CopyFrom(last.response)
    for field in ("actions", "action_errors", "chat", "player_result"):
        response.ClearField(field)
    response.observation.ClearField("alerts")
    response.observation.raw_data.ClearField("event")
    events = None if told is None else events_of(told)
    if events is not None:
        response.MergeFrom(events)
    return Observed.of(response)
