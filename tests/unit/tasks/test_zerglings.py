"""Tests the mini-games against zerglings: observations, the memory of the map, and orders."""

from __future__ import annotations

import numpy as np
import pytest

from sc2pool import commands
from sc2pool.tasks.minigames.scripted import find_and_defeat_zerglings
from sc2pool.tasks.minigames.zerglings import (
    BATTLE_FIRST_WALK,
    ENEMY_BANELINGS,
    ENEMY_ZERGLINGS,
    FALL_BACK,
    FIRE_AT_WILL,
    FOCUS_BANELINGS,
    FOCUS_NEAREST,
    FOCUS_WEAKEST,
    FORGOTTEN_LOOPS,
    OWN_MARINES,
    RESCUE_HURT,
    SEARCH_ACTIONS,
    SEARCH_FIRST_WALK,
    SPREAD,
    DefeatZerglingsAndBanelings,
    DefeatZerglingsAndBanelingsImage,
    FindAndDefeatZerglings,
    FindAndDefeatZerglingsImage,
    SearchMemory,
)

# ---- FindAndDefeatZerglings ----------------------------------------------------------------------


@pytest.fixture
def group(unit, begin):
    """Three marines around (20, 30), the third one hurt; two zerglings to the east."""
    return begin(
        FindAndDefeatZerglings,
        unit(OWN_MARINES, 20, 31, tag=1, health=45, weapon_cooldown=0),
        unit(OWN_MARINES, 19, 29.5, tag=2, health=45, weapon_cooldown=0),
        unit(OWN_MARINES, 21, 29.5, tag=3, health=9, weapon_cooldown=3),
        unit(ENEMY_ZERGLINGS, 24, 30, tag=11, health=35),
        unit(ENEMY_ZERGLINGS, 26, 30, tag=12, health=7),
    )


def test_vector_of_the_search(group):
    vector = group.observe()
    assert vector[:2] == pytest.approx([1, 2 / 8])
    assert vector[2:4] == pytest.approx([-2 / 12, 0])
    assert vector[4:7] == pytest.approx([33 / 45, 9 / 45, 2 / 3])
    assert vector[7] == pytest.approx(0.3041, abs=1e-3)
    assert vector[8:16] == pytest.approx([1, 0, 0.4, 1, 1, 0, 0.6, 0.2])
    assert vector[16:24].tolist() == [0] * 8
    assert vector[26] > 8 / 24, "what is near was just seen"


def test_orders(group):
    group.observe()
    for action, target in ((FOCUS_NEAREST, 11), (FOCUS_WEAKEST, 12)):
        (order,) = group.act(action)
        assert (order.ability_id, order.target_unit_tag) == (commands.ATTACK, target)
        assert list(order.unit_tags) == [1, 2, 3]
    flight, attack = group.act(RESCUE_HURT)
    assert (flight.ability_id, list(flight.unit_tags)) == (commands.MOVE, [3])
    assert flight.target_world_space_pos.x < 21
    assert list(attack.unit_tags) == [1, 2]


def test_the_group_walks_to_one_point_and_attacks_on_the_way(group):
    group.observe()
    (order,) = group.act(SEARCH_FIRST_WALK + 2)
    assert order.ability_id == commands.ATTACK
    target = order.target_world_space_pos
    assert (target.x, target.y) == pytest.approx((20, 34))


def test_masks_and_script(group, unit, begin):
    assert find_and_defeat_zerglings(group.observe()) == FOCUS_NEAREST
    assert group.action_masks().all()
    alone = begin(FindAndDefeatZerglings, unit(OWN_MARINES, 12, 30))
    observed = alone.observe()
    assert alone.action_masks().tolist() == [False] * SEARCH_FIRST_WALK + [True] * (
        SEARCH_ACTIONS - 3
    )
    assert list(alone.act(FOCUS_NEAREST)) == []
    assert find_and_defeat_zerglings(observed) >= SEARCH_FIRST_WALK


@pytest.fixture
def memory(area) -> SearchMemory:
    """The memory of an area of 24 x 20 cells from (10, 20), in blocks of 4 x 4 cells."""
    return SearchMemory(area)


def test_blocks_fill_the_area(memory):
    assert memory.shape == (5, 6)
    assert memory.middles[[0, 5, -1]].tolist() == [[12, 22], [32, 22], [32, 38]]


