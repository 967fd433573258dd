"""Observations of SMAC's agents, and the state of the whole battle.

An agent's observation has four parts; some of their numbers exist only if an option is on:

* The own moves: whether each of the 4 moves is possible, and the ground around the agent.
* Each enemy: whether it can be attacked, its distance, x, y, health, shield and type. For a medivac
  the first number says whether the ally with this enemy's number can be healed.
* Each ally: the constant 1, distance, x, y, health, shield, type and last action.
* The agent itself: health, shield, place, type, and the elapsed share of the time limit.

The state has three parts:

* Each ally: health, cooldown (for a medivac: energy), x, y, shield and type.
* Each enemy: health, x, y, shield and type.
* At the end: the last actions and the elapsed share of the time limit.

The sources are `StarCraft2Env.get_obs_agent` and `get_state_dict`. Rules: distances and offsets are
in lengths of the agent's sight range. The agent's own place is in lengths of the map. In the state,
x and y are relative to the map's centre, in lengths of the playable area. Health, shield and
cooldown are shares of the largest value. A type is one-hot. The numbers of a unit that is dead or
out of sight are all zeros; a dead agent observes only the time. With `obs_timestep_number` SMAC's
observation has one number more than its `get_obs_size` says. That number is always 0, and is left
out here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sc2pool.tasks.teams.battle import (
    FIRST_MOVE,
    FIRST_TARGET,
    N_MOVES,
    Army,
    Battle,
    Bools,
    Ground,
)
from sc2pool.tasks.teams.scenarios import Contest, Rules
from sc2pool.units import Floats

Features = NDArray[np.float32]

N_AROUND, N_HEIGHTS = 8, 9
"""The number of places that an agent may see around itself; `N_HEIGHTS` includes its own place."""


@dataclass(frozen=True)
class Sizes:
    """The sizes of an observation, each of its parts, and the state."""

    scenario: Contest
    rules: Rules

    @cached_property
    def n_actions(self) -> int:
        """The number of an agent's actions."""
        return FIRST_TARGET + self.scenario.n_targets

    @cached_property
    def shield_of_allies(self) -> int:
        """1 if the team's race has shields, else 0."""
        return int(self.scenario.kinds[0].max_shield > 0)

    @cached_property
    def shield_of_enemies(self) -> int:
        """1 if the enemy's race has shields, else 0."""
        return int(self.scenario.enemy_kinds[0].max_shield > 0)

    @cached_property
    def move(self) -> int:
        """The size of an agent's observation of its moves."""
        rules = self.rules
        return N_MOVES + N_AROUND * rules.obs_pathing_grid + N_HEIGHTS * rules.obs_terrain_height

    @cached_property
    def enemy(self) -> int:
        """The size of an agent's observation of one enemy."""
        seen = self.rules.obs_all_health * (1 + self.shield_of_enemies)
        return 4 + seen + self.scenario.n_types

    @cached_property
    def ally(self) -> int:
        """The size of an agent's observation of one ally."""
        seen = self.rules.obs_all_health * (1 + self.shield_of_allies)
        return 4 + seen + self.scenario.n_types + self.rules.obs_last_action * self.n_actions

    @cached_property
    def own(self) -> int:
        """The size of an agent's observation of itself."""
        rules = self.rules
        seen = rules.sees_own_health * (1 + self.shield_of_allies)
        place = 2 * rules.obs_own_pos
        return seen + place + self.scenario.n_types + rules.obs_timestep_number

    @cached_property
    def observation(self) -> int:
        """The size of an agent's whole observation."""
        scenario = self.scenario
        others = scenario.n_enemies * self.enemy + (scenario.n_agents - 1) * self.ally
        return self.move + others + self.own

    @cached_property
    def state(self) -> int:
        """The size of the state."""
        scenario, rules = self.scenario, self.rules
        if rules.obs_instead_of_state:
            return scenario.n_agents * self.observation
        allies = scenario.n_agents * (4 + self.shield_of_allies + scenario.n_types)
        enemies = scenario.n_enemies * (3 + self.shield_of_enemies + scenario.n_types)
        actions = rules.state_last_action * scenario.n_agents * self.n_actions
        return allies + enemies + actions + rules.state_timestep_number


