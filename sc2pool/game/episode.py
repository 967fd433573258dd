"""Decides how a game's episodes begin, counts their loops, and finds unreported ends.

    Begin ─► may_restart? ── yes ─► restart_game ─► first observation as after create_game? ─ no ┐
                  │ no                                      │ yes                                │
                  └────────► create_game, join_game ◄───────┼────────────────────────────────────┘
                                                            └─► episode.

A restart takes a fraction of create_game's time. But in the real game a restart does not restore
everything: exhausted mineral fields stay lost. And no known client restarts games with a computer
player or a Random race. So the first observation after a restart is compared with the first
observation after create_game.

At the end of an episode, the status usually is `ended`, or an observation holds the player's
result. Reports about the real game describe other ends: it refuses observations, sends observations
without a state, or falls silent. In matches in real time, a game may also continue after its end,
or stand still. An episode with an unreported end counts as terminated and returns the last real
observation. The result is undecided, and `Game.untold_end` names the sign of the end.

Rules: all functions are pure, all times are arguments, and no requests are sent here. After a
request that moves the game to another loop (quick_load) the loop is unknown until an observation
shows it. In real time an observation may show any later loop. A sign of the end counts only if it
lasts for about a second: in a running game, too, units are replaced, orders fail and processes may
stop.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from s2clientprotocol import common_pb2, error_pb2, raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.config import GameSetup
from sc2pool.game.program.builds import Settled
from sc2pool.protocol import replies
from sc2pool.protocol.observed import Observed, events_of

_VISIBLE: Final = b"\x02"
"""The value of a visible cell in `map_state.visibility`."""
World = tuple[GameSetup, Path]
"""A game's players and options, and its map file."""


@dataclass(frozen=True)
class Beginning:
    """The facts that must be the same in the first observation of every episode on a map."""

    units: Counter[tuple[int, int]]
    """The number of units by owner and type, without the enemy's units."""
    enemies: Counter[tuple[int, int]]
    """The number of the enemy's units by owner and type. Under fog, chance decides how many are
    visible."""
    visibility: common_pb2.ImageData
    resources: Counter[str]
    """The minerals in all visible fields, the gas in all visible geysers, and the score."""
    upgrades: frozenset[int]

    @classmethod
    def of(cls, first: sc_pb.Observation) -> Beginning:
        """Read a `Beginning` from an episode's first observation."""
        raw = first.raw_data
        by_side: dict[bool, Counter[tuple[int, int]]] = {True: Counter(), False: Counter()}
        resources = Counter(score=first.score.score)
        for unit in raw.units:
            by_side[unit.alliance == raw_pb2.Enemy][unit.owner, unit.unit_type] += 1
            resources["minerals"] += unit.mineral_contents
            resources["vespene"] += unit.vespene_contents
        return cls(
            by_side[False],
            by_side[True],
            raw.map_state.visibility,
            resources,
            frozenset(raw.player.upgrade_ids),
        )

    def difference(self, later: Beginning, area: common_pb2.RectangleI | None) -> str:
        """Say in words how a later beginning differs; empty if nothing differs.

        Enemies are not compared under fog, or if the map's playable `area` is unknown (None).
        """
        counted = [(self.units, later.units)]
        if area is not None and all(_all_visible(one.visibility, area) for one in (self, later)):
            counted.append((self.enemies, later.enemies))
        for ours, theirs in counted:
            for (owner, unit_type), n in (ours - theirs).items():
                return f"{n} units of type {unit_type} of player {owner} are missing"
            for (owner, unit_type), n in (theirs - ours).items():
                return f"{n} more units of type {unit_type} of player {owner} are there"
        for name in sorted(self.resources.keys() | later.resources.keys()):
            if self.resources[name] != later.resources[name]:
                return f"{name}: {later.resources[name]} in place of {self.resources[name]}"
        if self.upgrades != later.upgrades:
            return f"other upgrades: {sorted(self.upgrades ^ later.upgrades)}"
        return ""


