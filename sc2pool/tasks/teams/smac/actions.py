"""The available actions of each agent, and their commands.

    0           nothing: the only action of dead agents, and only of them
    1           stop
    2 to 5      move north, south, east, west
    6 + i       attack enemy i; for a medivac, heal ally i

Source: `StarCraft2Env.get_avail_agent_actions` and `get_agent_action`. Rule: an unavailable action
gives no command, where SMAC raises an AssertionError.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sc2pool import commands
from sc2pool.commands import Commands
from sc2pool.tasks.teams.smac.battle import MOVES, Army, Battle, Bools, Ground
from sc2pool.units import distances

NOTHING, STOP, FIRST_MOVE, N_MOVES = 0, 1, 2, len(MOVES)
FIRST_TARGET = FIRST_MOVE + N_MOVES

_MOVE, _ATTACK, _STOP, _HEAL = 16, 23, 4, 386
"""SMAC orders these specific abilities, not the general ones of `commands`."""


def available(battle: Battle, ground: Ground) -> Bools:
    """The available actions of each agent, (agents, actions)."""
    allies, enemies = battle.allies, battle.enemies
    n_actions = FIRST_TARGET + battle.scenario.n_targets
    masks = np.zeros((len(allies.tags), n_actions), dtype=np.bool_)
    masks[:, STOP] = True
    length = battle.rules.move_amount
    masks[:, FIRST_MOVE:FIRST_TARGET] = ground.can_move(allies.positions, length)
    enemy_targets = slice(FIRST_TARGET, FIRST_TARGET + len(enemies.tags))
    masks[:, enemy_targets] = _in_range(battle, enemies) & enemies.alive
    medivacs = allies.medivacs
    if medivacs.any():
        masks[medivacs, FIRST_TARGET:] = False
        healed = _in_range(battle, allies)[medivacs] & allies.alive & ~medivacs
        masks[medivacs, FIRST_TARGET : FIRST_TARGET + len(allies.tags)] = healed
    dead = ~allies.alive
    masks[dead] = False
    masks[dead, NOTHING] = True
    return masks


def as_commands(battle: Battle, masks: Bools, actions: Sequence[int]) -> Commands:
    """The commands of a step, in the order of the agents; none for unavailable actions."""
    allies, enemies = battle.allies, battle.enemies
    length = battle.rules.move_amount
    heals = allies.medivacs
    orders = []
    for agent, action in enumerate(actions):
        if action == NOTHING or not masks[agent, action]:
            continue
        tag = [allies.tags[agent]]
        if action == STOP:
            orders.append(commands.command(_STOP, tag))
        elif action < FIRST_TARGET:
            ahead = MOVES[action - FIRST_MOVE] * length
            x, y = allies.turned(allies.positions[agent] + ahead).tolist()
            orders.append(commands.command(_MOVE, tag, (x, y)))
        elif heals[agent]:
            orders.append(commands.command(_HEAL, tag, allies.tags[action - FIRST_TARGET]))
        else:
            orders.append(commands.command(_ATTACK, tag, enemies.tags[action - FIRST_TARGET]))
    return orders


def _in_range(battle: Battle, targets: Army) -> Bools:
    """Whether each unit of a side is in range of each agent, (agents, units)."""
    apart = distances(battle.allies.positions, targets.positions)
    near: Bools = apart <= battle.reach[:, None]
    return near
