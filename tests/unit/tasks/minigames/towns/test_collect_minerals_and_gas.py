"""CollectMineralsAndGas: what is shown, possible and ordered."""

from __future__ import annotations

import pytest
from s2clientprotocol import raw_pb2

from sc2pool import commands
from sc2pool.tasks.minigames.scripted import collect_minerals_and_gas
from sc2pool.tasks.minigames.towns.collect_minerals_and_gas import (
    BUILD_DEPOT,
    BUILD_REFINERY,
    GATHER_GAS,
    GATHER_MINERALS,
    STEPS,
    TRAIN_SCV,
    WAIT,
    CollectMineralsAndGas,
)
from sc2pool.tasks.minigames.towns.town import COMMAND_CENTER, GEYSER, MINERAL_FIELD, SCV
from sc2pool.units import Kind


@pytest.fixture
def task(unit, begin):
    """Builds the task with one command centre, field and geyser, and an SCV; with some money."""

    def build(minerals: int, *, food_used: int = 12, busy: bool = False) -> CollectMineralsAndGas:
        worker = unit(Kind(SCV, raw_pb2.Self), 18, 30, tag=1, build_progress=1)
        if busy:
            worker.orders.add(ability_id=295, target_unit_tag=3)
        built: CollectMineralsAndGas = begin(
            CollectMineralsAndGas,
            worker,
            unit(Kind(COMMAND_CENTER, raw_pb2.Self), 22, 30, tag=2, build_progress=1),
            unit(Kind(MINERAL_FIELD, raw_pb2.Neutral), 14, 30, tag=3, build_progress=1),
            unit(Kind(GEYSER, raw_pb2.Neutral), 22.5, 37.5, tag=4, build_progress=1),
        )
        seen = built.observation
        seen.player_common.minerals, seen.player_common.food_used = minerals, food_used
        seen.player_common.food_cap, seen.game_loop = 15, 3360
        built.observation = seen
        return built

    return build


def test_vector(task):
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
    for action in range(len(STEPS)):
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
    assert collect_minerals_and_gas(task(100, food_used=13, busy=True).observe()) == BUILD_DEPOT
    assert collect_minerals_and_gas(task(90, food_used=13, busy=True).observe()) == WAIT
