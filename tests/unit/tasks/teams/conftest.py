"""Hand-built battles: the units of both sides as the game would send them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from s2clientprotocol import raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.pool.queues.layout import Array
from sc2pool.protocol.observed import Observed
from sc2pool.tasks.teams.battle import Battle, Ground, available
from sc2pool.tasks.teams.features import Sizes, observations, state
from sc2pool.tasks.teams.scenarios import SCENARIOS, Rules

FIRST_COPY = 2057
"""The first number of a map's own unit types."""
Seen = Callable[..., Observed]


def unit(
    tag: int, unit_type: int, x: float, y: float, *, enemy: bool = False, **fields: Any
) -> raw_pb2.Unit:
    """The message of a unit, which has full health unless `fields` set another health."""
    numbers = {"health": 50.0, "health_max": 50.0} | fields
    message = raw_pb2.Unit(
        tag=tag,
        unit_type=unit_type,
        alliance=raw_pb2.Enemy if enemy else raw_pb2.Self,
        owner=2 if enemy else 1,
        **numbers,
    )
    message.pos.x, message.pos.y = x, y
    return message


def observed(units: Sequence[raw_pb2.Unit]) -> Observed:
    """The observation that shows some units."""
    reply = sc_pb.ResponseObservation()
    reply.observation.raw_data.units.extend(units)
    return Observed.of(reply)


def seen_by(battle: Battle, ground: Ground, elapsed: float = 0.0) -> tuple[Array, Array]:
    """What each agent observes before the first action, and the state."""
    n_actions = Sizes(battle.scenario, battle.rules).n_actions
    last = np.zeros((len(battle.allies.tags), n_actions), np.float32)
    seen = observations(battle, ground, available(battle, ground), last, elapsed)
    return seen, state(battle, ground, last, elapsed, seen)


@pytest.fixture
def seen() -> Seen:
    """Builds the observation that shows some units."""
    return observed


@pytest.fixture
def ground() -> Ground:
    """Ground of 32 by 32 cells; units can walk from y = 8 to 24."""
    walkable = np.zeros((32, 32), dtype=np.bool_)
    walkable[:, 8:24] = True
    return Ground((32, 32), (32.0, 32.0), walkable, np.full((32, 32), 0.5))


def marines(n: int, first_tag: int = 1, *, x: float = 9.0, **fields: Any) -> list[raw_pb2.Unit]:
    """The team's marines, one above the other."""
    return [unit(first_tag + i, FIRST_COPY, x, 16.0 + i, **fields) for i in range(n)]


def enemies(n: int, first_tag: int = 101, *, x: float = 23.0, **fields: Any) -> list[raw_pb2.Unit]:
    """The enemy's marines, one above the other."""
    return [unit(first_tag + i, 48, x, 16.0 + i, enemy=True, **fields) for i in range(n)]


@pytest.fixture
def begin(seen: Seen) -> Callable[..., Battle]:
    """Begins a battle of a scenario with some units."""

    def build(
        units: Sequence[raw_pb2.Unit], scenario: str = "3m", rules: Rules | None = None
    ) -> Battle:
        return Battle.begun(SCENARIOS[scenario], rules or Rules(), seen(units))

    return build


def medivacs_battle(**fields: Any) -> list[raw_pb2.Unit]:
    """All units of the scenario MMM; the team's medivac has half of its energy."""
    of_team = [FIRST_COPY] * 2 + [FIRST_COPY + 1] * 7
    own = [unit(1 + i, kind, 9.0 + 0.1 * i, 16.0) for i, kind in enumerate(of_team)]
    own.append(unit(10, FIRST_COPY + 2, 9.0, 17.0, energy=100.0, **fields))
    kinds = [51] * 2 + [48] * 7 + [54]
    others = [unit(101 + i, kind, 23.0, 16.0, enemy=True) for i, kind in enumerate(kinds)]
    return own + others
