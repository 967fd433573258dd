"""A battle: arrays of both sides' units, updated at each step, and the actions of the agents.

`Battle` knows the living units, the battle's outcome and the rewards. The sources in SMAC are
`StarCraft2Env.init_units`, `update_units`, `only_medivac_left` and `reward_battle`. Rules: a unit
keeps its number for the whole battle. A unit that is not in an observation is dead. The last
shield, cooldown and position of a dead unit stay in the arrays, but nothing uses them.

`Ground` holds the map's grids as SMAC reads them: where a unit can move, and how high the ground
is. The sources in SMAC are `StarCraft2Env._launch`, `can_move` and `get_surrounding_points`. Rule:
units cannot move outside the map, but an agent observes 1 for a place outside the map.

`available` says which actions each agent can take, and `as_commands` turns actions into commands.

* Action 0 does nothing; a dead agent can only take this action, and a living agent never can.
* Action 1 stops the unit, and actions 2 to 5 move it north, south, east and west.
* Action 6 + i attacks enemy i; the action of a medivac heals ally i.

The sources in SMAC are `StarCraft2Env.get_avail_agent_actions` and `get_agent_action`. Rule: an
unavailable action gives no command, whereas SMAC raises an AssertionError.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import InitVar, dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from s2clientprotocol import raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool import commands
from sc2pool.commands import Commands
from sc2pool.errors import ConfigError
from sc2pool.protocol.observed import Observed
from sc2pool.tasks.minigames.geometry import bytes_of, walkable_of
from sc2pool.tasks.teams.scenarios import MEDIVAC, Contest, Group, Rules, Scenario, UnitType
from sc2pool.units import Floats, distances, health, shield, weapon_cooldown, with_tags

Bools = NDArray[np.bool_]

WON, DRAWN, LOST = 1, 0, -1
"""The outcomes of a battle for the team."""


class Army:
    """The units of one side; each has a number from 0, which is its index in `units`.

    Attributes:
        kind: the index of each unit's type in `kinds`, the scenario's types of this side.
        full_health: the full hit points of each unit.
        full_shield: the full shield of each unit, as this version of the game defines it.
        turned_on: the map's size if this side sees the map turned by 180°, else None.
        present: whether each unit was in the newest observation.
        health: the hit points of each unit, 0 for dead ones.
        cooldown: game loops until each unit's weapon is ready; for a medivac, its energy.
        positions: the place of each unit, (n, 2).
        medivacs: which units are medivacs.
    """

    def __init__(
        self,
        units: Sequence[raw_pb2.Unit],
        kinds: tuple[UnitType, ...],
        kind: Sequence[int],
        turned_on: tuple[int, int] | None = None,
    ) -> None:
        self.tags = [unit.tag for unit in units]
        self.kinds = kinds
        self.kind = np.array(kind, dtype=np.intp)
        self.full_health = np.array([unit.health_max for unit in units])
        self.full_shield = np.array([unit.shield_max for unit in units])
        self.turned_on = turned_on
        self.max_cooldown = np.array([kinds[i].max_cooldown for i in kind])
        # The maximum is 1 for units without a shield, so that their share is 0 / 1.
        self.max_shield = np.array([kinds[i].max_shield or 1.0 for i in kind])
        self.medivacs = np.array([kinds[i] == MEDIVAC for i in kind])
        self.present: Bools = np.zeros(len(units), dtype=np.bool_)
        self.health, self.shield, self.cooldown = np.zeros((3, len(units)))
        self.positions: Floats = np.zeros((len(units), 2))

    @property
    def alive(self) -> Bools:
        """Which units are alive."""
        alive: Bools = self.health > 0
        return alive

    @property
    def points(self) -> Floats:
        """Hit points plus shield of each unit; 0 for dead ones."""
        return np.where(self.alive, self.health + self.shield, 0.0)

    def has_medivacs_alone(self) -> bool:
        """True if the side began with medivacs, and all units except medivacs are dead."""
        return bool(self.medivacs.any() and not self.alive[~self.medivacs].any())

    def turned(self, places: Floats) -> Floats:
        """Convert places, (…, 2), from the map's coordinates to this side's, or back."""
        return places if self.turned_on is None else self.turned_on - places

    def update(self, observed: Observed) -> None:
        """Update the units' values from an observation."""
        self.present, units = with_tags(observed, self.tags)
        self.health[~self.present] = 0.0
        self.health[self.present] = health(units)
        self.shield[self.present] = shield(units)
        self.cooldown[self.present] = weapon_cooldown(units)
        self.positions[self.present] = self.turned(units.positions)
        living = np.flatnonzero(self.medivacs & self.present)
        if living.size:
            _, medivacs = with_tags(observed, [self.tags[i] for i in living])
            self.cooldown[living] = [unit.energy for unit in medivacs.messages]


