"""What DefeatZerglingsAndBanelings shows of the battle, and which orders its actions give."""

from __future__ import annotations

import pytest

from sc2pool import commands
from sc2pool.tasks.minigames.zerglings.defeat_zerglings_and_banelings import (
    ENEMY_BANELINGS,
    ENEMY_ZERGLINGS,
    FALL_BACK,
    FIRE_AT_WILL,
    FIRST_WALK,
    FOCUS_BANELINGS,
    OWN_MARINES,
    SPREAD,
    DefeatZerglingsAndBanelings,
)


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


def test_vector(battle):
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
    targets = [order.target_world_space_pos.y for order in battle.act(FIRST_WALK + 2)]
    assert targets == [38, 34, 30]


def test_masks(battle, unit, begin):
    battle.observe()
    assert battle.action_masks().all()
    alone = begin(DefeatZerglingsAndBanelings, unit(OWN_MARINES, 20, 30))
    alone.observe()
    masks = alone.action_masks()
    assert not masks[[FIRE_AT_WILL, FOCUS_BANELINGS, FALL_BACK]].any()
    assert masks[SPREAD]
    assert masks[FIRST_WALK:].all()
    assert list(alone.act(FOCUS_BANELINGS)) == []
