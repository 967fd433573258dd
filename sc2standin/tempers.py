"""Tempers: reported behaviours of StarCraft II that are hard on its clients.

`Temper` has the behaviours that are chosen for a process. `State`, the session, the requests and
the server ask the `Temper` which behaviour they must show. Some behaviours change the rules of an
episode. The changed rules are the episode's `Quirks`, which its replay keeps.

A choice is a text that lists names of `TEMPERS` (some with a value) and names of `GROUPS`. An
example is `stub-end,untold-end:still`. The README describes the behaviours and names their sources.
A test compares the README with `TEMPERS`.
"""

from __future__ import annotations

import difflib
import re
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.cost import burn
from sc2standin.simulation.game import Game, Quirks

if sys.platform != "win32":
    import fcntl

STUB_LOOP: Final = (1 << 32) - 1
"""The game loop in the observation of the temper `stub-end`."""
WARNED_EVERY: Final = 7
"""With the temper `warnings`, one in this many replies has a warning."""
WARNING: Final = "The command was carried out, with a warning"


_COUNT, _DURATION = r"[1-9]\d{0,8}", r"(?=.*[1-9])\d{1,9}(\.\d{1,9})?"


@dataclass(frozen=True)
class Known:
    """A behaviour that can be chosen; the README describes it and names its sources."""

    name: str
    certainty: Literal["S", "1", "W", "P"]
    """The evidence for the behaviour: several independent reports (S), one report (1), a client's
    workaround (W), or the protocol's documentation (P)."""
    hangs: bool = False
    """True if a client that behaves as python-sc2 does would wait for ever."""
    is_rarer: bool = False
    """True if the behaviour is rarer in the real game than here; then it is not in `default`."""
    value: str = ""
    """The notation of the value that may follow the name, after a colon."""
    pattern: str = ""
    """A regular expression for the value."""
    default: str = ""
    """The value if the name is chosen without a value."""


TEMPERS: Final = (
    Known("silent-end", "1", hangs=True),
    Known("not-in-game", "W"),
    Known("untold-end", "S", hangs=True, value="still", pattern="still"),
    Known("stub-end", "W"),
    Known("warnings", "P"),
    Known("both-win", "W"),
    Known("spent-minerals", "S"),
    Known("map-data", "S", is_rarer=True, value="N", pattern=_COUNT, default="100"),
    Known("map-crash", "S"),
    Known("no-player", "S"),
    Known(
        "fatal-close", "S", value="crash/spin/flood", pattern="crash|spin|flood", default="crash"
    ),
    Known("error-box", "S", hangs=True),
    Known("crowd", "S", value="SECONDS", pattern=_DURATION, default="0.15"),
    Known("same-instant", "W", value="SECONDS", pattern=_DURATION, default="0.02"),
    Known("late-units", "S", value="LOOPS", pattern=_COUNT, default="12"),
    Known("stalled-map", "S", is_rarer=True),
    Known("slowing", "1", value="HOURS", pattern=_DURATION, default="4"),
)
"""All behaviours that can be chosen."""

GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "kind": (),
    "default": tuple(
        one.name for one in TEMPERS if one.certainty == "S" and not (one.hangs or one.is_rarer)
    ),
    "recorded": tuple(one.name for one in TEMPERS if one.certainty in ("S", "1")),
    "all": tuple(one.name for one in TEMPERS),
}
"""The behaviours of each group. An installation without a choice has the group `default`."""
DEFAULT: Final = "default"
_NEVER: Final = 1 << 62
_KNOWN: Final = {one.name: one for one in TEMPERS}
_PLACES: Final = 64
"""The most simultaneous launches and joins that are counted."""
_TOGETHER, _TOGETHER_S = 0.1, 0.2
"""Launches and joins that begin within a short time of each other count as simultaneous.

The time between simultaneous launches or joins is at most the share _TOGETHER of the delay that
`crowd` sets, and at most _TOGETHER_S. A join itself takes only milliseconds. If only joins that
overlap counted, a busy machine might run all joins one after the other and count none of them.
"""
_TICKS_PER_S: Final = 100
"""Linux reports the time at which a process started in hundredths of a second (ticks)."""
_ITEM: Final = re.compile(r"([a-z-]+)(?::(.+))?")