@dataclass
class Battle:
    """Both sides of one battle. `observed` is the first observation with all units.

    Attributes:
        recovery_counts: how `reward_only_positive` rewards a step in which the enemy recovers more
            than it loses: if true, by the change's absolute value (as in SMAC); if false, by 0 (as
            in SMACv2).
        sight: the sight range of each agent, in cells.
        reach: the range of each agent's attacks or healing, in cells.
        largest_reward: the best return before scaling.
        reward: the newest step's reward before scaling, without the reward of the battle's end.
    """

    scenario: Contest
    rules: Rules
    allies: Army
    enemies: Army
    observed: InitVar[Observed]
    recovery_counts: bool = True
    sight: Floats = field(init=False)
    reach: Floats = field(init=False)
    largest_reward: float = field(init=False)
    reward: float = 0.0

    def __post_init__(self, observed: Observed) -> None:
        for side in (self.allies, self.enemies):
            side.update(observed)
        kinds = [self.allies.kinds[i] for i in self.allies.kind]
        self.sight = np.array([self.rules.sight_of(kind) for kind in kinds])
        self.reach = np.array([self.rules.reach_of(kind) for kind in kinds])
        self.largest_reward = (
            self.scenario.n_enemies * self.rules.reward_death_value
            + self.rules.reward_win
            + float(self.enemies.full_health.sum() + self.enemies.full_shield.sum())
        )

    @classmethod
    def begun(cls, scenario: Scenario, rules: Rules, observed: Observed) -> Battle | None:
        """The battle that begins with an observation; None if units are still missing.

        Agents are numbered by type and place, enemies in the game's order.
        """
        own = sorted(units_of(observed, raw_pb2.Self), key=by_type_and_place)
        enemies = units_of(observed, raw_pb2.Enemy)
        if (len(own), len(enemies)) != (scenario.n_agents, scenario.n_enemies):
            return None
        index_of = {kind.id: index for index, (kind, _) in enumerate(scenario.enemies)}
        kinds = [index_of.get(unit.unit_type, len(scenario.enemies)) for unit in enemies]
        allies = side_of(own, scenario.allies, own_kinds(own))
        return cls(scenario, rules, allies, side_of(enemies, scenario.enemies, kinds), observed)

    def update(self, observed: Observed) -> None:
        """Read the observation after a step, and compute the step's reward."""
        allies_before, enemies_before = self.allies.points, self.enemies.points
        self.allies.update(observed)
        self.enemies.update(observed)
        lost, allies_lost = _losses(allies_before, self.allies.points)
        dealt, enemies_lost = _losses(enemies_before, self.enemies.points)
        value = self.rules.reward_death_value
        earned = dealt + value * enemies_lost
        if self.rules.reward_sparse:
            self.reward = 0.0
        elif self.rules.reward_only_positive:
            self.reward = abs(earned) if self.recovery_counts else max(earned, 0.0)
        else:
            scale = self.rules.reward_negative_scale
            self.reward = earned - scale * (lost + value * allies_lost)

    def outcome(self) -> int | None:
        """The battle's outcome: WON, DRAWN or LOST; None if the battle continues."""
        n_allies = int(self.allies.present.sum())
        n_enemies = int(self.enemies.present.sum())
        if (n_allies == 0 and n_enemies > 0) or self.allies.has_medivacs_alone():
            return LOST
        if (n_allies > 0 and n_enemies == 0) or self._enemy_medivac_alone():
            return WON
        return DRAWN if n_allies == n_enemies == 0 else None

    def _enemy_medivac_alone(self) -> bool:
        """True if the only living enemy is a medivac."""
        alive = self.enemies.alive
        return bool(alive.sum() == 1 and self.enemies.medivacs[alive].all())


def _losses(before: Floats, now: Floats) -> tuple[float, int]:
    """A side's lost points minus its recovered points, and the number of newly dead units."""
    return float((before - now).sum()), int(((before > 0) & (now == 0)).sum())


def units_of(observed: Observed, alliance: int) -> list[raw_pb2.Unit]:
    """The units of an alliance, a `raw_pb2.Alliance` value, in the game's order."""
    alliances = observed.columns.alliance
    return observed.messages([row for row, whose in enumerate(alliances) if whose == alliance])