class ResetLadder:
    """Decides whether an episode begins with a restart of the running game or with a new game."""

    def __init__(self, settled: Settled) -> None:
        self._settled = settled
        self._world: World | None = None
        self._seeded = False
        self._created: Beginning | None = None
        self._unfaithful: set[World] = set()

    def may_restart(self, world: World, seed: int | None) -> bool:
        """True if an episode of this world may begin with a restart of the running game."""
        setup, _ = world
        # A restart of a game that was created with a seed might repeat the seed.
        if self._world != world or self._seeded or seed is not None or setup.restart == "never":
            return False
        if self._settled.restart_faithful is False or world in self._unfaithful:
            return False
        has_chance = bool(setup.opponents) or setup.race == common_pb2.Random
        return not has_chance or self._settled.restart_with_computer is True

    def created(self, world: World, seed: int | None) -> None:
        """Record that a game of this world was created."""
        self._world = world
        self._seeded = seed is not None
        self._created = None

    def not_again(self) -> None:
        """Record that a game with two players, or without a reported end, must not be restarted."""
        self._world = None

    def difference(
        self, beginning: Beginning, area: common_pb2.RectangleI | None, *, restarted: bool
    ) -> str:
        """What a restart did not restore, or ''. A world that differs is not restarted again."""
        if not restarted or self._created is None:
            self._created = beginning
            return ""
        difference = self._created.difference(beginning, area)
        if difference and self._world is not None:
            self._unfaithful.add(self._world)
        return difference


def _all_visible(visibility: common_pb2.ImageData, area: common_pb2.RectangleI) -> bool:
    """True if the player sees every cell of the playable area."""
    width, cells = visibility.size.x, visibility.data
    if not width or len(cells) != width * visibility.size.y:
        return False
    row = _VISIBLE * (area.p1.x - area.p0.x)
    return all(
        cells[y * width + area.p0.x : y * width + area.p1.x] == row
        for y in range(area.p0.y, area.p1.y)
    )


_LAST_EPISODE_LOOPS: Final = 1 << 17
"""If a game has fewer loops left than this, it should not begin another episode."""


class LoopCount:
    """Counts the loops of one game process."""

    def __init__(self) -> None:
        self.now: int | None = None
        """The newest known loop; None if unknown."""
        self.nothing_seen = False
        """True before the episode's first observation."""
        self._played = 0
        """The number of loops since create_game; a restart does not reset this number."""
        self._before_create = 0
        """The number of loops that earlier games of the process have played."""

    @property
    def restartable(self) -> bool:
        """True if the game may still be restarted."""
        return self._played < replies.HARD_RESET_LOOP

    @property
    def used_up(self) -> bool:
        """True if the game should not begin a further episode."""
        return self._played > replies.LAST_LOOP - _LAST_EPISODE_LOOPS

    @property
    def in_all(self) -> int:
        """The number of loops that the process has played."""
        return self._before_create + self._played

    def created(self) -> None:
        """Record that a new game was created in the process."""
        self._before_create += self._played
        self._played = 0

    def begin_episode(self) -> None:
        """Record that the next observation is an episode's first."""
        self.now = 0
        self.nothing_seen = True

    def expected(self, loops: int, *, ended: bool, free: bool) -> tuple[int, int]:
        """The first and the last loop that an observation may show after a step of `loops` loops.

        If the observation says that the game has `ended`, the game may have stopped within the
        step. A `free` game runs in real time and may show any later loop.
        """
        if self.now is None or free:
            return self.now or 0, replies.LAST_LOOP
        target = self.now + loops
        if self.nothing_seen:
            return target, target + replies.FIRST_LOOP_MAX
        return (self.now if ended else target), target

    def see(self, loop: int) -> None:
        """Record the loop of an observation."""
        self.now = loop
        self.nothing_seen = False

    def move(self, loops: int) -> None:
        """Record that the game was stepped without an observation."""
        if self.now is not None:
            self.now += loops

    def play(self, loops: int, simulation_loop: int = 0) -> None:
        """Count played loops; `simulation_loop` is the game's own count, 0 if unknown."""
        self._played = max(self._played + loops, simulation_loop)


class _Use(NamedTuple):
    """The CPU time and loops of some episodes."""

    cpu_s: float
    loops: int
    episodes: int

    def plus(self, cpu_s: float, loops: int, episodes: int) -> _Use:
        return _Use(self.cpu_s + cpu_s, self.loops + loops, self.episodes + episodes)

    @property
    def cost(self) -> float:
        """CPU seconds per loop."""
        return self.cpu_s / self.loops

    @property
    def is_enough(self) -> bool:
        return self.cpu_s >= _ENOUGH_CPU_S and self.episodes >= _ENOUGH_EPISODES and self.loops > 0