class Temper:
    """The behaviours of one process.

    Args:
        text: the chosen names, separated by commas, each with or without a value. If a name has
            two values, the last one counts.
        file: a file of the installation; processes see each other's launches by locks on this file.

    Raises:
        ValueError: a name or a value is unknown; the message lists the known ones.
    """

    def __init__(self, text: str = "kind", file: Path | None = None) -> None:
        self._chosen = _read(text)
        """The value of each chosen name."""
        self.alters_replies = not self._chosen.keys().isdisjoint(("stub-end", "warnings"))
        """True if each reply must pass through `altered` before it is sent."""
        self.silent_end = "silent-end" in self._chosen
        """True if, in real time, observations of later loops get no reply after the game's end."""
        self.refuses_after_end = "not-in-game" in self._chosen
        """True if the end of a game in real time sets the status to launched."""
        self.untold_end = self._chosen.get("untold-end")
        """A text if the end of a match in real time is hidden from its clients, else None.

        After the end, the game continues if the text is empty, and otherwise stands still.
        """
        self.takes_any_file = "no-player" in self._chosen
        """True if create_game succeeds with a file that is not a map."""
        self.loads_newer_maps = "map-crash" in self._chosen
        """True if the process loads a map of a newer editor, and then ends."""
        self.fatal_close = self._chosen.get("fatal-close", "")
        """The process's reaction if its client leaves while a reply is due; empty for none."""
        self.error_box = "error-box" in self._chosen
        """True if the process hangs instead of crashing."""
        self.slows = "slowing" in self._chosen
        """True if loops must be played by `slow_down`."""
        self.crowd: Crowd | None = None
        """The launches and joins of all processes; None if this process ignores other processes."""
        if file is not None and not self._chosen.keys().isdisjoint(("crowd", "same-instant")):
            with suppress(OSError):  # ignore other processes if the file cannot be opened
                self.crowd = Crowd(
                    file,
                    float(self._chosen.get("crowd", 0.0)),
                    float(self._chosen.get("same-instant", 0.0)),
                )
        self._began_s = time.monotonic()
        self._replies_unwarned = self._games_created = 0

    def __repr__(self) -> str:
        return f"Temper({', '.join(f'{n}:{v}' if v else n for n, v in self._chosen.items())})"

    def spoils_map(self) -> bool:
        """Count a create_game; True if it must fail with InvalidMapData."""
        self._games_created += 1
        return self._games_created >= int(self._chosen.get("map-data", _NEVER))

    def quirks(self, before: Game | None) -> Quirks:
        """The odd rules of an episode.

        Args:
            before: the previous episode of the same game; None for the first one.
        """
        stay_spent = "spent-minerals" in self._chosen
        return Quirks(
            spent=before.spent() if stay_spent and before is not None else (),
            late_loops=int(self._chosen.get("late-units", 0)),
            waves_stall="stalled-map" in self._chosen,
        )

    def slow_down(
        self, play: Callable[[Callable[[], bool]], None], stop: Callable[[], bool]
    ) -> None:
        """Call `play`, and then use CPU time in proportion to the age of the process."""
        period_s = 3600.0 * float(self._chosen["slowing"])
        share = (time.monotonic() - self._began_s) / period_s
        began_s = time.thread_time()
        play(stop)
        burn((time.thread_time() - began_s) * share, stop)

    def results(self, true: list[sc_pb.PlayerResult]) -> list[sc_pb.PlayerResult]:
        """The results that the clients of a match get instead of the true results in `true`."""
        if "both-win" not in self._chosen:
            return true
        return [sc_pb.PlayerResult(player_id=p.player_id, result=sc_pb.Victory) for p in true]

    def altered(self, reply: bytes, *, is_over: bool) -> bytes:
        """The reply as changed by the tempers; `is_over` is True if the game has its result."""
        self._replies_unwarned += 1
        warns = "warnings" in self._chosen and self._replies_unwarned >= WARNED_EVERY
        stubs = "stub-end" in self._chosen and is_over
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