def by_type_and_place(unit: raw_pb2.Unit) -> tuple[int, float, float]:
    """The sort key of units: agents get their numbers in this order."""
    return unit.unit_type, unit.pos.x, unit.pos.y


def own_kinds(units: Sequence[raw_pb2.Unit]) -> list[int]:
    """For each unit, its type's index among the team's types, which have consecutive ids."""
    types = [unit.unit_type for unit in units]
    return [unit_type - min(types) for unit_type in types]


def side_of(
    units: Sequence[raw_pb2.Unit],
    groups: Sequence[Group],
    kinds: Sequence[int],
    turned_on: tuple[int, int] | None = None,
) -> Army:
    """The units as one side (see `Army`); ConfigError if their types are not those of `groups`."""
    counts = [kinds.count(index) for index in range(len(groups))]
    if counts != [count for _, count in groups]:
        expected = ", ".join(f"{count} {kind.name}" for kind, count in groups)
        found = sorted(unit.unit_type for unit in units)
        raise ConfigError(f"expected {expected}; the map has units of the types {found}")
    return Army(units, tuple(kind for kind, _ in groups), kinds, turned_on)


MOVES = np.array([(0.0, 1.0), (0.0, -1.0), (1.0, 0.0), (-1.0, 0.0)])
"""The directions of the moves: north, south, east and west."""
_AROUND = np.array([(0, 2), (0, -2), (2, 0), (-2, 0), (1, 1), (-1, -1), (1, -1), (-1, 1), (0, 0)])
"""The places that an agent sees, as offsets in lengths of a move; the last is the agent's place."""


@dataclass(frozen=True)
class Ground:
    """The grids of one map.

    Attributes:
        size: the map's width and height.
        playable: width and height of the playable area.
        walkable: whether units can walk on each cell, (x, y).
        height: the height of each cell, (x, y), from 0 to 1.
    """

    size: tuple[int, int]
    playable: tuple[float, float]
    walkable: Bools
    height: Floats

    @classmethod
    def of(cls, game_info: sc_pb.ResponseGameInfo) -> Ground:
        """The ground as the game describes it."""
        raw = game_info.start_raw
        area = raw.playable_area
        return cls(
            size=(raw.map_size.x, raw.map_size.y),
            playable=(area.p1.x - area.p0.x, area.p1.y - area.p0.y),
            walkable=walkable_of(raw.pathing_grid).T,
            # SMAC flips this grid in every version of the game.
            height=np.flip(bytes_of(raw.terrain_height).T, axis=1) / 255,
        )

    def turned(self) -> Ground:
        """The ground of the map turned by 180°."""
        walkable, height = np.flip(self.walkable), np.flip(self.height)
        return replace(self, walkable=walkable, height=height)

    def can_move(self, positions: Floats, length: float) -> Bools:
        """Whether half a move takes a unit to a walkable cell, (n, 4): north, south, east, west."""
        # SMAC truncates, so a place up to one cell left of the map or below it counts as inside.
        ahead = (positions[:, None, :] + MOVES * (length / 2)).astype(np.int64)
        return self._inside(ahead) & self.walkable[self._clipped(ahead)]

    def walkable_around(self, positions: Floats, length: int) -> Bools:
        """Whether units can walk on the 8 places around each unit, (n, 8)."""
        places = positions.astype(np.int64)[:, None, :] + _AROUND[:-1] * length
        return ~self._inside(places) | self.walkable[self._clipped(places)]

    def height_around(self, positions: Floats, length: int) -> Floats:
        """The height of the 8 places around each unit and of its own place, (n, 9)."""
        places = positions.astype(np.int64)[:, None, :] + _AROUND * length
        return np.where(self._inside(places), self.height[self._clipped(places)], 1.0)

    def _inside(self, places: NDArray[np.int64]) -> Bools:
        return np.asarray(((places >= 0) & (places < self.size)).all(axis=-1))

    def _clipped(self, places: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The indices of the cells at some places, clipped to the map."""
        x, y = np.moveaxis(np.clip(places, 0, np.subtract(self.size, 1)), -1, 0)
        return x, y


NOTHING, STOP, FIRST_MOVE, N_MOVES = 0, 1, 2, len(MOVES)
FIRST_TARGET = FIRST_MOVE + N_MOVES

_MOVE, _ATTACK, _STOP, _HEAL = 16, 23, 4, 386
"""SMAC's commands use these specific abilities instead of the general ones of `commands`."""


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
