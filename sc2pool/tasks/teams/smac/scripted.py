"""Players that do not learn: SMAC's, which sees the whole battle, and one that sees as agents do.

    Heuristic   soldiers attack the nearest enemy until it is dead; medivacs heal the nearest ally
                that is hurt and no medivac, until it is dead or unhurt
    choose      soldiers attack the nearest enemy in range, else walk to the nearest that they see;
                medivacs heal the nearest ally in range that is hurt, else walk to the nearest ally;
                all walk ahead if they see none

Source of the first: `StarCraft2Env.get_agent_action_heuristic`. Rules: units attack and heal from
any distance, so they walk as the game lets them; with `heuristic_rest` only where the action is
available, and otherwise they move towards their target along the axis on which it is further away,
wherever that leads. SMAC's code means to keep marauders from medivacs, which they cannot hit, but
never recognises one among the enemies; so it is here.

Rules of the second: it has no memory; it reads a vector of `features`, of which it needs no option
to be on.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sc2pool.tasks.teams.smac.actions import FIRST_TARGET, NOTHING
from sc2pool.tasks.teams.smac.battle import Battle, Bools, Side
from sc2pool.tasks.teams.smac.features import Sizes
from sc2pool.tasks.teams.smac.scenarios import MEDIVAC
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


Vector = NDArray[np.float32]
_DISTANCE, _OFFSET, _HEALTH = 1, slice(2, 4), 4
"""Where these are in what an agent sees of another unit; the first number is its mark."""


def choose(observation: Vector, sizes: Sizes, ahead: int) -> int:
    """An action, which is available unless a cliff is in the way.

    Args:
        observation: of one agent.
        ahead: the move towards the enemy's end.
    """
    if not observation.any():
        return NOTHING  # it is dead
    scenario, rules = sizes.scenario, sizes.rules
    first, last = sizes.move, sizes.move + scenario.n_enemies * sizes.enemy
    enemies = observation[first:last].reshape(-1, sizes.enemy)
    kinds = scenario.kinds
    own = observation[sizes.observation - rules.obs_timestep_number - scenario.n_types :]
    if MEDIVAC not in kinds or not own[kinds.index(MEDIVAC)]:
        return _approach(enemies, enemies[:, 0] > 0, ahead)
    allies = observation[last : last + (scenario.n_agents - 1) * sizes.ally]
    allies = allies.reshape(-1, sizes.ally)
    # Medivacs are the last agents: the others have the same numbers among each medivac's allies.
    types = 4 + rules.obs_all_health * (1 + sizes.shield_of_allies)
    healed = (allies[:, 0] > 0) & (allies[:, types + kinds.index(MEDIVAC)] == 0)
    in_cells = allies[:, _DISTANCE] * rules.sight_of(MEDIVAC)
    healed &= in_cells <= rules.reach_of(MEDIVAC)
    if rules.obs_all_health:
        healed &= allies[:, _HEALTH] < 1
    return _approach(allies, healed, ahead)


def _approach(units: Vector, targets: NDArray[np.bool_], ahead: int) -> int:
    """Act on the nearest target; without one walk to the nearest unit that is seen."""
    distance = units[:, _DISTANCE]
    if targets.any():
        return FIRST_TARGET + int(np.where(targets, distance, np.inf).argmin())
    seen = distance > 0
    if not seen.any():
        return ahead
    nearest = int(np.where(seen, distance, np.inf).argmin())
    return towards(units[nearest, _OFFSET].astype(np.float64))
