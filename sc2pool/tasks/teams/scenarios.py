"""SMAC's 23 scenarios, scenarios of the user's own maps, and SMAC's options.

A scenario consists of both sides' units and the time limit of a battle.

Source: the map parameters of SMAC's repository (`smac/env/starcraft2/maps/smac_maps.py`), and its
functions `unit_max_cooldown`, `unit_max_shield` and `get_unit_type_id`. Each unit type's ranges are
from SMACv2 (`unit_sight_range` and `unit_shoot_range`).

`Rules` are SMAC's and SMACv2's options, with their names and defaults. The source is
`StarCraft2Env.__init__` in either repository.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import PurePath
from types import MappingProxyType
from typing import Final

from s2clientprotocol import common_pb2

from sc2pool.errors import ConfigError


@dataclass(frozen=True)
class UnitType:
    """A type of unit, with SMAC's scales and SMACv2's ranges.

    Attributes:
        name: the type's name, which is part of the agents' names.
        id: the game's standard id, which the enemy's units have; the team's units have ids that the
            map defines.
        race: a `common_pb2.Race` value.
        max_cooldown: the cooldown that the state shows as 1, in loops; for a medivac, the energy.
        max_shield: the shield that observations show as 1; 0 for units without a shield.
        sight: the sight range under the rule `use_unit_ranges`, in cells.
        reach: the range of attacks or healing under that rule, in cells.
    """

    name: str
    id: int
    race: int
    max_cooldown: float = 15.0
    max_shield: float = 0.0
    sight: float = 9.0
    reach: float = 6.0


MARINE = UnitType("marine", 48, common_pb2.Terran, 15, sight=9, reach=5)
MARAUDER = UnitType("marauder", 51, common_pb2.Terran, 25, sight=10, reach=6)
MEDIVAC = UnitType("medivac", 54, common_pb2.Terran, 200, sight=11, reach=4)
COLOSSUS = UnitType("colossus", 4, common_pb2.Protoss, 24, 150, sight=10, reach=7)
ZEALOT = UnitType("zealot", 73, common_pb2.Protoss, 22, 50, sight=9, reach=0.1)
STALKER = UnitType("stalker", 74, common_pb2.Protoss, 35, 80, sight=10, reach=6)
BANELING = UnitType("baneling", 9, common_pb2.Zerg, 1, sight=8, reach=0.25)
SPINE_CRAWLER = UnitType("spine_crawler", 98, common_pb2.Zerg)
ZERGLING = UnitType("zergling", 105, common_pb2.Zerg, 11, sight=8, reach=0.1)
HYDRALISK = UnitType("hydralisk", 107, common_pb2.Zerg, 10, sight=9, reach=5)

UNIT_TYPES: Final = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            *(MARINE, MARAUDER, MEDIVAC, COLOSSUS, ZEALOT),
            *(STALKER, BANELING, SPINE_CRAWLER, ZERGLING, HYDRALISK),
        )
    }
)
"""All types of units by their names."""

Group = tuple[UnitType, int]


@dataclass(frozen=True)
class Contest:
    """The facts of a battle that determine the sizes of its spaces.

    Attributes:
        name: the task's name.
        map_name: the map's name.
        limit: env steps after which a battle is over.
        kinds: the types of the team's units, all of one race, in the order of their ids.
        enemy_kinds: the types of the enemy's units, in SMAC's order.
        n_agents: the number of the team's units.
        n_enemies: the number of the enemy's units.
        n_targets: the number of an agent's actions that have a target.
        n_types: the length of the one-hot vector of a unit's type; 0 if there is a single type.
        shows_types: whether an agent sees the types of its allies.
        agents: the agents' names.
    """

    name: str
    map_name: str
    limit: int
    kinds: tuple[UnitType, ...]
    enemy_kinds: tuple[UnitType, ...]
    n_agents: int
    n_enemies: int
    n_targets: int
    n_types: int
    shows_types: bool
    agents: tuple[str, ...]


@dataclass(frozen=True)
class Scenario(Contest):
    """One map of SMAC.

    Attributes:
        allies: the team's units, in the order of their types' ids on the map.
        enemies: the enemy's units, in the order in which SMAC numbers their types.
    """

    allies: tuple[Group, ...]
    enemies: tuple[Group, ...]

    @property
    def is_even(self) -> bool:
        """True if both sides have the same units."""
        return set(self.allies) == set(self.enemies)


def own_scenario(
    map_name: str,
    limit: int,
    *,
    allies: Mapping[str | UnitType, int],
    enemies: Mapping[str | UnitType, int],
) -> Scenario:
    """The scenario of your own map, which must work like SMAC's maps.

        own_scenario("4m_vs_5m", 80, allies={"marine": 4}, enemies={"marine": 5})

    Args:
        map_name: the name of the map's file without suffix, or its path.
        limit: env steps after which a battle is over.
        allies: the number of the team's units by type, in the order of the types' ids on the map.
            A type is a name of `UNIT_TYPES`, or a `UnitType`.
        enemies: the number of the enemy's units by type, in the order of the one-hot vectors.

    Raises:
        ConfigError: a type is unknown, a side is empty or has several races, or a number is not a
            whole number of at least 1.
    """
    if not isinstance(map_name, str) or not map_name:
        raise ConfigError(f"map_name must be the name or path of a map, got {map_name!r}")
    _check_count("limit", limit)
    sides = {"allies": allies, "enemies": enemies}
    ours, theirs = (_groups(side, given) for side, given in sides.items())
    return _scenario(PurePath(map_name).stem, limit, ours, theirs, map_name=map_name)


def _groups(side: str, given: object) -> tuple[Group, ...]:
    if not isinstance(given, Mapping) or not given:
        raise ConfigError(f"{side} must be a dict from types to numbers of units, got {given!r}")
    groups = []
    for named, count in given.items():
        kind = UNIT_TYPES.get(named) if isinstance(named, str) else named
        if not isinstance(kind, UnitType):
            raise ConfigError(
                f"{side}: a type must be a UnitType or one of {', '.join(UNIT_TYPES)}, "
                f"got {named!r}"
            )
        _check_count(f"{side}[{named!r}]", count)
        groups.append((kind, count))
    if len({kind.race for kind, _ in groups}) > 1:
        raise ConfigError(f"{side} must be of one race, got {', '.join(map(str, given))}")
    return tuple(groups)


def _check_count(name: str, count: object) -> None:
    if type(count) is not int or count < 1:
        raise ConfigError(f"{name} must be a whole number of at least 1, got {count!r}")


def _scenario(
    name: str,
    limit: int,
    allies: tuple[Group, ...],
    enemies: tuple[Group, ...],
    map_name: str | None = None,
) -> Scenario:
    n_agents, n_enemies = (sum(count for _, count in side) for side in (allies, enemies))
    heals = any(kind == MEDIVAC for kind, _ in allies)
    n_types = max(len(allies), len(enemies))
    return Scenario(
        name=name,
        map_name=map_name or name,
        limit=limit,
        kinds=tuple(kind for kind, _ in allies),
        enemy_kinds=tuple(kind for kind, _ in enemies),
        n_agents=n_agents,
        n_enemies=n_enemies,
        n_targets=max(n_enemies, n_agents) if heals else n_enemies,
        n_types=n_types if n_types > 1 else 0,
        shows_types=True,
        # The types in SMAC's order of the agents.
        agents=tuple(f"{kind.name}_{i}" for kind, count in allies for i in range(count)),
        allies=allies,
        enemies=enemies,
    )


_ALL = (
    ("3m", 60, {MARINE: 3}, {MARINE: 3}),
    ("8m", 120, {MARINE: 8}, {MARINE: 8}),
    ("25m", 150, {MARINE: 25}, {MARINE: 25}),
    ("5m_vs_6m", 70, {MARINE: 5}, {MARINE: 6}),
    ("8m_vs_9m", 120, {MARINE: 8}, {MARINE: 9}),
    ("10m_vs_11m", 150, {MARINE: 10}, {MARINE: 11}),
    ("27m_vs_30m", 180, {MARINE: 27}, {MARINE: 30}),
    ("MMM", 150, {MARAUDER: 2, MARINE: 7, MEDIVAC: 1}, {MARAUDER: 2, MARINE: 7, MEDIVAC: 1}),
    ("MMM2", 180, {MARAUDER: 2, MARINE: 7, MEDIVAC: 1}, {MARAUDER: 3, MARINE: 8, MEDIVAC: 1}),
    # SMAC numbers zealots before stalkers on the enemy's side, and after them on the team's.
    ("2s3z", 120, {STALKER: 2, ZEALOT: 3}, {ZEALOT: 3, STALKER: 2}),
    ("3s5z", 150, {STALKER: 3, ZEALOT: 5}, {ZEALOT: 5, STALKER: 3}),
    ("3s5z_vs_3s6z", 170, {STALKER: 3, ZEALOT: 5}, {ZEALOT: 6, STALKER: 3}),
    ("3s_vs_3z", 150, {STALKER: 3}, {ZEALOT: 3}),
    ("3s_vs_4z", 200, {STALKER: 3}, {ZEALOT: 4}),
    ("3s_vs_5z", 250, {STALKER: 3}, {ZEALOT: 5}),
    ("1c3s5z", 180, {COLOSSUS: 1, STALKER: 3, ZEALOT: 5}, {COLOSSUS: 1, STALKER: 3, ZEALOT: 5}),
    ("2m_vs_1z", 150, {MARINE: 2}, {ZEALOT: 1}),
    ("corridor", 400, {ZEALOT: 6}, {ZERGLING: 24}),
    ("6h_vs_8z", 150, {HYDRALISK: 6}, {ZEALOT: 8}),
    ("2s_vs_1sc", 300, {STALKER: 2}, {SPINE_CRAWLER: 1}),
    ("so_many_baneling", 100, {ZEALOT: 7}, {BANELING: 32}),
    ("bane_vs_bane", 200, {BANELING: 4, ZERGLING: 20}, {BANELING: 4, ZERGLING: 20}),
    ("2c_vs_64zg", 400, {COLOSSUS: 2}, {ZERGLING: 64}),
)
"""The name of each scenario, its time limit, and both sides' units in the order of `Scenario`."""
SCENARIOS: Final = MappingProxyType(
    {
        name: _scenario(name, limit, tuple(allies.items()), tuple(enemies.items()))
        for name, limit, allies, enemies in _ALL
    }
)
"""All of SMAC's scenarios by their names."""


