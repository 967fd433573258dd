"""Tempers: reported behaviours of StarCraft II that are hard on its clients.

The game's rules know nothing of them. `Temper` holds what was chosen for a process, and decides;
`State`, the session and the requests ask it at one place each.

A choice is a text such as `stub-end,untold-end:still`: names of `TEMPERS`, some with a value, and
names of `GROUPS`. The README has the same table for readers; a test compares them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from s2clientprotocol import error_pb2 as error_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.simulation.units import ENEMY, ME
from sc2standin.status import Status
from sc2standin.view.prepared import action_reply, reply_tail

if TYPE_CHECKING:
    from sc2standin.process.state import State

STUB_LOOP: Final = (1 << 32) - 1
"""The loop that a stub observation shows."""
WARNED_EVERY: Final = 7
"""One reply in so many has a warning."""
WARNING: Final = "The command was carried out, with a warning"


@dataclass(frozen=True)
class Known:
    """A behaviour that can be chosen, and the evidence for it."""

    name: str
    does: str
    question: str
    """Its number in the list of reported behaviours."""
    source: str
    certainty: Literal["S", "1", "W", "P"]
    """S: several independent reports; 1: one report; W: a client's workaround; P: the protocol's
    documentation."""
    hangs: bool = False
    """True if a client that behaves as python-sc2 does would wait for ever."""
    value: str = ""
    """Notation of the value that may follow the name, after a colon."""
    pattern: str = ""
    """What a value must match."""
    default: str = ""
    """The value if none is given."""


TEMPERS: Final = (
    Known(
        "silent-end",
        "in real time, an observation that waits for a later loop gets no reply if the game ends "
        "first; the status stays in_game until the next action or other observation",
        "Q01",
        "source 66612780244",
        "1",
        hangs=True,
    ),
    Known(
        "not-in-game",
        "in real time, requests about a game that has ended are refused with `Not in a game`, and "
        "the status is launched; create_game works",
        "Q02",
        "python-sc2 main.py and client.py, Dentosal/python-sc2 pull request 230",
        "W",
    ),
    Known(
        "untold-end",
        "in real time, neither of two clients learns of the end: the status stays in_game, no "
        "observation has a result, actions get YouCantControlThatUnit, the loser's units vanish; "
        "the loop continues, or stands still with the value `still`",
        "Q31",
        "s2client-proto#90, Dentosal/python-sc2#54",
        "S",
        hangs=True,
        value="still",
        pattern="still",
    ),
    Known(
        "stub-end",
        "the observation with the result has no raw data, and game_loop 2^32 - 1",
        "Q03",
        "pysc2 remote_controller.py",
        "W",
    ),
    Known(
        "warnings",
        f"every {WARNED_EVERY}th good reply has a text in `error`, too",
        "Q12",
        "sc2api.proto, comment of Response.error",
        "P",
    ),
    Known(
        "both-win",
        "each of two clients gets Victory as the result of both players",
        "Q19",
        "python-sc2 main.py",
        "W",
    ),
)
"""Each behaviour that can be chosen."""

GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "kind": (),
    "default": tuple(one.name for one in TEMPERS if one.certainty == "S" and not one.hangs),
    "recorded": tuple(one.name for one in TEMPERS if one.certainty in ("S", "1")),
    "all": tuple(one.name for one in TEMPERS),
}
"""Names for several of them. `default` is the choice of an installation for which none is made."""
DEFAULT: Final = "default"
_KNOWN: Final = {one.name: one for one in TEMPERS}
_ITEM: Final = re.compile(r"([a-z-]+)(?::(.+))?")


class Temper:
    """The behaviours of one process.

    Args:
        text: the chosen names, separated by commas, each with a value or without; of two values
            for one name the last one counts.

    Raises:
        ValueError: a name or a value is unknown; the message lists the known ones.
    """

    def __init__(self, text: str = "kind") -> None:
        self._chosen = _read(text)
        """The value of each chosen name."""
        self.alters_replies = not self._chosen.keys().isdisjoint(("stub-end", "warnings"))
        """True if each reply must be given to `altered`."""
        self._replies_unwarned = 0

    def __repr__(self) -> str:
        return f"Temper({', '.join(f'{n}:{v}' if v else n for n, v in self._chosen.items())})"

    def end(self, state: State) -> None:
        """The game has its result: give the state a status, and in real time stop the clock."""
        in_real_time = state.clock is not None and state.playback is None
        if in_real_time and state.match is not None and "untold-end" in self._chosen:
            self._end_untold(state)
            return
        state.clock = None
        if in_real_time and "silent-end" in self._chosen:
            state.is_silent = True
        else:
            self._tell_end(state, in_real_time=in_real_time)

    def after_hidden_end(self, state: State, request: sc_pb.Request) -> bytes | None:
        """The reply to a request after an end that the client cannot see; None if it is usual."""
        if state.is_untold:
            if not request.HasField("action"):
                return None
            results = [error_pb.YouCantControlThatUnit] * len(request.action.actions)
            return action_reply(results, reply_tail(request, state.status))
        if request.HasField("action") or request.HasField("observation"):
            self._tell_end(state, in_real_time=True)
        return None

    def results(self, state: State, true: list[sc_pb.PlayerResult]) -> list[sc_pb.PlayerResult]:
        """The results that an observation shows, from the true ones."""
        if state.match is not None and "both-win" in self._chosen:
            return [sc_pb.PlayerResult(player_id=p.player_id, result=sc_pb.Victory) for p in true]
        return true

    def altered(self, state: State, reply: bytes) -> bytes:
        """A reply as it is sent."""
        self._replies_unwarned += 1
        warns = "warnings" in self._chosen and self._replies_unwarned >= WARNED_EVERY
        stubs = "stub-end" in self._chosen and state.game is not None and state.game.result
        if not warns and not stubs:
            return reply
        response = sc_pb.Response.FromString(reply)
        if stubs and response.observation.player_result:
            stub = sc_pb.Observation(game_loop=STUB_LOOP)
            response.observation.observation.CopyFrom(stub)
        if warns and not response.error:
            response.error.append(WARNING)
            self._replies_unwarned = 0
        return bytes(response.SerializeToString(deterministic=True))

    def _tell_end(self, state: State, *, in_real_time: bool) -> None:
        if in_real_time and "not-in-game" in self._chosen:
            state.leave_game()
        else:
            state.status = Status.ENDED

    def _end_untold(self, state: State) -> None:
        game = state.playing()
        for result, loser in ((sc_pb.Defeat, ME), (sc_pb.Victory, ENEMY)):
            if game.result == result:
                game.world.remove(game.world.owned_by(loser))
        state.is_untold = state.results_sent = True
        if self._chosen["untold-end"]:
            state.is_silent = True
        else:
            game.play_on()


def _read(text: str) -> dict[str, str]:
    chosen: dict[str, str] = {}
    for item in text.split(","):
        match = _ITEM.fullmatch(item)
        name, value = match.groups() if match is not None else (item, None)
        if name in GROUPS and value is None:
            chosen |= {one: _KNOWN[one].default for one in GROUPS[name] if one not in chosen}
            continue
        known = _KNOWN.get(name)
        if known is None:
            raise ValueError(
                f"no temper {item!r}; there are {', '.join(_KNOWN)}, and the groups "
                f"{', '.join(GROUPS)}"
            )
        if value is not None and not re.fullmatch(known.pattern, value):
            wanted = f"{name}:{known.value}" if known.value else f"{name}, without a value"
            raise ValueError(f"no temper {item!r}; write {wanted}")
        chosen[name] = known.default if value is None else value
    return chosen
