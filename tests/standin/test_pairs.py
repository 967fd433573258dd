"""Pairs of units: the loop for few units and the arrays for many give the same results."""

from __future__ import annotations

import numpy as np
import pytest
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.standin.data.unit_types import UNIT_TYPES
from sc2pool.standin.simulation.fights import pairs
from sc2pool.standin.simulation.fights.pairs import Few, Many
from sc2pool.standin.simulation.world import World

MOVE, ATTACK = 16, 23
KINDS = [kind.id for kind in UNIT_TYPES]


def _world(rng: np.random.Generator, count: int, side_cells: float) -> World:
    """Units of all types and owners; some at the same point."""
    world = World()
    for _ in range(count):
        kind = UNIT_TYPES[rng.integers(len(UNIT_TYPES))]
        points = rng.uniform(20, 20 + side_cells, (1, 2)).repeat(rng.integers(1, 3), axis=0)
        world.spawn(kind, int(rng.choice([1, 2, 3, 16])), points.tolist())
    return world


@pytest.mark.parametrize("side_cells", [2.0, 10.0, 40.0])
@pytest.mark.parametrize("count", [2, 9, 60])
def test_the_loop_and_the_arrays_agree(count, side_cells):
    rng = np.random.default_rng(count)
    for _ in range(5):
        world = _world(rng, count, side_cells)
        if not world.walkers:
            continue
        few, many = Few(world), Many(world)
        few.measure()
        many.measure()
        assert few.pushes() == many.pushes()
        moving = {
            unit: tuple(rng.uniform(-0.2, 0.2, 2).tolist())
            for unit in few.units
            if rng.random() < 0.5
        }
        assert few.loops_until_contact(moving) == many.loops_until_contact(moving)
        for i in range(len(few.units)):
            nearest, gap = many.nearest_enemy(i)
            assert few.nearest_enemy(i) == ((nearest, gap) if np.isfinite(gap) else (-1, np.inf))


@pytest.mark.parametrize("count", [3, 40])
def test_a_fight_is_the_same_to_the_byte(session_for, command, monkeypatch, count):
    def play(many: int) -> list[bytes]:
        monkeypatch.setattr(pairs, "MANY", many)
        rng = np.random.default_rng(count)
        session = session_for()
        session.arena(
            *(
                (int(rng.choice(KINDS)), int(rng.choice([1, 2])), *rng.uniform(20, 34, 2))
                for _ in range(count)
            ),
            (48, 1, 30, 30, 2),
        )
        seen = []
        for _ in range(25):
            mine = [unit for unit in session.observe().raw_data.units if unit.owner == 1]
            for ability in (MOVE, ATTACK):
                group = [unit for unit in mine if rng.random() < 0.2]
                if group:
                    session.act(command(group, ability, rng.uniform(20, 34, 2).tolist()))
            session.step(8)
            seen.append(session.ask_bytes(observation=sc_pb.RequestObservation()))
        return seen

    assert play(many=2) == play(many=1000)
