"""How a game's next episode begins: by a restart if that is allowed and proven, else by a creation.

    begin ─► may_restart? ── yes ─► restart_game ─► first observation as after create_game? ─ no ┐
                  │ no                                      │ yes                                │
                  └────────► create_game, join_game ◄───────┼────────────────────────────────────┘
                                                            └─► episode

A restart costs a fraction of create_game. But in the real game it does not restore everything:
exhausted mineral fields stay away. And known clients do not restart games with a computer or a
Random race. So the first observation after a restart is compared with the one after create_game. If
they differ, restarts stop on this map.

Rules: all functions are pure; this module sends no requests.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from s2clientprotocol import common_pb2, raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.config import GameSetup
from sc2pool.game.program.settled import Settled

_VISIBLE: Final = b"\x02"
"""The value of a visible cell in `map_state.visibility`."""
World = tuple[GameSetup, Path]
"""Players and options, and the map file."""


@dataclass(frozen=True)
class Beginning:
    """The facts that must be the same in every first observation on a map."""

    units: Counter[tuple[int, int]]
    """Number of units by owner and type, without the enemy's."""
    enemies: Counter[tuple[int, int]]
    """Number of the enemy's units by owner and type. Under fog, chance decides how many are
    visible."""
    visibility: common_pb2.ImageData
    resources: Counter[str]
    """The sums of the visible mineral fields' and geysers' contents, and the score."""
    upgrades: frozenset[int]

    @classmethod
    def of(cls, first: sc_pb.Observation) -> Beginning:
        """Read it from an episode's first observation."""
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
        """The difference of a later beginning, in words; empty if both are equal.

        Args:
            later: the other beginning.
            area: the map's playable area. If it is None (unknown), enemies are not compared, as
                under fog.
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
    """Decides how the episodes of one game process begin.

    Args:
        settled: the findings of `sc2pool doctor` about this installation.
    """

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
        """Note that a game of this world was created."""
        self._world = world
        self._seeded = seed is not None
        self._created = None

    def match_created(self) -> None:
        """Note that a game of two players was created, which cannot be restarted."""
        self._world = None

    def lost(self) -> None:
        """Note that the game ended without a report: it is not restarted."""
        self._world = None

    def difference(
        self, beginning: Beginning, area: common_pb2.RectangleI | None, *, restarted: bool
    ) -> str:
        """Check an episode's first observation.

        Args:
            beginning: the facts of the observation.
            area: see `Beginning.difference`.
            restarted: whether the episode began with a restart.

        Returns:
            The difference that the restart has left, in words. Empty if the restart is faithful, or
            the game was created. After a difference, restarts stop in this world.
        """
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
