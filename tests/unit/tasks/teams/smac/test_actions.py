"""Which actions agents have, and the commands they become."""

from __future__ import annotations

import numpy as np

from sc2pool.tasks.teams.smac.actions import NOTHING, STOP, as_commands, available
from tests.unit.tasks.teams.smac.conftest import (
    enemies,
    marines,
    medivacs_battle,
)


def test_living_agents_stop_move_and_attack_near_enemies(begin, ground):
    battle = begin(marines(3) + enemies(2, x=15.0) + enemies(1, first_tag=103, x=16.0))
    masks = available(battle, ground)
    assert masks.shape == (3, 9)
    assert masks[0].tolist() == [False, True, True, True, True, True, True, False, False], (
        "the first enemy is exactly six cells away, which is in range"
    )


def test_half_a_move_must_lead_to_ground(begin, ground):
    battle = begin(marines(3) + enemies(3))
    battle.allies.positions[:] = [(0.5, 16), (31.5, 16), (9, 8.5)]
    moves = available(battle, ground)[:, 2:6]
    assert moves.tolist() == [
        [True, True, True, True],  # west of it is -0.5, which SMAC truncates to cell 0
        [True, True, False, True],
        [True, False, True, True],
    ]


def test_the_dead_do_nothing(begin, ground, seen):
    battle = begin(marines(3) + enemies(3))
    battle.update(seen(marines(3)[1:] + enemies(3)))
    masks = available(battle, ground)
    assert np.flatnonzero(masks[0]).tolist() == [NOTHING]
    assert not masks[1:, NOTHING].any()


def test_medivacs_heal_allies_near_them_but_no_medivac(begin, ground):
    battle = begin(medivacs_battle(), "MMM")
    targets = available(battle, ground)[9, 6:]
    assert targets.tolist() == [True] * 9 + [False]
    (command,) = as_commands(battle, available(battle, ground), [0] * 9 + [8])
    assert (command.ability_id, command.target_unit_tag) == (386, battle.allies.tags[2])


def test_commands_of_each_action(begin, ground):
    battle = begin(marines(3) + enemies(3, x=12.0))
    masks = available(battle, ground)
    stop, east, attack = as_commands(battle, masks, [STOP, 4, 7])
    assert (stop.ability_id, list(stop.unit_tags)) == (4, [1])
    assert east.ability_id == 16
    assert (east.target_world_space_pos.x, east.target_world_space_pos.y) == (11, 17)
    assert (attack.ability_id, attack.target_unit_tag) == (23, 102)


def test_unavailable_action_becomes_no_command(begin, ground):
    battle = begin(marines(3) + enemies(3))
    masks = available(battle, ground)
    assert as_commands(battle, masks, [6, 7, NOTHING]) == []