class Crowd:
    """The launches and joins that are in progress in all processes of an installation.

    Each launch or join holds a lock on a byte of a file. The system drops the locks of a process
    that ends.

    Args:
        file: a file of the installation.
        wait_s: the delay of a launch or join for each simultaneous one in another process.
        instant_s: the least time between the starts of two processes.
    """

    def __init__(self, file: Path, wait_s: float, instant_s: float) -> None:
        self._wait_s, self._instant_s = wait_s, instant_s
        self._place: int | None = None
        """The byte that the launch or join of this process has locked."""
        self._count_at_s: float | None = None
        """The time for counting launches and joins of other processes; None before the wait."""
        self._ends_at_s: float | None = None
        """The time at which the launch or join is over; None until this time is known."""
        self._file = file.open("rb+", buffering=0)

    def may_start(self) -> bool:
        """False if another process has started less than `instant_s` ago.

        As long as a process runs, it locks one byte for each tick of `instant_s` after its start.
        """
        ticks = max(1, round(self._instant_s * _TICKS_PER_S))
        return self._instant_s == 0.0 or self._lock(_PLACES + _started_at(), ticks)

    def remaining_s(self) -> float:
        """How long the launch or join of this process still takes; the first call begins it.

        Other processes' launches and joins are counted after a short wait, in which more may begin.
        """
        if self._wait_s == 0.0:
            return 0.0
        now_s = time.monotonic()
        if self._count_at_s is None:
            self._place = next(filter(self._lock, range(_PLACES)), None)
            self._count_at_s = now_s + min(_TOGETHER * self._wait_s, _TOGETHER_S)
        if now_s < self._count_at_s:
            return self._count_at_s - now_s
        if self._ends_at_s is None:
            others = [place for place in range(_PLACES) if place != self._place]
            self._ends_at_s = now_s + self._wait_s * sum(map(self._is_locked, others))
        return max(0.0, self._ends_at_s - now_s)

    def leave(self) -> None:
        """End the launch or the join of this process."""
        self._count_at_s = self._ends_at_s = None
        if self._place is not None:
            self._unlock(self._place)
            self._place = None

    def _is_locked(self, place: int) -> bool:
        is_free = self._lock(place, exclusive=False)
        if is_free:
            self._unlock(place)
        return not is_free

    def _lock(self, place: int, length: int = 1, *, exclusive: bool = True) -> bool:
        if sys.platform != "win32":  # Windows has no such locks: there, no process sees another
            kind = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
            try:
                fcntl.lockf(self._file, kind | fcntl.LOCK_NB, length, place)
            except OSError:
                return False
        return True

    def _unlock(self, place: int) -> None:
        if sys.platform != "win32":
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, place)


def _started_at() -> int:
    """The time in ticks at which this process started; outside of Linux, the present time."""
    if sys.platform == "linux":
        # The start time is field 22 of the line: the 20th field after the name in brackets.
        stat = Path("/proc/self/stat").read_bytes()
        return int(stat.rpartition(b")")[2].split()[19])
    return int(time.monotonic() * _TICKS_PER_S)


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
            close = difflib.get_close_matches(name, [*_KNOWN, *GROUPS], n=1)
            hint = f"; did you mean {close[0]}?" if close and close[0] != name else ""
            raise ValueError(
                f"no temper {item!r}; there are {', '.join(_KNOWN)}, and the groups "
                f"{', '.join(GROUPS)}{hint}"
            )
        if value is not None and not re.fullmatch(known.pattern, value):
            wanted = f"{name}:{known.value}" if known.value else f"{name}, without a value"
            raise ValueError(f"no temper {item!r}; write {wanted}")
        chosen[name] = known.default if value is None else value
    return chosen
