"""From one state, a game must continue in only one way: in steps of any size, compiled or not.

The tests of pairs of units also check which of two units gives way to the other.
"""

from __future__ import annotations

import math
import os
import sys

import numpy as np
import pytest
from s2clientprotocol import debug_pb2 as debug_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.data.unit_types.files import UNIT_TYPES
from sc2standin.simulation.fights import pairs as pair_loops
from sc2standin.simulation.fights.pairs import Pairs
from sc2standin.simulation.units import way_to
from sc2standin.simulation.world import World
from tests.standin.maps.test_smac import begin as begin_smac
from tests.standin.sessions import OfflineSession, cheat, place_of
from tests.support.programs import run

LOOPS = 240
SCV, MARINE, ROACH, OBSERVER, TEMPLAR, TUMOR, INFESTOR = 45, 48, 110, 82, 76, 87, 111
BARRACKS, BARRACKS_LAB, TECH_LAB, BAY = 21, 37, 5, 22
MOVE, SCAN_MOVE, ATTACK, FUNGAL, REPAIR = 16, 19, 23, 74, 3685
STIMPACK, STIM, WEAPONS = 730, 3675, 3698


def _a_fight(session: OfflineSession) -> None:
    session.start("DefeatRoaches", seed=5)
    session.order(session.units(MARINE), ATTACK, place_of(session.units(ROACH)[0]))


def _a_detector_on_its_way(session: OfflineSession) -> None:
    session.arena((OBSERVER, 1, 12, 30), (MARINE, 1, 30, 30), (TEMPLAR, 2, 44, 30))
    session.order(session.one(OBSERVER), SCAN_MOVE, (40, 30))


def _fog(session: OfflineSession) -> None:
    session.arena((MARINE, 1, 12, 12), fog=True)
    session.order(session.one(MARINE), MOVE, (50, 12))


def _a_spell(session: OfflineSession) -> None:
    session.arena((INFESTOR, 1, 20, 30), (MARINE, 2, 28, 30, 5))
    session.state.game.world.owned_by(1)[0].energy = 200.0
    session.order(session.one(INFESTOR), FUNGAL, (28, 30))


def _a_repair(session: OfflineSession) -> None:
    session.start("Melee/Simple64")
    session.create((BARRACKS, 1, 24.5, 45.5), (SCV, 1, 24.5, 42.0))
    barracks = session.one(BARRACKS)
    session.state.game.world.by_tag[barracks.tag].life = 500.0
    session.order(session.units(SCV)[-1], REPAIR, target=barracks)


def _upgrades(session: OfflineSession) -> None:
    session.start("Melee/Simple64")
    session.create((BARRACKS, 1, 24.5, 45.5), (BAY, 1, 30.5, 45.5), (MARINE, 1, 30, 50, 6))
    session.create((TECH_LAB, 1, 27.0, 45.0))
    cheat(session, debug_pb.all_resources, debug_pb.fast_build, debug_pb.tech_tree)
    session.order(session.one(BARRACKS_LAB), STIMPACK)
    session.order(session.one(BAY), WEAPONS)
    session.step(20)
    session.create((MARINE, 2, 34.0, 50.0, 6))
    assert session.order(session.units(MARINE), STIM) == 1


