"""Random legal commands on every map: each request is answered in time, and without an error.

    pytest tests/standin/test_fuzz.py --fuzz-steps 100000 --timeout 0

is the long form; the short one plays a few hundred steps a map.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from s2clientprotocol import raw_pb2 as raw_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.standin.abilities import ABILITIES

MAPS = sorted(
    Path(entry.name).stem
    for entry in resources.files("sc2pool.standin").joinpath("maps").iterdir()
    if entry.name.endswith(".SC2Map")
)
SEED = 1
MAP_CELLS = 64
LIMIT_S = 20.0
"""Longest time for one reply, on a machine that does other work."""


def _place(rng: np.random.Generator, group: list[raw_pb.Unit]) -> tuple[float, float]:
    """Where one of the group is, the middle of the group, or anywhere on the map."""
    at = np.array([(unit.pos.x, unit.pos.y) for unit in group])
    places = at[rng.integers(len(at))], at.mean(axis=0), rng.uniform(0, MAP_CELLS, 2)
    x, y = places[rng.integers(len(places))].tolist()
    return x, y


def _command(rng: np.random.Generator, units: list[raw_pb.Unit], command) -> sc_pb.Action:
    """An ability of the data tables for a group of own units, on a place, a unit or nothing."""
    mine = [unit for unit in units if unit.owner == 1]
    group = [mine[i] for i in rng.permutation(len(mine))[: rng.integers(1, len(mine) + 1)]]
    target: dict[str, object] = {}
    match rng.integers(4):
        case 0 | 1:
            target["point"] = _place(rng, group)
        case 2:
            target["target"] = units[rng.integers(len(units))].tag
    ability = ABILITIES[rng.integers(len(ABILITIES))]
    return command(group, ability.id, queued=bool(rng.integers(2)), **target)


@pytest.mark.parametrize("name", MAPS)
def test_every_legal_command_is_answered(game, command, name, request):
    wire = game.connect()
    wire.socket.settimeout(LIMIT_S)
    wire.start(name, seed=SEED)
    rng = np.random.default_rng(SEED)
    for _ in range(request.config.getoption("--fuzz-steps")):
        seen = wire.ask(observation=sc_pb.RequestObservation())
        if seen.status == sc_pb.ended:
            restarted = wire.ask(restart_game=sc_pb.RequestRestartGame())
            assert not restarted.error
            if restarted.restart_game.need_hard_reset:
                wire.ask(leave_game=sc_pb.RequestLeaveGame())
                wire.start(name, seed=int(rng.integers(1 << 32)))
            continue
        units = list(seen.observation.observation.raw_data.units)
        actions = [_command(rng, units, command) for _ in range(rng.integers(4))]
        loops = int(rng.choice([1, 2, 8, 22]))
        try:
            acted = wire.ask(action=sc_pb.RequestAction(actions=actions))
            stepped = wire.ask(step=sc_pb.RequestStep(count=loops))
        except TimeoutError:
            pytest.fail(f"no reply within {LIMIT_S:g} s; units: {units}; actions: {actions}")
        assert not acted.error
        assert not stepped.error
