"""Pairs of units: the loop for few, the arrays for many and the compiled loop are the same."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.data.unit_types import UNIT_TYPES
from sc2standin.simulation.fights import pair_loops
from sc2standin.simulation.fights.pairs import Few, Many
from sc2standin.simulation.world import World

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
def test_all_ways_agree(count, side_cells):
    rng = np.random.default_rng(count)
    for _ in range(5):
        world = _world(rng, count, side_cells)
        if not world.walkers:
            continue
        few, many = Few(world), Many(world)
        others = [many] if pair_loops.Compiled is None else [many, pair_loops.Compiled(world)]
        for one in (few, *others):
            one.measure()
        moving = {
            unit: tuple(rng.uniform(-0.2, 0.2, 2).tolist())
            for unit in few.units
            if rng.random() < 0.5
        }
        every = range(len(few.units))
        for other in others:
            assert few.pushes() == other.pushes()
            assert few.loops_until_contact(moving) == other.loops_until_contact(moving)
            for i in every:
                nearest, gap = other.nearest_enemy(i)
                assert few.nearest_enemy(i) == (nearest if np.isfinite(gap) else -1, gap)
                assert [few.gap(i, j) for j in every] == [other.gap(i, j) for j in every]


@pytest.mark.skipif(pair_loops.Compiled is None, reason="the compiled loop is not there")
def test_the_compiled_loop_knows_no_other_units():
    world = World()
    world.spawn(UNIT_TYPES[0], 1, [(20.0, 20.0)])
    compiled = pair_loops.Compiled(world)
    compiled.measure()
    for i in (-1, len(compiled.units)):
        with pytest.raises(IndexError):
            compiled.nearest_enemy(i)
        with pytest.raises(IndexError):
            compiled.gap(i, 0)


def test_it_is_left_out_if_it_is_asked_for():
    told = "from sc2standin.simulation.fights import pair_loops; print(pair_loops.Compiled)"
    environment = os.environ | {"SC2POOL_PURE": "1"}
    command = [sys.executable, "-c", told]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "None\n"


@pytest.mark.parametrize("count", [3, 40])
def test_a_fight_is_the_same_to_the_byte(session_for, command, pair_ways, count):
    def play() -> list[bytes]:
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

    first, *others = [play() for _ in pair_ways()]
    assert all(other == first for other in others)