@pytest.mark.parametrize(
    "begin",
    [
        *(_a_fight, _a_detector_on_its_way, _fog, _a_spell, _a_repair, _upgrades),
        lambda one: one.arena((TUMOR, 2, 20.5, 30.5), (MARINE, 1, 40, 40), fog=True),
        lambda one: one.start("BuildMarines", seed=4),
        lambda one: begin_smac(one, "corridor"),
        lambda one: begin_smac(one, "MMM"),
    ],
    ids="fight detector fog spell repair upgrades creep economy zealots medivacs".split(),
)
def test_steps_of_any_size_give_the_same_bytes(session_for, begin):
    def play(size: int) -> bytes:
        session = session_for()
        begin(session)
        for _ in range(LOOPS // size):
            session.step(size)
        return session.ask_bytes(observation=sc_pb.RequestObservation())

    assert play(1) == play(8) == play(LOOPS)


KINDS = [kind.id for kind in UNIT_TYPES]


def _world(rng: np.random.Generator, count: int, side_cells: float) -> World:
    """Units of all types and owners; some at the same point."""
    world = World()
    for _ in range(count):
        kind = UNIT_TYPES[rng.integers(len(UNIT_TYPES))]
        points = rng.uniform(20, 20 + side_cells, (1, 2)).repeat(rng.integers(1, 3), axis=0)
        world.spawn(kind, int(rng.choice([1, 2, 3, 16])), points.tolist())
    return world


@pytest.mark.skipif(pair_loops.Compiled is None, reason="the compiled loop is not there")
@pytest.mark.parametrize("side_cells", [2.0, 10.0, 40.0])
@pytest.mark.parametrize("count", [2, 9, 60])
def test_both_ways_agree(count, side_cells):
    rng = np.random.default_rng(count)
    for _ in range(5):
        world = _world(rng, count, side_cells)
        if not world.walkers:
            continue
        for unit in world.walkers:
            unit.held_up, unit.turn = bool(rng.random() < 0.3), int(rng.integers(-1, 2))
            unit.engaged, unit.chases = (
                rng.choice([0, *world.by_tag], 2).tolist() if rng.random() < 0.5 else (0, 0)
            )
        both = [Pairs(world), pair_loops.Compiled(world)]
        units = both[0].units
        every = range(len(units))
        ways = [
            way_to(unit, *rng.uniform(20, 20 + side_cells, 2).tolist())
            if rng.random() < 0.7
            else None
            for unit in units
        ]
        velocities = rng.uniform(-0.2, 0.2, (2, len(units))).tolist()
        moving = {
            unit: tuple(rng.uniform(-0.2, 0.2, 2).tolist()) for unit in units if rng.random() < 0.5
        }
        told = []
        for pairs in both:
            turns = [unit.turn for unit in units]
            steered = ways.copy()
            pairs.measure()
            pairs.take_note(steered)
            pairs.steer(steered)
            told.append(
                (
                    steered,
                    [unit.turn for unit in units],
                    pairs.keep_apart(*velocities),
                    pairs.loops_until_contact(moving),
                    [pairs.nearest_enemy(i) for i in every],
                    [[pairs.gap(i, j) for j in every] for i in every],
                )
            )
            for unit, turn in zip(units, turns, strict=True):
                unit.turn = turn
        assert told[0] == told[1]


ZEALOT, COLOSSUS = (
    next(kind for kind in UNIT_TYPES if kind.name == name) for name in ("Zealot", "Colossus")
)


def _facing(*points: tuple[float, float]) -> tuple[Pairs, list]:
    """A zealot walks along x to an enemy 3 cells away; zealots at `points` fight the enemy."""
    world = World()
    world.spawn(ZEALOT, 1, [(20.0, 20.0), *points])
    world.spawn(ZEALOT, 2, [(23.0, 20.0)])
    walker, *others, enemy = world.walkers
    for unit in (*others, enemy):
        unit.engaged = walker.tag if unit is enemy else enemy.tag
    walker.chases = enemy.tag
    pairs = pair_loops.pairs_of(world)
    pairs.measure()
    ways = [way_to(walker, enemy.x, enemy.y), *[None] * len(others), None]
    pairs.take_note(ways)
    return pairs, ways


def test_a_unit_walks_straight_to_its_target_and_around_its_friends_that_fight():
    pairs, ways = _facing()
    pairs.steer(ways)
    assert ways[0] == (3.0, 0.0, 3.0)
    pairs, ways = _facing((21.0, 20.0))
    pairs.steer(ways)
    x, y, length = ways[0]
    assert y > 0.0, "of two sides that are as good it takes the left one"
    assert math.hypot(x, y) == pytest.approx(length)
    assert abs(y) / length >= 2 * ZEALOT.room * 0.98, "it passes without a touch"
    pairs, ways = _facing((21.0, 20.05))
    pairs.units[0].turn = 1
    pairs.steer(ways)
    assert ways[0][1] > 0.0, "it keeps to its side"
    pairs.units[0].turn, ways[0] = 0, (3.0, 0.0, 3.0)
    pairs.steer(ways)
    assert ways[0][1] < 0.0, "the other one is nearer"


def test_a_unit_that_is_surrounded_walks_straight_on():
    angles = [math.pi / 4 * k for k in range(8)]
    pairs, ways = _facing(*((20 + math.cos(a), 20 + math.sin(a)) for a in angles))
    pairs.steer(ways)
    assert ways[0] == (3.0, 0.0, 3.0)


def test_nobody_pushes_aside_a_unit_that_fights():
    pairs, _ = _facing((20.5, 20.0))
    vx, vy = pairs.keep_apart([0.0] * 3, [0.0] * 3)
    assert (vx[1], vy[1]) == (0.0, 0.0)
    assert vx[0] == -ZEALOT.step, "who gives way does so no faster than it walks"
    world = World()
    world.spawn(ZEALOT, 1, [(20.0, 20.0), (20.7, 20.0)])
    pairs = pair_loops.pairs_of(world)
    pairs.measure()
    vx, vy = pairs.keep_apart([0.0] * 2, [0.0] * 2)
    assert vx == pytest.approx([-0.025, 0.025]), "of two that do not, each gives way by a half"


def test_units_keep_the_room_of_their_type_and_not_their_radius():
    """By the game's data a zealot has a radius of 0.5, but it keeps only a radius of 0.375 free."""
    world = World()
    world.spawn(ZEALOT, 1, [(20.0, 20.0), (20.76, 20.0)])
    world.spawn(COLOSSUS, 1, [(20.4, 20.0)])
    pairs = pair_loops.pairs_of(world)
    pairs.measure()
    assert pairs.keep_apart([0.0] * 3, [0.0] * 3) is None, "a colossus walks over all of them"


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
    told = "from sc2standin.simulation.fights import pairs; print(pairs.Compiled)"
    environment = os.environ | {"SC2POOL_PURE": "1"}
    assert run(sys.executable, "-c", told, env=environment).stdout == "None\n"


@pytest.mark.parametrize("count", [3, 40])
def test_a_fight_is_the_same_to_the_byte(session_for, monkeypatch, count):
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
                    session.order(group, ability, rng.uniform(20, 34, 2).tolist())
            session.step(8)
            seen.append(session.ask_bytes(observation=sc_pb.RequestObservation()))
        return seen

    first = play()
    monkeypatch.setattr(pair_loops, "Compiled", None)
    assert play() == first