def test_near_blocks_are_seen_now_and_age(memory):
    assert (memory.ages() == 1).all()
    memory.note_seen(np.array([(12.0, 22.0)]), 100)
    seen = memory.ages() == 0
    assert (np.hypot(*(memory.middles[seen] - (12, 22)).T) <= 8).all()
    assert (memory.ages()[~seen] == 1).all()
    memory.note_seen(np.empty((0, 2)), 100 + FORGOTTEN_LOOPS // 2)
    assert (memory.ages()[seen] == 0.5).all()


def test_the_nearest_forgotten_block_comes_first_then_the_oldest(memory):
    memory.note_seen(np.array([(12.0, 22.0)]), 1)
    there = memory.nearest_forgotten(12, 22)
    assert np.hypot(*(there - (12, 22))) == pytest.approx(np.hypot(8, 4))
    for loop, middle in enumerate(memory.middles):
        memory.note_seen(middle[None, :], 10 * loop)
    assert memory.nearest_forgotten(32, 38).tolist() == [12, 22]


def test_ages_by_direction(memory):
    memory.note_seen(np.array([(30.0, 30.0)]), 10)
    ages = memory.ages_by_direction(22, 30)
    assert ages.shape == (8,)
    assert ages[0] < ages[4] == 1, "east was seen, west was not"


# ---- DefeatZerglingsAndBanelings -----------------------------------------------------------------


@pytest.fixture
def battle(unit, begin):
    """Three marines in a column; a zergling is near the first, a baneling near the third."""
    return begin(
        DefeatZerglingsAndBanelings,
        unit(OWN_MARINES, 20, 34, tag=1, health=45, weapon_cooldown=0),
        unit(OWN_MARINES, 20, 30, tag=2, health=10, weapon_cooldown=4),
        unit(OWN_MARINES, 20, 26, tag=3, health=35, weapon_cooldown=0),
        unit(ENEMY_ZERGLINGS, 22, 34, tag=11, health=35),
        unit(ENEMY_BANELINGS, 23, 26, tag=12, health=30),
    )


def test_vector_of_the_battle(battle):
    vector = battle.observe()
    assert vector[:3] == pytest.approx([3 / 40, 1 / 6, 1 / 4])
    assert vector[3:5] == pytest.approx([-2 / 12, 0])
    assert vector[5:10] == pytest.approx([30 / 45, 10 / 45, 2 / 3, 0.8 / 3, 1 / 3])
    assert vector[10:13] == pytest.approx([0.4472, 0.8944, 20**0.5 / 24], abs=1e-3)
    assert vector[13:22].tolist() == [0] * 9
    assert vector[22:25] == pytest.approx([0.6, -0.8, 5 / 24])


def _targets(orders) -> dict[int, list[int]]:
    assert {order.ability_id for order in orders} <= {commands.ATTACK}
    return {order.target_unit_tag: list(order.unit_tags) for order in orders}


def test_targets(battle):
    battle.observe()
    assert _targets(battle.act(FIRE_AT_WILL)) == {11: [1, 2], 12: [3]}
    assert _targets(battle.act(FOCUS_BANELINGS)) == {12: [1, 2, 3]}


def test_only_the_threatened_fall_back(battle):
    battle.observe()
    flight, *attacks = battle.act(FALL_BACK)
    assert (flight.ability_id, list(flight.unit_tags)) == (commands.MOVE, [3])
    assert flight.target_world_space_pos.x < 20
    assert _targets(attacks) == {12: [1, 2]}


def test_spread_and_walk(battle, unit, begin):
    pair = begin(
        DefeatZerglingsAndBanelings,
        unit(OWN_MARINES, 20, 30, tag=1),
        unit(OWN_MARINES, 21, 30, tag=2),
    )
    pair.observe()
    targets = [order.target_world_space_pos.x for order in pair.act(SPREAD)]
    assert targets == [16, 25]
    battle.observe()
    targets = [order.target_world_space_pos.y for order in battle.act(BATTLE_FIRST_WALK + 2)]
    assert targets == [38, 34, 30]


def test_masks(battle, unit, begin):
    battle.observe()
    assert battle.action_masks().all()
    alone = begin(DefeatZerglingsAndBanelings, unit(OWN_MARINES, 20, 30))
    alone.observe()
    masks = alone.action_masks()
    assert not masks[[FIRE_AT_WILL, FOCUS_BANELINGS, FALL_BACK]].any()
    assert masks[SPREAD]
    assert masks[BATTLE_FIRST_WALK:].all()
    assert list(alone.act(FOCUS_BANELINGS)) == []


# ---- images --------------------------------------------------------------------------------------


def _middle_of(plane: np.ndarray) -> tuple[float, float]:
    """The mean column and the mean row of the pixels that are not 0."""
    rows, columns = np.nonzero(plane)
    return columns.mean(), rows.mean()


def test_the_battle(unit, begin):
    image = begin(
        DefeatZerglingsAndBanelingsImage,
        unit(OWN_MARINES, 22, 30, tag=1, health=22.5),
        unit(ENEMY_ZERGLINGS, 34, 30, tag=2, health=35),
        unit(ENEMY_BANELINGS, 22, 39, tag=3, health=30),
    ).observe()
    assert image[0].max() == 127
    assert image[1].max() == image[2].max() == 255
    assert _middle_of(image[0]) == (31.5, 31.5)
    assert _middle_of(image[1])[0] > 45, "to the right"
    assert _middle_of(image[2])[1] < 21, "above"
    assert (image[3] > 0).mean() == 32 * 26 / 64**2


def test_the_search(unit, begin):
    task = begin(FindAndDefeatZerglingsImage, unit(OWN_MARINES, 32, 30, tag=1, health=45))
    marines, zerglings, ages = task.observe()
    assert marines.max() == 255
    assert not zerglings.any()
    assert ages[31, 31] == 0, "here it was just seen"
    assert ages[31, 8] == 255, "to the left it was not"
    assert ages[0, 0] == 0, "outside of the area"
