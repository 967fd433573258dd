"""SMAC's scripted player, which sees the whole battle: who attacks or heals whom.

    soldiers    the nearest enemy, until it is dead
    medivacs    the nearest ally that is hurt and no medivac, until it is dead or unhurt

Source: `StarCraft2Env.get_agent_action_heuristic`. Rules: units attack and heal from any distance,
so they walk as the game lets them; with `heuristic_rest` only where the action is available, and
otherwise they move towards their target along the axis on which it is further away, wherever that
leads. SMAC's code means to keep marauders from medivacs, which they cannot hit, but never
recognises one among the enemies; so it is here.
"""

from __future__ import annotations

import numpy as np

from sc2pool.tasks.teams.smac.actions import FIRST_TARGET, NOTHING
from sc2pool.tasks.teams.smac.battle import Battle, Bools, Side
from sc2pool.units import Floats, distances

NORTH, SOUTH, EAST, WEST = 2, 3, 4, 5


class Heuristic:
    """Chooses the actions of one battle's agents."""

    def __init__(self, battle: Battle) -> None:
        self._battle = battle
        self._targets: list[int | None] = [None] * len(battle.allies.tags)

    def actions(self, masks: Bools, *, only_available: bool) -> list[int]:
        """An action of each agent; it may be one that is not available.

        Args:
            only_available: whether a target out of reach is walked to.
        """
        allies, enemies = self._battle.allies, self._battle.enemies
        hurt = allies.alive & (allies.health < allies.full_health) & ~allies.medivacs
        chosen = []
        for agent in range(len(allies.tags)):
            heals = bool(allies.medivacs[agent])
            others, wanted = (allies, hurt) if heals else (enemies, enemies.alive)
            target = self._target(agent, others, wanted) if allies.alive[agent] else None
            if target is None:
                chosen.append(NOTHING)
                continue
            action = FIRST_TARGET + target
            if only_available and not masks[agent, action]:
                action = towards(others.positions[target] - allies.positions[agent])
            chosen.append(action)
        return chosen

    def _target(self, agent: int, others: Side, wanted: Bools) -> int | None:
        """The agent's target: the one that it has, if it is still wanted, or the nearest."""
        target = self._targets[agent]
        if target is None or not wanted[target]:
            apart = distances(self._battle.allies.positions[agent : agent + 1], others.positions)[0]
            apart = np.where(wanted, apart, np.inf)
            target = int(apart.argmin()) if wanted.any() else None
            self._targets[agent] = target
        return target


def towards(offset: Floats) -> int:
    """The move along the axis on which an offset is longer; of two equal ones north or south."""
    x, y = offset.tolist()
    if abs(x) > abs(y):
        return EAST if x > 0 else WEST
    return NORTH if y > 0 else SOUTH
