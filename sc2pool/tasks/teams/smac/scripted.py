"""A player that does not learn: what one agent does, from what it sees alone.

    soldiers    attack the nearest enemy in range, else walk to the nearest that they see
    medivacs    heal the nearest ally in range that is hurt, else walk to the nearest ally
    all         walk ahead if they see none

Rules: it has no memory; it reads a vector of `features`, of which it needs no option to be on.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sc2pool.tasks.teams.smac.actions import FIRST_TARGET, NOTHING
from sc2pool.tasks.teams.smac.features import Sizes
from sc2pool.tasks.teams.smac.heuristic import towards
from sc2pool.tasks.teams.smac.scenarios import MEDIVAC

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