_NOTHING: Final = _Use(0.0, 0, 0)
_ENOUGH_CPU_S: Final = 1.0
"""CPU times under this many seconds are not compared: the system counts hundredths of a second."""
_ENOUGH_EPISODES: Final = 4
"""A cost is an average over at least this many episodes, because episodes differ."""
_LOOK_EVERY_S: Final = 0.5
"""Seconds between two readings of a process's CPU time. One reading takes some tenths of a
millisecond, as long as a short step."""


class LoopCost:
    """Compares a game's CPU time per loop with the CPU time per loop in its first episodes.

    Reports say that the real game slows down over hours. Other programs do not change CPU time.
    """

    def __init__(self) -> None:
        self.growth: float | None = None
        """The smaller of the two newest ratios (cost / first cost); None before two ratios
        exist."""
        self._ratio: float | None = None
        self._first: _Use | None = None
        self._recent = _NOTHING
        self._episodes = 0
        self._read: tuple[float, int, float] | None = None
        """CPU time, loops played and clock time at the newest reading."""

    def count_episode(self) -> None:
        """Record that an episode has ended."""
        self._episodes += 1

    def is_due(self, now_s: float) -> bool:
        """True if the CPU time should be read now and given to `note`."""
        return self._read is None or now_s - self._read[2] >= _LOOK_EVERY_S

    def note(self, cpu_s: float, loops: int, now_s: float) -> None:
        """Record the CPU time that the game has used and the loops that it has played in all."""
        before, self._read = self._read, (cpu_s, loops, now_s)
        episodes, self._episodes = self._episodes, 0
        if before is None:
            return  # the CPU time of the launch and the first map does not count
        self._recent = self._recent.plus(cpu_s - before[0], loops - before[1], episodes)
        if not self._recent.is_enough:
            return
        newest, self._recent = self._recent, _NOTHING
        if self._first is None:
            self._first = newest
        else:
            before_ratio, self._ratio = self._ratio, newest.cost / self._first.cost
            if before_ratio is not None:
                self.growth = min(before_ratio, self._ratio)


REFUSED: Final = "the game refused to show its state, as one that is over"
WITHOUT_RESULT: Final = "the game ended without a result"
SILENT: Final = "the game did not answer any more and did nothing"
_STANDS_STILL: Final = "the game loop stood still"
_ALL_GONE: Final = "no own unit was left"
_NOT_OURS: Final = "the own units could not be commanded any more"

_STANDSTILL_S: Final = 1.0
"""Seconds of standstill that count as the end; a running game plays 22 loops in that time."""
LONGEST_LOOK_S: Final = 0.1
"""At most this much of the time between two observations counts as standstill, because this process
may have been stopped in between."""
_LASTING_LOOPS: Final = 22
"""A sign of the end counts if it lasts for this many loops, a second in real time."""
_CANNOT_CONTROL: Final = int(error_pb2.YouCantControlThatUnit)


class EndSigns:
    """Looks for signs that a game in real time is over although it does not report its end."""

    def begin(self, *, has_opponent: bool) -> None:
        """Begin an episode. If there is an opponent, the loss of all units is a sign of the end."""
        self._has_opponent = has_opponent
        self._loop = -1
        self._seen_s = self._still_since_s = 0.0
        self.stood_s = 0.0
        """How long the game loop has stood still. An observation adds at most `LONGEST_LOOK_S`."""
        self._had_units = False
        self._gone_since: int | None = None
        self._obeyed = False
        self._disobeyed_since: int | None = None

    def resume(self) -> None:
        """Record that the game was paused until now."""
        self._loop = -1

    def note_results(self, results: Sequence[int], loop: int) -> None:
        """Record the game's results for the actions that were sent at this loop."""
        if not results:
            return
        if any(result != _CANNOT_CONTROL for result in results):
            self._obeyed, self._disobeyed_since = True, None
        elif self._disobeyed_since is None:
            self._disobeyed_since = loop

    def look(self, observed: Observed, now_s: float, others_answered_s: float = math.inf) -> str:
        """The sign that the game is over, if the observation at `now_s` shows one; else empty.

        At `others_answered_s` the other game of a match answered last. If the other game has
        stopped since, this game stands still too, which is a fault and not the end.
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
    """A copy of `last` with the events of `told`; the events of `last` were delivered before."""
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
