"""Tests the mini-games with a town: counts and structures, actions, and images."""

from __future__ import annotations

import numpy as np
import pytest
from s2clientprotocol import raw_pb2

from sc2pool import commands
from sc2pool.tasks.minigames.geometry import PlayableArea
from sc2pool.tasks.minigames.scripted import build_marines, collect_minerals_and_gas
from sc2pool.tasks.minigames.town import (
    BARRACKS,
    COMMAND_CENTER,
    FOOTPRINTS,
    GEYSER,
    MINERAL_FIELD,
    REFINERY,
    SCV,
    SUPPLY_DEPOT,
    Town,
    take,
)
from sc2pool.tasks.minigames.town_games import (
    BUILD_BARRACKS,
    BUILD_DEPOT,
    BUILD_REFINERY,
    GATHER_GAS,
    GATHER_MINERALS,
    RESOURCE_STEPS,
    TRAIN_MARINE,
    TRAIN_SCV,
    WAIT,
    BuildMarines,
    BuildMarinesImage,
    CollectMineralsAndGas,
    CollectMineralsAndGasImage,
)
from sc2pool.units import Kind

# ---- a town --------------------------------------------------------------------------------------


NEUTRAL = raw_pb2.Neutral
OWN = raw_pb2.Self


@pytest.fixture
def town(unit, state):
    """Builds a town around (22, 30): a command centre, two fields to the left, a geyser above."""

    def build(*more: raw_pb2.Unit, **shown: int) -> Town:
        seen = state(
            unit(Kind(COMMAND_CENTER, OWN), 22, 30, tag=100, build_progress=1),
            unit(Kind(MINERAL_FIELD, NEUTRAL), 15, 29.5, tag=101, build_progress=1),
            unit(Kind(MINERAL_FIELD, NEUTRAL), 15, 31.5, tag=102, build_progress=1),
            unit(Kind(GEYSER, NEUTRAL), 22.5, 37.5, tag=103, build_progress=1),
            *more,
            **shown,
        )
        found = Town(PlayableArea(10, 20, 34, 40))
        found.update(seen)
        return found

    return build


@pytest.fixture
def worker(unit):
    """Builds an SCV, with an order or idle."""

    def build(tag: int, x: float, y: float, ability_id: int = 0, target: int = 0) -> raw_pb2.Unit:
        scv = unit(Kind(SCV, OWN), x, y, tag=tag, build_progress=1)
        if ability_id:
            scv.orders.add(ability_id=ability_id, target_unit_tag=target)
        return scv

    return build


def test_vector_of_a_town(town, worker, unit):
    depot = unit(Kind(SUPPLY_DEPOT, OWN), 26, 24, tag=5, build_progress=1)
    site = unit(Kind(SUPPLY_DEPOT, OWN), 30, 24, tag=6, build_progress=0.5)
    builder = worker(2, 30, 25, commands.BUILD_SUPPLY_DEPOT)
    seen = town(worker(1, 20, 30), builder, depot, site, minerals=300, food_used=20, food_cap=23)
    vector = seen.vector()
    assert vector[:4] == pytest.approx([0.3, 0.1, 23 / 200, 11 / 20])
    assert vector[4:7] == pytest.approx([2 / 50, 1 / 12, 0])
    assert vector[7:] == pytest.approx([1 / 20, 1 / 4]), "a site and its builder are one"


def test_two_workers_go_to_each_field_the_nearest_first(town, worker):
    seen = town(worker(1, 18, 30), worker(2, 18, 31), worker(3, 16, 29, 295, target=101))
    orders = seen.gather_minerals()
    near, far = 101, 102
    assert [(list(o.unit_tags), o.target_unit_tag) for o in orders] == [([1], near), ([2], far)]
    assert {order.ability_id for order in orders} == {commands.GATHER}