SIGHT_RANGE, SHOOT_RANGE = 9.0, 6.0
"""SMAC's ranges of sight and attack for every unit, in cells, whatever its weapon."""


@dataclass(frozen=True)
class Rules:
    """Options of observations, rewards and the scripted player.

    Attributes:
        move_amount: the length of a move, in cells; a whole number.
        obs_all_health: agents see the health of all units in sight, and their own.
        obs_own_health: agents see their own health.
        obs_last_action: agents see the last actions of allies in sight.
        obs_pathing_grid: agents see on which of 8 places around them units can walk.
        obs_terrain_height: agents see the height of 8 places around them and of their own place.
        obs_instead_of_state: the state consists of all agents' observations.
        obs_timestep_number: agents see the elapsed share of the time limit.
        obs_own_pos: agents see their position on the map (SMACv2).
        use_unit_ranges: each type of unit has its own ranges of sight and attack (SMACv2).
        min_attack_range: the lower bound of those ranges of attack, in cells (SMACv2).
        state_last_action: the state contains the last actions.
        state_timestep_number: the state contains the elapsed share of the time limit.
        reward_sparse: the reward is 1 for a victory, -1 for a defeat, and otherwise 0.
        reward_only_positive: the team's damage and deaths do not lower the reward.
        reward_death_value: added for each killed enemy, subtracted for each lost ally.
        reward_win: added for a victory.
        reward_defeat: added for a defeat.
        reward_negative_scale: the factor on the team's damage and deaths.
        reward_scale: whether rewards are scaled so that the best return is `reward_scale_rate`.
        reward_scale_rate: the best return.
        heuristic_ai: the scripted player of SMAC acts (see `scripted`); given actions are ignored.
        heuristic_rest: the scripted player takes only available actions.

    Raises:
        ConfigError: a value has the wrong type, or a length or scale is not positive.
    """

    move_amount: int = 2
    obs_all_health: bool = True
    obs_own_health: bool = True
    obs_last_action: bool = False
    obs_pathing_grid: bool = False
    obs_terrain_height: bool = False
    obs_instead_of_state: bool = False
    obs_timestep_number: bool = False
    obs_own_pos: bool = False
    use_unit_ranges: bool = False
    min_attack_range: float = 2
    state_last_action: bool = True
    state_timestep_number: bool = False
    reward_sparse: bool = False
    reward_only_positive: bool = True
    reward_death_value: float = 10
    reward_win: float = 200
    reward_defeat: float = 0
    reward_negative_scale: float = 0.5
    reward_scale: bool = True
    reward_scale_rate: float = 20
    heuristic_ai: bool = False
    heuristic_rest: bool = False

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            kinds = {"bool": (bool,), "int": (int,), "float": (int, float)}[str(field.type)]
            if type(value) not in kinds:
                raise ConfigError(f"{field.name} must be of type {field.type}, got {value!r}")
        for name in ("move_amount", "reward_scale_rate"):
            if getattr(self, name) <= 0:
                raise ConfigError(f"{name} must be above 0, got {getattr(self, name)!r}")

    @property
    def sees_own_health(self) -> bool:
        """True if either option shows agents their own health."""
        return self.obs_own_health or self.obs_all_health

    def sight_of(self, kind: UnitType) -> float:
        """The sight range of a unit, in cells."""
        return kind.sight if self.use_unit_ranges else SIGHT_RANGE

    def reach_of(self, kind: UnitType) -> float:
        """The range of a unit's attacks or healing, from centre to centre, in cells."""
        return max(kind.reach, self.min_attack_range) if self.use_unit_ranges else SHOOT_RANGE


ZERO_SUM = Rules(reward_only_positive=False, reward_negative_scale=1.0, reward_defeat=-200.0)
"""Rules of a zero-sum duel: damage, deaths and the outcome add to one side's reward and subtract
the same from the other side's."""


def check_rules(rules: object) -> None:
    """Raise `ConfigError` if the value is not of the type `Rules`."""
    if not isinstance(rules, Rules):
        raise ConfigError(f"rules must be of type Rules, got {rules!r}")
