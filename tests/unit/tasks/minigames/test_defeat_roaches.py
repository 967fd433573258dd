"""What DefeatRoaches shows of the battle, and which orders its actions give."""

from __future__ import annotations

import pytest

from sc2pool import commands
from sc2pool.tasks.minigames.defeat_roaches import (
    ENEMY_ROACHES,
    FIRST_WALK,
    FOCUS_NEAREST,
    FOCUS_WEAKEST,
    N_ACTIONS,
    OWN_MARINES,
    RESCUE_HURT,
    DefeatRoaches,
)
from sc2pool.tasks.minigames.scripted import defeat_roaches


@pytest.fixture
def battle(unit, begin):
    """Three marines left of three roaches; marine 2 would not survive another hit."""
    return begin(
        DefeatRoaches,
        unit(OWN_MARINES, 20, 29, tag=1, health=45, weapon_cooldown=0),
        unit(OWN_MARINES, 20, 30, tag=2, health=16, weapon_cooldown=4),
        unit(OWN_MARINES, 20, 31, tag=3, health=29, weapon_cooldown=0),
        unit(ENEMY_ROACHES, 24, 30, tag=11, health=145),
        unit(ENEMY_ROACHES, 26, 30, tag=12, health=29),
        unit(ENEMY_ROACHES, 25, 30, tag=13, health=29),
    )


def test_vector(battle):
    vector = battle.observe()
    assert vector[:2] == pytest.approx([3 / 20, 3 / 8])
    assert vector[2:4] == pytest.approx([-2 / 12, 0])
    assert vector[4:7] == pytest.approx([30 / 45, 16 / 45, 2 / 3])
    assert vector[7:9] == pytest.approx([0.4, 0.4])
    assert vector[9:13] == pytest.approx([1, 0, 4 / 24, 1])
    assert vector[13:17] == pytest.approx([1, 0, 5 / 24, 0.2])
    assert vector[21:].tolist() == [0, 0, 0, 0], "there is no fourth roach"


def test_focus(battle):
    battle.observe()
    for action, target in ((FOCUS_NEAREST, 11), (FOCUS_WEAKEST, 13)):
        (order,) = battle.act(action)
        assert order.ability_id == commands.ATTACK
        assert list(order.unit_tags) == [1, 2, 3]
        assert order.target_unit_tag == target


def test_rescue_takes_only_the_hurt_away(battle):
    battle.observe()
    flight, attack = battle.act(RESCUE_HURT)
    assert list(flight.unit_tags) == [2]
    assert flight.ability_id == commands.MOVE
    assert flight.target_world_space_pos.x < 20
    assert list(attack.unit_tags) == [1, 3]
    assert attack.target_unit_tag == 13


def test_walk_keeps_the_formation(battle):
    battle.observe()
    orders = list(battle.act(FIRST_WALK + 4))
    assert [list(order.unit_tags) for order in orders] == [[1], [2], [3]]
    targets = [(order.target_world_space_pos.x, order.target_world_space_pos.y) for order in orders]
    assert targets == [pytest.approx((16, y)) for y in (29, 30, 31)]


def test_masks(battle, unit, begin):
    battle.observe()
    assert battle.action_masks().tolist() == [True] * N_ACTIONS
    alone = begin(DefeatRoaches, unit(OWN_MARINES, 20, 30))
    alone.observe()
    assert alone.action_masks().tolist() == [False] * FIRST_WALK + [True] * 8
    assert list(alone.act(FOCUS_NEAREST)) == []


def test_script_rescues_only_in_danger(battle, unit, begin):
    assert defeat_roaches(battle.observe()) == RESCUE_HURT
    out_of_reach = begin(
        DefeatRoaches,
        unit(OWN_MARINES, 20, 30, tag=1, health=13),
        unit(ENEMY_ROACHES, 25.5, 30, tag=2, health=145),
    )
    assert defeat_roaches(out_of_reach.observe()) == FOCUS_WEAKEST
    unhurt = begin(
        DefeatRoaches,
        unit(OWN_MARINES, 20, 30, tag=1, health=29),
        unit(ENEMY_ROACHES, 23, 30, tag=2, health=145),
    )
    assert defeat_roaches(unhurt.observe()) == FOCUS_WEAKEST