def test_a_structure_gets_a_free_place_and_the_nearest_builder(town, worker):
    seen = town(worker(1, 30, 30), worker(2, 12, 22), minerals=400)
    build, gather = seen.build(commands.BUILD_SUPPLY_DEPOT)
    place = build.target_world_space_pos
    assert (build.ability_id, list(build.unit_tags)) == (319, list(gather.unit_tags))
    assert abs(place.x - 22) >= 3.5 or abs(place.y - 30) >= 3.5
    assert (gather.ability_id, gather.queue_command) == (commands.GATHER, True)
    again, _ = seen.build(commands.BUILD_SUPPLY_DEPOT)
    other = again.target_world_space_pos
    assert abs(place.x - other.x) >= 2 or abs(place.y - other.y) >= 2, "the first is reserved"


def test_places_fill_the_area_without_overlap(town, worker):
    seen = town(worker(1, 30, 30), minerals=5000)
    half = FOOTPRINTS[BARRACKS][0]
    places = []
    while orders := seen.build(commands.BUILD_BARRACKS):
        point = orders[0].target_world_space_pos
        assert point.x - half >= 10 and point.x + half <= 34
        assert point.y - half >= 20 and point.y + half <= 40
        assert all(max(abs(point.x - x), abs(point.y - y)) >= 2 * half for x, y in places)
        places.append((point.x, point.y))
    assert len(places) > 15


def test_refineries_and_their_workers(town, worker, unit):
    seen = town(worker(1, 20, 33), minerals=100)
    (order,) = seen.build_refinery()
    assert (order.ability_id, order.target_unit_tag) == (commands.BUILD_REFINERY, 103)
    assert seen.build_refinery() == [], "the only geyser is reserved"
    refinery = unit(Kind(REFINERY, OWN), 22.5, 37.5, tag=7, build_progress=1)
    refinery.assigned_harvesters, refinery.ideal_harvesters = 2, 3
    seen = town(worker(1, 20, 33, 295, target=101), refinery)
    (order,) = take(RESOURCE_STEPS[GATHER_GAS], seen)
    assert (list(order.unit_tags), order.target_unit_tag) == ([1], 7)


def test_training_takes_the_emptiest_structure(town, unit):
    busy = unit(Kind(BARRACKS, OWN), 30, 30, tag=8, build_progress=1)
    busy.orders.add(ability_id=commands.TRAIN_MARINE)
    free = unit(Kind(BARRACKS, OWN), 30, 34, tag=9, build_progress=1)
    site = unit(Kind(BARRACKS, OWN), 30, 26, tag=10, build_progress=0.9)
    seen = town(busy, free, site, minerals=50, food_used=12, food_cap=15)
    assert seen.can_train(BARRACKS)
    (order,) = seen.train(commands.TRAIN_MARINE, BARRACKS)
    assert (order.ability_id, list(order.unit_tags)) == (commands.TRAIN_MARINE, [9])
    assert not town(busy, minerals=50, food_used=15, food_cap=15).can_train(BARRACKS)
    assert not town(busy, minerals=49, food_used=12, food_cap=15).can_train(BARRACKS)


# ---- CollectMineralsAndGas -----------------------------------------------------------------------


@pytest.fixture
def task(unit, begin):
    """Builds the task with a command centre, a field, a geyser, an SCV and some money."""

    def build(minerals: int, *, food_used: int = 12, busy: bool = False) -> CollectMineralsAndGas:
        worker = unit(Kind(SCV, raw_pb2.Self), 18, 30, tag=1, build_progress=1)
        if busy:
            worker.orders.add(ability_id=295, target_unit_tag=3)
        return begin(
            CollectMineralsAndGas,
            worker,
            unit(Kind(COMMAND_CENTER, raw_pb2.Self), 22, 30, tag=2, build_progress=1),
            unit(Kind(MINERAL_FIELD, raw_pb2.Neutral), 14, 30, tag=3, build_progress=1),
            unit(Kind(GEYSER, raw_pb2.Neutral), 22.5, 37.5, tag=4, build_progress=1),
            minerals=minerals,
            food_used=food_used,
            food_cap=15,
            loop=3360,
        )

    return build


