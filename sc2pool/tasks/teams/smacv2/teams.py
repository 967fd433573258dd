"""Random teams: the units of both sides of a battle, and where they begin.

    team        each unit's type is drawn by weight; a team of nothing but exceptions is drawn again
    enemies     the same team; if there are more of them, the rest is drawn as a team of its own
    reflect     the agents anywhere west of the middle, the enemies at the same places in the east
    surrounded  the agents in the middle; the enemies in 1 to 4 groups on the map's diagonals

Source: `smacv2/env/starcraft2/distributions.py`. Rule: a draw depends on its generator alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

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
"""The types that each of SMACv2's maps allows, in the order in which SMACv2 numbers them. All are
the same map of the game."""

_BESIDE_MIDDLE = 1.0
"""How far west of the middle agents begin at most: units that are created in one place get in each
other's way, by SMACv2's word."""
_OFFSET = 2.0
"""How near the middle a group of enemies begins, along both axes; for the same reason."""
_DIAGONALS = ((0, 0), (0, 1), (1, 1), (1, 0))
"""The corners of the map, in lengths of it."""

Placing = Literal["surrounded_and_reflect", "reflect_position", "surrounded"]


@dataclass(frozen=True)
class Drawn:
    """The draw for a battle.

    Attributes:
        allies: the type of each of the team's units.
        enemies: of each of the enemy's.
        ally_places: where they begin, (n, 2); enemy_places likewise.
    """

    allies: tuple[UnitType, ...]
    enemies: tuple[UnitType, ...]
    ally_places: Floats
    enemy_places: Floats


@dataclass(frozen=True)
class RandomTeams(Contest):
    """How battles of random teams are drawn.

    Attributes:
        kinds: all types that there may be, of which a battle may have fewer.
        drawn_kinds: the types that are drawn.
        weights: how probable each of them is.
        exceptions: the types that make no team by themselves.
        placing: how places are drawn.
        p_reflect: with `surrounded_and_reflect`, how probable it is that they are reflected.
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
