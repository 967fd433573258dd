"""`Heuristic`, SMAC's scripted player, sees the whole battle; `choose` sees what an agent sees.

In `Heuristic`, soldiers attack the nearest enemy until it is dead. Medivacs heal the nearest hurt
ally that is not a medivac, until this ally is dead or unhurt. In `choose`, soldiers attack the
nearest enemy in range, else walk to the nearest visible enemy. Medivacs heal the nearest hurt ally
in range, else walk to the nearest ally. Agents that see no unit walk ahead.

`Heuristic` follows `StarCraft2Env.get_agent_action_heuristic`. Rules: units are ordered to attack
and heal from any distance, and the game makes them walk to the target. With `heuristic_rest`, a
unit attacks or heals only if that action is available. If the action is unavailable, the unit moves
towards its target, along the axis on which the target is further away, without regard to obstacles.
SMAC's code tries to exclude medivacs from the targets of marauders, which cannot hit them. But that
code never recognises an enemy medivac, and neither does `Heuristic`.

`choose` has no memory, and reads observations as `features` describes them, with any options.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sc2pool.tasks.teams.battle import FIRST_TARGET, NOTHING, Army, Battle, Bools
from sc2pool.tasks.teams.features import Sizes
from sc2pool.tasks.teams.scenarios import MEDIVAC
from sc2pool.units import Floats, distances

NORTH, SOUTH, EAST, WEST = 2, 3, 4, 5


class Heuristic:
    """Chooses the actions of one battle's agents."""

    def __init__(self, battle: Battle) -> None:
        self._battle = battle
        self._targets: list[int | None] = [None] * len(battle.allies.tags)

    def actions(self, masks: Bools, *, only_available: bool) -> list[int]:
        """One action per agent. The action may be unavailable, that is, outside `masks`.

        With `only_available`, an agent walks towards a target that is out of range; without it,
        the agent gets the unavailable action.
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

    def _target(self, agent: int, others: Army, wanted: Bools) -> int | None:
        """The agent's last target if it is still in `wanted`, else the nearest unit in `wanted`."""
        target = self._targets[agent]
        if target is None or not wanted[target]:
            apart = distances(self._battle.allies.positions[agent : agent + 1], others.positions)[0]
            apart = np.where(wanted, apart, np.inf)
            target = int(apart.argmin()) if wanted.any() else None
            self._targets[agent] = target
        return target


def towards(offset: Floats) -> int:
    """The move along the axis on which an offset is longer; north or south for equal lengths."""
    x, y = offset.tolist()
    if abs(x) > abs(y):
        return EAST if x > 0 else WEST
    return NORTH if y > 0 else SOUTH


Vector = NDArray[np.float32]
_DISTANCE, _OFFSET, _HEALTH = 1, slice(2, 4), 4
"""The indices of distance, offset and health in the numbers that an agent observes of a unit. If
the number at index 0 is above 0, the unit is a possible target."""


def choose(observation: Vector, sizes: Sizes, ahead: int) -> int:
    """Choose an action, which is available except at cliffs; `ahead` is the move to the enemy's
    end."""
    if not observation.any():
        return NOTHING  # the agent is dead
    scenario, rules = sizes.scenario, sizes.rules
    first, last = sizes.move, sizes.move + scenario.n_enemies * sizes.enemy
    enemies = observation[first:last].reshape(-1, sizes.enemy)
    kinds = scenario.kinds
    own = observation[sizes.observation - rules.obs_timestep_number - scenario.n_types :]
    if MEDIVAC not in kinds or not own[kinds.index(MEDIVAC)]:
        return _approach(enemies, enemies[:, 0] > 0, ahead)
    allies = observation[last : last + (scenario.n_agents - 1) * sizes.ally]
    allies = allies.reshape(-1, sizes.ally)
    # Medivacs are the last agents, so all medivacs observe the other agents at the same indices.
    types = 4 + rules.obs_all_health * (1 + sizes.shield_of_allies)
    healed = (allies[:, 0] > 0) & (allies[:, types + kinds.index(MEDIVAC)] == 0)
    in_cells = allies[:, _DISTANCE] * rules.sight_of(MEDIVAC)
    healed &= in_cells <= rules.reach_of(MEDIVAC)
    if rules.obs_all_health:
        healed &= allies[:, _HEALTH] < 1
    return _approach(allies, healed, ahead)


def _approach(units: Vector, targets: NDArray[np.bool_], ahead: int) -> int:
    """Act on the nearest target, else walk to the nearest visible unit, else walk ahead."""
    distance = units[:, _DISTANCE]
    if targets.any():
        return FIRST_TARGET + int(np.where(targets, distance, np.inf).argmin())
    seen = distance > 0
    if not seen.any():
        return ahead
    nearest = int(np.where(seen, distance, np.inf).argmin())
    return towards(units[nearest, _OFFSET].astype(np.float64))