def test_vector_of_collect_minerals_and_gas(task):
    vector = task(50).observe()
    assert vector[:4] == pytest.approx([0.05, 12 / 200, 15 / 200, 3 / 20])
    assert vector[9:] == pytest.approx([0, 0, 0, 0, 0.5])


@pytest.mark.parametrize(
    ("minerals", "food_used", "busy", "possible"),
    [
        (0, 12, False, {WAIT, GATHER_MINERALS}),
        (50, 12, True, {WAIT, TRAIN_SCV}),
        (80, 15, True, {WAIT, BUILD_REFINERY}),
        (100, 12, True, {WAIT, TRAIN_SCV, BUILD_DEPOT, BUILD_REFINERY}),
    ],
)
def test_masks_follow_what_is_possible(task, minerals, food_used, busy, possible):
    seen = task(minerals, food_used=food_used, busy=busy)
    seen.observe()
    assert {i for i, allowed in enumerate(seen.action_masks()) if allowed} == possible
    for action in range(len(RESOURCE_STEPS)):
        assert bool(list(seen.act(action))) == (action in possible - {WAIT})


def test_orders(task):
    seen = task(100, busy=False)
    seen.observe()
    orders = {action: seen.act(action)[0].ability_id for action in (1, 2, 3, 4)}
    assert orders == {
        GATHER_MINERALS: commands.GATHER,
        TRAIN_SCV: commands.TRAIN_SCV,
        BUILD_DEPOT: commands.BUILD_SUPPLY_DEPOT,
        BUILD_REFINERY: commands.BUILD_REFINERY,
    }
    assert not list(seen.act(GATHER_GAS)), "there is no refinery"


def test_script(task):
    assert collect_minerals_and_gas(task(50).observe()) == GATHER_MINERALS
    assert collect_minerals_and_gas(task(50, busy=True).observe()) == TRAIN_SCV
    without_supply = task(100, food_used=13, busy=True).observe()
    assert collect_minerals_and_gas(without_supply) == BUILD_DEPOT
    without_supply[8] = 1 / 4
    assert collect_minerals_and_gas(without_supply) == TRAIN_SCV, "a depot is coming"
    assert collect_minerals_and_gas(task(99, food_used=13, busy=True).observe()) == WAIT


# ---- BuildMarines --------------------------------------------------------------------------------


@pytest.fixture
def grown(unit, begin):
    """Builds the task with a command centre, a field, 16 busy SCVs, and more structures."""

    def build(minerals: int, *structures: int, food_used: int = 17, loop: int = 0) -> BuildMarines:
        workers = [unit(Kind(SCV, OWN), 18, 30, tag=i, build_progress=1) for i in range(1, 17)]
        for worker in workers:
            worker.orders.add(ability_id=295, target_unit_tag=3)
        return begin(
            BuildMarines,
            *workers,
            unit(Kind(COMMAND_CENTER, OWN), 22, 30, tag=102, build_progress=1),
            unit(Kind(MINERAL_FIELD, raw_pb2.Neutral), 14, 30, tag=103, build_progress=1),
            *(
                unit(Kind(kind, OWN), 28.5, 22.5 + 4 * i, tag=200 + i, build_progress=1)
                for i, kind in enumerate(structures)
            ),
            minerals=minerals,
            food_used=food_used,
            food_cap=15 + 8 * structures.count(SUPPLY_DEPOT),
            loop=loop,
        )

    return build


def test_vector_of_build_marines(grown):
    vector = grown(50, SUPPLY_DEPOT, BARRACKS, BARRACKS, loop=3600).observe()
    assert vector[4:8] == pytest.approx([16 / 50, 0, 0, 1 / 20])
    assert vector[9:] == pytest.approx([0.2, 0, 0.2, 0, 0.25])


