"""BuildMarines: its observations, its possible actions, and their orders."""

from __future__ import annotations

import pytest
from s2clientprotocol import raw_pb2

from sc2pool import commands
from sc2pool.tasks.minigames.build_marines import (
    BUILD_BARRACKS,
    BUILD_DEPOT,
    GATHER_MINERALS,
    TRAIN_MARINE,
    TRAIN_SCV,
    WAIT,
    BuildMarines,
)
from sc2pool.tasks.minigames.scripted import build_marines
from sc2pool.tasks.minigames.town import (
    BARRACKS,
    COMMAND_CENTER,
    MINERAL_FIELD,
    SCV,
    SUPPLY_DEPOT,
)
from sc2pool.units import Kind

OWN = raw_pb2.Self


@pytest.fixture
def task(unit, begin):
    """Builds the task with a command centre, a field, 16 busy SCVs, and more structures."""

    def build(minerals: int, *structures: int, food_used: int = 17) -> BuildMarines:
        workers = [unit(Kind(SCV, OWN), 18, 30, tag=i, build_progress=1) for i in range(1, 17)]
        for worker in workers:
            worker.orders.add(ability_id=295, target_unit_tag=3)
        built: BuildMarines = begin(
            BuildMarines,
            *workers,
            unit(Kind(COMMAND_CENTER, OWN), 22, 30, tag=102, build_progress=1),
            unit(Kind(MINERAL_FIELD, raw_pb2.Neutral), 14, 30, tag=103, build_progress=1),
            *(
                unit(Kind(kind, OWN), 28.5, 22.5 + 4 * i, tag=200 + i, build_progress=1)
                for i, kind in enumerate(structures)
            ),
        )
        seen = built.observation
        seen.player_common.minerals, seen.player_common.food_used = minerals, food_used
        seen.player_common.food_cap = 15 + 8 * structures.count(SUPPLY_DEPOT)
        built.observation = seen
        return built

    return build


def test_vector(task):
    vector = task(50, SUPPLY_DEPOT, BARRACKS, BARRACKS).observe()
    assert vector[4:8] == pytest.approx([16 / 50, 0, 0, 1 / 20])
    assert vector[9:] == pytest.approx([0.2, 0, 0.2, 0, 0])


@pytest.mark.parametrize(
    ("minerals", "structures", "offered"),
    [
        (40, (), {WAIT}),
        (150, (), {WAIT, BUILD_DEPOT}),
        (150, (SUPPLY_DEPOT,), {WAIT, TRAIN_SCV, BUILD_BARRACKS}),
        (50, (SUPPLY_DEPOT, BARRACKS), {WAIT, TRAIN_SCV, TRAIN_MARINE}),
    ],
)
def test_masks_follow_what_is_possible(task, minerals, structures, offered):
    seen = task(minerals, *structures)
    seen.observe()
    assert {i for i, allowed in enumerate(seen.action_masks()) if allowed} == offered
    for action in set(range(len(seen.action_masks()))) - {BUILD_DEPOT}:
        assert bool(list(seen.act(action))) == (action in offered - {WAIT})


@pytest.mark.parametrize(
    ("structures", "food_used", "offered"),
    [
        ((), 12, True),  # a barracks needs a depot even if there is supply
        ((SUPPLY_DEPOT,), 20, False),
        ((SUPPLY_DEPOT,), 21, True),
        ((SUPPLY_DEPOT, BARRACKS, BARRACKS), 14, False),
        ((SUPPLY_DEPOT, BARRACKS, BARRACKS), 15, True),
    ],
)
def test_a_supply_depot_is_offered_before_supply_is_used_up(task, structures, food_used, offered):
    seen = task(100, *structures, food_used=food_used)
    seen.observe()
    assert seen.action_masks()[BUILD_DEPOT] == offered
    assert list(seen.act(BUILD_DEPOT)), "it is built all the same if it is chosen"


def test_a_supply_depot_that_is_coming_counts(task):
    seen = task(100, SUPPLY_DEPOT, food_used=22)
    observation = seen.observation
    observation.raw_data.units[0].orders[0].ability_id = commands.BUILD_SUPPLY_DEPOT
    seen.observation = observation
    seen.observe()
    assert not seen.action_masks()[BUILD_DEPOT]


def test_orders(task):
    seen = task(500, SUPPLY_DEPOT, BARRACKS)
    seen.observe()
    assert [seen.act(action)[0].ability_id for action in (2, 3, 4, 5)] == [
        commands.TRAIN_SCV,
        commands.BUILD_SUPPLY_DEPOT,
        commands.BUILD_BARRACKS,
        commands.TRAIN_MARINE,
    ]
    assert not list(seen.act(GATHER_MINERALS)), "no SCV is idle"


def test_script(task):
    two_depots = SUPPLY_DEPOT, SUPPLY_DEPOT
    assert build_marines(task(100, SUPPLY_DEPOT, food_used=22).observe()) == BUILD_DEPOT
    assert build_marines(task(90, SUPPLY_DEPOT, food_used=22).observe()) == WAIT
    assert build_marines(task(150, *two_depots).observe()) == BUILD_BARRACKS
    assert build_marines(task(150, *two_depots, BARRACKS).observe()) == TRAIN_MARINE
