"""Detects the end of an episode that the game does not report in the usual way.

Usually the status is `ended`, or an observation holds the player's result. Reports about the real
game describe other ends: refused observations, observations without a state, silence. In matches in
real time, a game may also continue after its end, or stand still. Such an episode ends as
terminated, with the last real observation. Its result is undecided, and `Game.untold_end` names the
sign of the end.

Rules: all functions are pure, and all times are arguments. A sign must last for about a second
before it counts. In running games, too, units are replaced, orders fail and processes stop briefly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from s2clientprotocol import error_pb2, raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.protocol.observed import Observed, events_of

REFUSED: Final = "the game refused to show its state, as one that is over"
WITHOUT_RESULT: Final = "the game ended without a result"
SILENT: Final = "the game did not answer any more and did nothing"
_STANDS_STILL: Final = "the game loop stood still"
_ALL_GONE: Final = "no own unit was left"
_NOT_OURS: Final = "the own units could not be commanded any more"

_STANDSTILL_S: Final = 1.0
"""How long a game loop must stand still. A game in real time plays 22 loops in this time."""
LONGEST_LOOK_S: Final = 0.1
"""The most time between two looks that counts as a standstill. A process may have been stopped
between the looks."""
_LASTING_LOOPS: Final = 22
"""How many loops a sign must last: a second in real time."""
_CANNOT_CONTROL: Final = int(error_pb2.YouCantControlThatUnit)


class EndSigns:
    """Looks for signs that a game in real time is over although it does not report its end.

    Attributes:
        stood_s: how long the game loop has stood still, counting at most `LONGEST_LOOK_S` per look.
    """

    def begin(self, *, has_opponent: bool) -> None:
        """Begin an episode.

        Args:
            has_opponent: whether there is an opponent. Then a player without units has lost.
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
        """Note that the game was paused until now."""
        self._loop = -1

    def note_results(self, results: Sequence[int], loop: int) -> None:
        """Note the game's results for the actions that were sent at this loop."""
        if not results:
            return
        if any(result != _CANNOT_CONTROL for result in results):
            self._obeyed, self._disobeyed_since = True, None
        elif self._disobeyed_since is None:
            self._disobeyed_since = loop

    def look(self, observed: Observed, now_s: float, others_answered_s: float = math.inf) -> str:
        """The sign that the game is over; empty without a sign.

        Args:
            observed: the newest observation.
            now_s: when the observation came.
            others_answered_s: when the other game of a match answered last. If the other game has
                stopped, this one also stands still. That is a fault, not the end.
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
    """A copy of an observation without its events, which have already been delivered.

    Args:
        last: the newest observation that holds a state.
        told: a later reply without a state. Its events are added to the copy.
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