@pytest.mark.parametrize(
    ("minerals", "structures", "offered"),
    [
        (40, (), {WAIT}),
        (150, (), {WAIT, BUILD_DEPOT}),
        (150, (SUPPLY_DEPOT,), {WAIT, TRAIN_SCV, BUILD_BARRACKS}),
        (50, (SUPPLY_DEPOT, BARRACKS), {WAIT, TRAIN_SCV, TRAIN_MARINE}),
    ],
)
def test_masks_of_build_marines(grown, minerals, structures, offered):
    seen = grown(minerals, *structures)
    seen.observe()
    assert {i for i, allowed in enumerate(seen.action_masks()) if allowed} == offered
    for action in set(range(len(seen.action_masks()))) - {BUILD_DEPOT}:
        assert bool(list(seen.act(action))) == (action in offered - {WAIT})


@pytest.mark.parametrize(
    ("structures", "food_used", "offered"),
    [
        ((), 12, True),  # a barracks needs a depot even if supply is free
        ((SUPPLY_DEPOT,), 20, False),
        ((SUPPLY_DEPOT,), 21, True),
        ((SUPPLY_DEPOT, BARRACKS, BARRACKS), 14, False),
        ((SUPPLY_DEPOT, BARRACKS, BARRACKS), 15, True),
    ],
)
def test_a_supply_depot_is_offered_before_supply_is_used_up(grown, structures, food_used, offered):
    seen = grown(100, *structures, food_used=food_used)
    seen.observe()
    assert seen.action_masks()[BUILD_DEPOT] == offered
    assert list(seen.act(BUILD_DEPOT)), "it is built all the same if it is chosen"


def test_a_supply_depot_that_is_coming_counts(grown):
    seen = grown(100, SUPPLY_DEPOT, food_used=22)
    observation = seen.observation
    observation.raw_data.units[0].orders[0].ability_id = commands.BUILD_SUPPLY_DEPOT
    seen.observation = observation
    seen.observe()
    assert not seen.action_masks()[BUILD_DEPOT]


def test_orders_of_build_marines(grown):
    seen = grown(500, SUPPLY_DEPOT, BARRACKS)
    seen.observe()
    assert [seen.act(action)[0].ability_id for action in (2, 3, 4, 5)] == [
        commands.TRAIN_SCV,
        commands.BUILD_SUPPLY_DEPOT,
        commands.BUILD_BARRACKS,
        commands.TRAIN_MARINE,
    ]
    assert not list(seen.act(GATHER_MINERALS)), "no SCV is idle"


def test_script_of_build_marines(grown):
    two_depots = SUPPLY_DEPOT, SUPPLY_DEPOT
    assert build_marines(grown(100, SUPPLY_DEPOT, food_used=22).observe()) == BUILD_DEPOT
    assert build_marines(grown(90, SUPPLY_DEPOT, food_used=22).observe()) == WAIT
    assert build_marines(grown(150, *two_depots).observe()) == BUILD_BARRACKS
    assert build_marines(grown(150, *two_depots, BARRACKS).observe()) == TRAIN_MARINE


# ---- images --------------------------------------------------------------------------------------


def test_units_and_structures(unit, begin):
    task = begin(
        CollectMineralsAndGasImage,
        unit(Kind(COMMAND_CENTER, raw_pb2.Self), 22, 30, tag=1, build_progress=1),
        unit(Kind(SCV, raw_pb2.Self), 32, 30, tag=2, build_progress=1),
        unit(Kind(GEYSER, raw_pb2.Neutral), 22, 38, tag=3, build_progress=1),
        minerals=500,
    )
    workers, structures, fields, gas, minerals, supply = task.observe()
    assert structures[32, 32] == 255
    assert (structures > 0).sum() == pytest.approx((5 * 64 / 24) ** 2, rel=0.2)
    rows, columns = np.nonzero(workers)
    assert columns.mean() > 50, "to the right"
    assert not fields.any()
    assert gas.max() == 127
    assert np.nonzero(gas)[0].mean() < 16, "above"
    assert (minerals == 128).all()
    assert not supply.any()
    assert rows.mean() == pytest.approx(31.5, abs=1)


def test_a_site_is_darker(unit, begin):
    task = begin(
        BuildMarinesImage,
        unit(Kind(BARRACKS, raw_pb2.Self), 22, 30, tag=1, build_progress=0.5),
    )
    image = task.observe()
    assert image[2].max() == 155
