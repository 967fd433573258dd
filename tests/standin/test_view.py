"""The observation that is kept and updated has the bytes of one that is filled anew."""

from __future__ import annotations

import numpy as np
import pytest
from s2clientprotocol import debug_pb2 as debug_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.standin.abilities import ABILITIES
from sc2pool.standin.unit_types import UNIT_TYPES

COLLECT = {
    "kind": "collect",
    "target": "Beacon_Terran",
    "count": 2,
    "reach": 2.0,
    "min_distance": 5.0,
    "score": 1,
    "taken": "moves",
}


def _disturb(session, command, rng: np.random.Generator) -> None:
    """Commands for some units, and a birth, a death or other values."""
    units = list(session.observe().raw_data.units)
    group = [unit for unit in units if unit.owner == 1 and rng.random() < 0.5]
    if group:
        ability = ABILITIES[rng.integers(len(ABILITIES))].id
        point = rng.uniform(20, 40, 2).tolist()
        session.act(command(group, ability, point, queued=bool(rng.integers(2))))
    match rng.integers(4):
        case 0:
            kind = UNIT_TYPES[rng.integers(len(UNIT_TYPES))].id
            session.create((kind, int(rng.choice([1, 2, 16])), *rng.uniform(20, 40, 2)))
        case 1:
            session.kill([units[rng.integers(len(units))].tag])
        case 2:
            change = debug_pb.DebugSetUnitValue(
                unit_value=rng.choice(list(debug_pb.DebugSetUnitValue.UnitValue.values())),
                value=rng.uniform(1, 50),
                unit_tag=units[rng.integers(len(units))].tag,
            )
            session.debug(debug_pb.DebugCommand(unit_value=change))


@pytest.mark.parametrize("fog", [False, True])
def test_a_kept_observation_has_the_bytes_of_a_new_one(offline, command, fog):
    rng = np.random.default_rng(1)
    everyone = [(kind.id, owner) for kind in UNIT_TYPES for owner in (1, 2)]
    places = ((*one, 22 + 1.5 * i, 30) for i, one in enumerate(everyone))
    offline.arena(*places, rules=[COLLECT], fog=fog)
    sizes = set()
    for _ in range(60):
        _disturb(offline, command, rng)
        offline.step(int(rng.integers(1, 9)))
        if offline.state.status.name != "IN_GAME":
            break
        request = sc_pb.RequestObservation(disable_fog=bool(rng.integers(2)))
        offline.ask(observation=request)  # deaths and errors appear once
        seen = offline.ask_bytes(observation=request)
        kept, offline.state.view = offline.state.view, None
        assert seen == offline.ask_bytes(observation=request)
        offline.state.view = kept
        sizes.add(len(seen))
    assert len(sizes) > 20