def observations(
    battle: Battle, ground: Ground, masks: Bools, last_actions: Features, elapsed: float
) -> Features:
    """The agents' observations, (agents, numbers) float32; a dead agent sees only the time.

    `last_actions` are one-hot, zeros at the start. `elapsed` is a share of the time limit.
    """
    rules, allies, enemies = battle.rules, battle.allies, battle.enemies
    n = len(allies.tags)
    moves: list[Bools | Floats] = [masks[:, FIRST_MOVE:FIRST_TARGET]]
    if rules.obs_pathing_grid:
        moves.append(ground.walkable_around(allies.positions, rules.move_amount))
    if rules.obs_terrain_height:
        moves.append(ground.height_around(allies.positions, rules.move_amount))
    targets = masks[:, FIRST_TARGET : FIRST_TARGET + len(enemies.tags)]
    of_enemies = _seen(battle, enemies, targets, _types(enemies))
    types = _types(allies)
    shown = types if battle.scenario.shows_types else np.zeros_like(types)
    of_allies = _seen(battle, allies, np.ones((n, n)), shown)
    if rules.obs_last_action:
        visible = of_allies[..., :1]
        actions = np.broadcast_to(last_actions, (n, *last_actions.shape)) * visible
        of_allies = np.concatenate([of_allies, actions], axis=2)
    of_others = of_allies[~np.eye(n, dtype=np.bool_)].reshape(n, -1)  # no agent is its own ally
    own = _shares(allies) if rules.sees_own_health else np.zeros((n, 0))
    place = allies.positions / ground.size if rules.obs_own_pos else np.zeros((n, 0))
    parts = [*moves, of_enemies.reshape(n, -1), of_others, own, place, types]
    seen = np.concatenate(parts, axis=1, dtype=np.float32)
    seen[~allies.alive] = 0.0
    if rules.obs_timestep_number:
        seen = np.pad(seen, ((0, 0), (0, 1)), constant_values=elapsed)
    return seen


def state(
    battle: Battle, ground: Ground, last_actions: Features, elapsed: float, seen: Features
) -> Features:
    """The whole battle as one vector; with `obs_instead_of_state`, the observations in `seen`."""
    rules, allies, enemies = battle.rules, battle.allies, battle.enemies
    if rules.obs_instead_of_state:
        return seen.ravel()
    cooldown = (allies.cooldown / allies.max_cooldown)[:, None]
    parts = []
    for side, more in ((allies, [cooldown]), (enemies, [])):
        shares = _shares(side)
        places = (side.positions - np.divide(ground.size, 2)) / ground.playable
        row = np.concatenate([shares[:, :1], *more, places, shares[:, 1:], _types(side)], axis=1)
        row[~side.alive] = 0.0
        parts.append(row.ravel())
    if rules.state_last_action:
        parts.append(last_actions.ravel())
    if rules.state_timestep_number:
        parts.append(np.array([elapsed]))
    return np.concatenate(parts, dtype=np.float32)


def _seen(battle: Battle, others: Army, first: Bools | Floats, types: Floats) -> Floats:
    """Each agent's observation of each unit of a side, (agents, units, numbers).

    `first` has the first number of each observation, (agents, units); `types` has the last numbers.
    """
    allies, sight = battle.allies, battle.sight[:, None]
    offsets = others.positions[None, :, :] - allies.positions[:, None, :]
    distance = np.hypot(offsets[..., 0], offsets[..., 1])
    visible = (distance < sight) & others.alive
    columns = [_shares(others), types] if battle.rules.obs_all_health else [types]
    of_units = np.concatenate(columns, axis=1)
    seen: Floats = np.concatenate(
        [
            first[..., None],
            (distance / sight)[..., None],
            offsets / sight[..., None],
            np.broadcast_to(of_units, (len(allies.tags), *of_units.shape)),
        ],
        axis=2,
    )
    seen[~visible] = 0.0
    return seen


def _shares(side: Army) -> Floats:
    """Each unit's health and, if the race has shields, shield, as shares of the largest value."""
    columns = [side.health / side.full_health]
    if side.kinds[0].max_shield > 0:
        columns.append(side.shield / side.max_shield)
    return np.stack(columns, axis=1)


def _types(side: Army) -> Floats:
    """The type of each unit, one-hot; empty if the side has only one type."""
    n_types = len(side.kinds)
    return np.eye(n_types)[side.kind] if n_types > 1 else np.zeros((len(side.tags), 0))
