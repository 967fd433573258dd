"""Random teams: the units of both sides of a battle, their places and the numbers of the agents.

    team        each unit's type is drawn by weight; a team of only exceptions is drawn again
    enemies     the same team; if there are more of them, the rest is drawn as a second team
    reflect     the agents anywhere west of the middle, the enemies at the same places in the east
    surrounded  the agents in the middle; the enemies in 1 to 4 groups on the map's diagonals

The map has its own types for the team's units, which act only on orders. They are the last nine of
the game's types, in the order of the standard types' names. The enemies have standard types.

Sources: `smacv2/env/starcraft2/distributions.py`; `StarCraft2Env._init_ally_unit_types`,
`_create_new_team` and `init_units`. Rules: a draw depends only on its random generator. Agents are
numbered by type and place, enemies in the game's order. Types are never looked up by name, because
names depend on the game's language.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from weakref import WeakKeyDictionary

import numpy as np
from s2clientprotocol import common_pb2, debug_pb2, raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.errors import ConfigError
from sc2pool.foreign import printable
from sc2pool.game.game import Game
from sc2pool.protocol.observed import Observed
from sc2pool.tasks.teams.smac.battle import Army, Battle, by_type_and_place, units_of
from sc2pool.tasks.teams.smac.scenarios import (
    BANELING,
    COLOSSUS,
    HYDRALISK,
    MARAUDER,
    MARINE,
    MEDIVAC,
    STALKER,
    ZEALOT,
    ZERGLING,
    Contest,
    Rules,
    UnitType,
)
from sc2pool.units import Floats

MAP_NAME = "32x32_flat"
MAP_CELLS = 32
"""Width and height of the map."""
LIMIT = 200
"""Env steps after which a battle is over."""
MAPS: dict[str, tuple[UnitType, ...]] = {
    "10gen_terran": (MARINE, MARAUDER, MEDIVAC),
    "10gen_protoss": (STALKER, ZEALOT, COLOSSUS),
    "10gen_zerg": (ZERGLING, HYDRALISK, BANELING),
}
"""The types of each of SMACv2's maps, in the order in which SMACv2 numbers them. All are the same
map of the game."""

_BESIDE_MIDDLE = 1.0
"""The least distance of agents from the middle, along x, in cells. According to SMACv2, units that
are created in one place block each other."""
_OFFSET = 2.0
"""The least distance of enemies from the middle, along both axes, for the same reason."""
_DIAGONALS = ((0, 0), (0, 1), (1, 1), (1, 0))
"""The corners of the map, in lengths of the map."""

Placing = Literal["surrounded_and_reflect", "reflect_position", "surrounded"]


@dataclass(frozen=True)
class Drawn:
    """The draw for a battle.

    Attributes:
        allies: the type of each of the team's units.
        enemies: the type of each of the enemy's units.
        ally_places, enemy_places: the units' first positions, (n, 2).
    """

    allies: tuple[UnitType, ...]
    enemies: tuple[UnitType, ...]
    ally_places: Floats
    enemy_places: Floats


@dataclass(frozen=True)
class RandomTeams(Contest):
    """How battles of random teams are drawn.

    Attributes:
        kinds: all possible types. A battle may have fewer.
        drawn_kinds: the types that are drawn.
        weights: the probability of each drawn type.
        exceptions: the types that do not form a team by themselves.
        placing: how places are drawn.
        p_reflect: with `surrounded_and_reflect`, the probability of reflected places.
        area: width and height of the part of the map on which units begin.
    """

    drawn_kinds: tuple[UnitType, ...]
    weights: tuple[float, ...]
    exceptions: frozenset[UnitType]
    placing: Placing
    p_reflect: float
    area: tuple[float, float]

    def draw(self, rng: np.random.Generator) -> Drawn:
        """The teams and places of a battle."""
        team = self._team(rng, self.n_agents)
        more = self.n_enemies - self.n_agents
        enemies = (*team, *self._team(rng, more)) if more > 0 else team[: self.n_enemies]
        reflects = self.placing == "reflect_position" or (
            self.placing == "surrounded_and_reflect" and rng.random() <= self.p_reflect
        )
        places = self._reflected(rng) if reflects else self._surrounded(rng)
        return Drawn(team, enemies, *places)

    def _team(self, rng: np.random.Generator, n: int) -> tuple[UnitType, ...]:
        while True:
            chosen = rng.choice(len(self.drawn_kinds), size=n, p=self.weights)
            team = tuple(self.drawn_kinds[i] for i in chosen)
            if not self.exceptions.issuperset(team):
                return team

    def _reflected(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        width, height = self.area
        n, m = self.n_agents, self.n_enemies
        allies = rng.uniform((0, 0), (width / 2 - _BESIDE_MIDDLE, height), (n, 2))
        enemies = np.column_stack([width - allies[:m, 0], allies[:m, 1]])
        if m > n:
            more = rng.uniform((width / 2, 0), (width, height), (m - n, 2))
            enemies = np.concatenate([enemies, more])
        return allies, enemies

    def _surrounded(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        middle = np.divide(self.area, 2)
        n_groups = int(rng.integers(1, len(_DIAGONALS) + 1))
        members = rng.multinomial(self.n_enemies, np.full(n_groups, 1 / n_groups))
        share = rng.uniform(size=(n_groups, 1))
        chosen = rng.choice(len(_DIAGONALS), size=n_groups, replace=False)
        corners = np.array(_DIAGONALS)[chosen]
        nearest = middle + np.where(corners == 1, _OFFSET, -_OFFSET)
        groups = nearest * share + corners * self.area * (1 - share)
        return np.tile(middle, (self.n_agents, 1)), np.repeat(groups, members, axis=0)


_COPIED = sorted({kind for kinds in MAPS.values() for kind in kinds}, key=lambda kind: kind.name)
"""The types of which the map has copies for the team, in the copies' order."""
_TEAM, _ENEMY = 1, 2
"""The numbers of the players."""
_first_copies: WeakKeyDictionary[Game, int] = WeakKeyDictionary()
"""The id of the first copy, which is the same in all episodes of a game process."""


