"""Hand-built battles of random teams."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from s2clientprotocol import raw_pb2

from sc2pool.tasks.teams.smac.battle import Battle
from sc2pool.tasks.teams.smac.ground import Ground
from sc2pool.tasks.teams.smac.rules import Rules
from sc2pool.tasks.teams.smac.scenarios import UnitType
from sc2pool.tasks.teams.smacv2.config import example_config, random_teams
from sc2pool.tasks.teams.smacv2.task import EXAMPLE_RULES
from sc2pool.tasks.teams.smacv2.teams import MAPS, begun
from tests.unit.tasks.teams.smac.conftest import observed, unit

FIRST_COPY = 3000
NAMES = sorted(kind.name for kinds in MAPS.values() for kind in kinds)
COPIES = {kind: FIRST_COPY + NAMES.index(kind.name) for kinds in MAPS.values() for kind in kinds}


def ally(tag: int, kind: UnitType, x: float, y: float, **fields: Any) -> raw_pb2.Unit:
    return unit(tag, COPIES[kind], x, y, **fields)


def enemy(tag: int, kind: UnitType, x: float, y: float, **fields: Any) -> raw_pb2.Unit:
    return unit(tag, kind.id, x, y, enemy=True, **fields)


@pytest.fixture
def ground() -> Ground:
    """32 by 32 cells on which units can walk everywhere."""
    return Ground((32, 32), (32.0, 32.0), np.ones((32, 32), np.bool_), np.full((32, 32), 0.5))


@pytest.fixture
def begin() -> Callable[..., Battle]:
    """Begins a battle of some units."""

    def build(
        units: Sequence[raw_pb2.Unit],
        map_name: str = "10gen_terran",
        rules: Rules = EXAMPLE_RULES,
        *,
        observe: bool = True,
    ) -> Battle:
        n = sum(one.owner == 1 for one in units)
        config = example_config(map_name, n, len(units) - n)
        config["team_gen"]["observe"] = observe
        teams = random_teams("any", map_name, config)
        return begun(teams, rules, COPIES, observed(units))

    return build