async def copy_ids(game: Game) -> dict[UnitType, int]:
    """The id of the team's copy of each type on this map."""
    first = _first_copies.get(game)
    if first is None:
        asked = sc_pb.Request(data=sc_pb.RequestData(unit_type_id=True))
        first = len((await game.request(asked)).data.units) - len(_COPIED)
        _first_copies[game] = first
    return {kind: first + i for i, kind in enumerate(_COPIED)}


async def create(game: Game, drawn: Drawn, copies: dict[UnitType, int]) -> None:
    """Let the game create both sides with its next loop.

    Raises:
        ConfigError: the game refuses, because the map lacks the types or places.
    """
    own = [copies[kind] for kind in drawn.allies]
    others = [kind.id for kind in drawn.enemies]
    units = [
        *_births(_TEAM, own, drawn.ally_places),
        *_births(_ENEMY, others, drawn.enemy_places),
    ]
    reply = await game.request(sc_pb.Request(debug=sc_pb.RequestDebug(debug=units)))
    if reply.error:
        words = printable(", ".join(reply.error))
        raise ConfigError(f"the game does not create the units: {words}")


def _births(player: int, unit_types: Sequence[int], places: Floats) -> list[debug_pb2.DebugCommand]:
    return [
        debug_pb2.DebugCommand(
            create_unit=debug_pb2.DebugCreateUnit(
                unit_type=unit_type, owner=player, pos=common_pb2.Point2D(x=x, y=y), quantity=1
            )
        )
        for unit_type, (x, y) in zip(unit_types, places.tolist(), strict=True)
    ]


def begun(
    teams: RandomTeams, rules: Rules, copies: dict[UnitType, int], observed: Observed
) -> Battle | None:
    """The battle of an observation; None if units are still missing."""
    own = sorted(units_of(observed, raw_pb2.Self), key=by_type_and_place)
    enemies = units_of(observed, raw_pb2.Enemy)
    if (len(own), len(enemies)) != (teams.n_agents, teams.n_enemies):
        return None
    allies = _side(own, teams.kinds, {copies[kind]: i for i, kind in enumerate(teams.kinds)})
    others = _side(enemies, teams.kinds, {kind.id: i for i, kind in enumerate(teams.kinds)})
    if allies is None or others is None:
        return None
    return Battle(teams, rules, allies, others, observed, recovery_counts=False)


def _side(
    units: Sequence[raw_pb2.Unit], kinds: tuple[UnitType, ...], index_of: dict[int, int]
) -> Army | None:
    """The units as a side; None if a unit has another type."""
    if any(unit.unit_type not in index_of for unit in units):
        return None
    return Army(units, kinds, [index_of[unit.unit_type] for unit in units])
