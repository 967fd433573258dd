"""SMACv2's dictionary `capability_config`, which is read and checked here, and SMACv2's tasks.

    {
        "n_units": 5,
        "n_enemies": 5,
        "team_gen": {
            "dist_type": "weighted_teams",
            "unit_types": ["marine", "marauder", "medivac"],
            "weights": [0.45, 0.45, 0.1],
            "exception_unit_types": ["medivac"],
            "observe": True,
        },
        "start_positions": {
            "dist_type": "surrounded_and_reflect", "p": 0.5, "map_x": 32, "map_y": 32,
        },
    }

Source: `smacv2/env/starcraft2/distributions.py` and `smacv2/examples/configs`. Rule: all wrong,
missing or unknown values raise here. SMACv2 finds them in the first battle or not at all. A part
may repeat `n_units` and `n_enemies`, as in SMACv2's documentation.

This module also has SMACv2's names of the numbers of observations and states. Source:
`StarCraft2Env.build_obs_feature_names` and `build_state_feature_names`. Rules: the names are in the
order of `sc2pool.tasks.teams.smac.features`. The names of an observation are those for agent 0.

`RandomTeamsTask`: a battle of SMACv2's random teams, and a task for each of its scenarios.

    SubprocSC2VecEnv("terran_5_vs_5")       SMACv2's name of a scenario, one of its example configs
    SubprocSC2VecEnv("10gen_terran")        a map's name: ten units on either side
    smacv2_task("10gen_terran", capability_config)

Rules: a battle's teams and places are drawn from the episode's seed, so an episode can be repeated.
The task creates the units by debug commands, as SMACv2 does. A Terran side is beaten when only
medivacs are left; if both sides are beaten, the team has lost. Each battle's rewards are scaled by
its own best return, so that episodes do not depend on each other. SMACv2 scales all battles by the
best return of its first one. So does `StarCraft2Env`, which is SMACv2's interface.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, get_args

import numpy as np

from sc2pool.errors import ConfigError
from sc2pool.tasks.teams.smac.battle import LOST, WON, Battle, Ground
from sc2pool.tasks.teams.smac.battle_task import BattleTask, made_task
from sc2pool.tasks.teams.smac.features import N_AROUND, N_HEIGHTS, Sizes
from sc2pool.tasks.teams.smac.scenarios import MEDIVAC, Rules, UnitType
from sc2pool.tasks.teams.smacv2.teams import (
    LIMIT,
    MAP_CELLS,
    MAP_NAME,
    MAPS,
    Drawn,
    Placing,
    RandomTeams,
    begun,
    copy_ids,
    create,
)

MOST_UNITS = 100
"""The largest number of units of a side. SMACv2's largest scenario has 23."""
_PLACINGS: tuple[Placing, ...] = get_args(Placing)
_COUNTS = ("n_units", "n_enemies")
_LEAST_SHARE = 0.001
"""The least sum of the weights of types that are not exceptions. A team of only exceptions is drawn
again, which takes about 1,000 draws with this share and one unit."""
_TOLERANCE = 1e-6
"""The largest difference between 1 and the sum of the weights."""


def example_config(map_name: str, n_units: int, n_enemies: int) -> dict[str, Any]:
    """The capability config of SMACv2's example for a map, with these numbers of units.

    Raises:
        ConfigError: the map is not one of random teams.
    """
    types = [kind.name for kind in _kinds_of(map_name)]
    # Only Protoss teams may consist of the rare type alone.
    exceptions = {} if map_name == "10gen_protoss" else {"exception_unit_types": [types[2]]}
    return {
        "n_units": n_units,
        "n_enemies": n_enemies,
        "team_gen": {
            "dist_type": "weighted_teams",
            "unit_types": types,
            "weights": [0.45, 0.45, 0.1],
            "observe": True,
            **exceptions,
        },
        "start_positions": {
            "dist_type": "surrounded_and_reflect",
            "p": 0.5,
            "map_x": MAP_CELLS,
            "map_y": MAP_CELLS,
        },
    }


def random_teams(name: str, map_name: str, config: Mapping[str, Any]) -> RandomTeams:
    """The random teams of a capability config, on a map such as "10gen_terran".

    Raises:
        ConfigError: a value is wrong, missing, unknown, or impossible here.
    """
    kinds = _kinds_of(map_name)
    whole = _Part("capability_config", config)
    n_units, n_enemies = (whole.count(key) for key in _COUNTS)
    counts = dict(zip(_COUNTS, (n_units, n_enemies), strict=True))
    team = whole.part("team_gen", counts)
    team.choice("dist_type", ("weighted_teams",))
    drawn = team.types("unit_types", kinds)
    exceptions = frozenset(team.types("exception_unit_types", kinds, default=()))
    weights = team.weights("weights", len(drawn))
    observe = team.flag("observe")
    team.finish()
    shares = zip(drawn, weights, strict=True)
    if math.fsum(weight for kind, weight in shares if kind not in exceptions) < _LEAST_SHARE:
        raise ConfigError(
            f"{team.where}.exception_unit_types must leave types with at least {_LEAST_SHARE} of "
            f"the weights: {[kind.name for kind in drawn]} with weights {list(weights)}"
        )
    places = whole.part("start_positions", counts)
    placing: Placing = places.choice("dist_type", _PLACINGS)
    # The other two placings ignore "p", but SMACv2 allows it for them.
    needed = placing == "surrounded_and_reflect"
    p_reflect = places.number("p", 1.0, default=None if needed else 0.0)
    area = places.number("map_x", MAP_CELLS), places.number("map_y", MAP_CELLS)
    places.finish()
    whole.finish()
    # Medivacs heal allies.
    n_targets = max(n_enemies, n_units) if MEDIVAC in kinds else n_enemies
    return RandomTeams(
        name=name,
        map_name=MAP_NAME,
        limit=LIMIT,
        kinds=kinds,
        enemy_kinds=kinds,
        n_agents=n_units,
        n_enemies=n_enemies,
        n_targets=n_targets,
        n_types=len(kinds),
        shows_types=observe,
        agents=tuple(f"agent_{i}" for i in range(n_units)),  # types differ between battles
        drawn_kinds=drawn,
        weights=weights,
        exceptions=exceptions,
        placing=placing,
        p_reflect=p_reflect,
        area=area,
    )


def _kinds_of(map_name: str) -> tuple[UnitType, ...]:
    kinds = MAPS.get(map_name)
    if kinds is None:
        raise ConfigError(f"random teams play on one of {', '.join(MAPS)}, got {map_name!r}")
    return kinds


class _Part:
    """A dictionary that is read key by key, and its place in the config for error messages."""

    def __init__(self, where: str, value: object) -> None:
        if not isinstance(value, Mapping):
            raise ConfigError(f"{where} must be a dictionary, got {value!r:.60}")
        self.where = where
        self._left = dict(value)

    def take(self, key: str) -> Any:
        if key not in self._left:
            raise ConfigError(f"{self.where}.{key} is missing")
        return self._left.pop(key)

    def count(self, key: str) -> int:
        value = self.take(key)
        if type(value) is not int or not 1 <= value <= MOST_UNITS:
            raise ConfigError(f"{self.where}.{key} must be 1 to {MOST_UNITS}, got {value!r}")
        return value

    def number(self, key: str, most: float, default: float | None = None) -> float:
        """A number from 0 to `most`; required unless it has a default."""
        value = self._left.pop(key, default) if default is not None else self.take(key)
        if type(value) not in (int, float) or not 0 <= value <= most:
            raise ConfigError(f"{self.where}.{key} must be 0 to {most:g}, got {value!r}")
        return float(value)

    def flag(self, key: str) -> bool:
        value = self.take(key)
        if type(value) is not bool:
            raise ConfigError(f"{self.where}.{key} must be True or False, got {value!r}")
        return value

    def choice(self, key: str, choices: Sequence[Any]) -> Any:
        value = self.take(key)
        if value not in choices:
            raise ConfigError(
                f"{self.where}.{key} must be one of {', '.join(choices)}, got {value!r}"
            )
        return value

    def types(
        self, key: str, kinds: Sequence[UnitType], default: Sequence[str] | None = None
    ) -> tuple[UnitType, ...]:
        """The types of a list of names, in which each occurs once."""
        names = self.take(key) if default is None or key in self._left else default
        by_name = {kind.name: kind for kind in kinds}
        if isinstance(names, str) or not isinstance(names, Sequence | set | frozenset):
            raise ConfigError(f"{self.where}.{key} must be a list of names, got {names!r}")
        unknown = [name for name in names if name not in by_name]
        if unknown:
            raise ConfigError(
                f"{self.where}.{key} must be made of {', '.join(by_name)}, which this map has; got "
                f"{unknown[0]!r}"
            )
        if len(set(names)) < len(names) or (default is None and not names):
            raise ConfigError(f"{self.where}.{key} must have each type once, got {list(names)}")
        return tuple(by_name[name] for name in names)

    def weights(self, key: str, n: int) -> tuple[float, ...]:
        """A list of `n` probabilities, scaled to the sum 1."""
        values = self.take(key)
        is_list = isinstance(values, Sequence) and not isinstance(values, str)
        if not is_list or not all(type(v) in (int, float) and 0 <= v <= 1 for v in values):
            raise ConfigError(f"{self.where}.{key} must be a list of shares, got {values!r}")
        if len(values) != n:
            raise ConfigError(f"{self.where}.{key} must be {n}, one for each type, got {values!r}")
        if abs(math.fsum(values) - 1) > _TOLERANCE:
            raise ConfigError(
                f"{self.where}.{key} must have the sum 1, got {values!r}: {math.fsum(values):g}"
            )
        return tuple(value / math.fsum(values) for value in values)

    def part(self, key: str, counts: Mapping[str, int]) -> _Part:
        """A dictionary within this one. Its repeated `counts` are checked and removed."""
        part = _Part(f"{self.where}.{key}", self.take(key))
        for name, count in counts.items():
            if part._left.pop(name, count) != count:
                raise ConfigError(f"{part.where}.{name} must be {count}, as in {self.where}")
        return part

    def finish(self) -> None:
        if self._left:
            raise ConfigError(f"{self.where} has unknown keys: {', '.join(map(str, self._left))}")


_DIRECTIONS = ("north", "south", "east", "west")


def observation_names(sizes: Sizes) -> list[str]:
    """The name of each number of an agent's observation."""
    scenario, rules = sizes.scenario, sizes.rules
    names = [f"move_action_{direction}" for direction in _DIRECTIONS]
    names += [f"pathing_grid_{i}" for i in range(N_AROUND * rules.obs_pathing_grid)]
    names += [f"terrain_height_{i}" for i in range(N_HEIGHTS * rules.obs_terrain_height)]
    for enemy in range(scenario.n_enemies):
        names += _seen("enemy", "shootable", enemy, sizes, shield=sizes.shield_of_enemies)
    for ally in range(1, scenario.n_agents):
        names += _seen("ally", "visible", ally, sizes, shield=sizes.shield_of_allies)
        if rules.obs_last_action:
            names += _last_actions(ally, sizes)
    if rules.sees_own_health:
        names += ["own_health", *["own_shield"] * sizes.shield_of_allies]
    names += ["own_pos_x", "own_pos_y"] * rules.obs_own_pos
    names += [f"own_unit_type_bit_{i}" for i in range(scenario.n_types)]
    return names + ["timestep"] * rules.obs_timestep_number


def state_names(sizes: Sizes) -> list[str]:
    """The name of each number of the state.

    Raises:
        NotImplementedError: the state consists of all agents' observations.
    """
    scenario, rules = sizes.scenario, sizes.rules
    if rules.obs_instead_of_state:
        raise NotImplementedError("a state of all agents' observations has no names, as in SMACv2")
    names = []
    for i in range(scenario.n_agents):
        names += [f"ally_{word}_{i}" for word in ("health", "cooldown")]
        names += _place_and_rest("ally", i, sizes, shield=sizes.shield_of_allies)
    for i in range(scenario.n_enemies):
        names += [f"enemy_health_{i}"]
        names += _place_and_rest("enemy", i, sizes, shield=sizes.shield_of_enemies)
    if rules.state_last_action:
        for i in range(scenario.n_agents):
            names += _last_actions(i, sizes)
    return names + ["timestep"] * rules.state_timestep_number


def _seen(whose: str, first: str, i: int, sizes: Sizes, *, shield: int) -> Iterator[str]:
    """The names of an agent's observation of another unit."""
    for word in (first, "distance", "relative_x", "relative_y"):
        yield f"{whose}_{word}_{i}"
    if sizes.rules.obs_all_health:
        yield f"{whose}_health_{i}"
        yield from [f"{whose}_shield_{i}"] * shield
    yield from _types(whose, i, sizes)


def _place_and_rest(whose: str, i: int, sizes: Sizes, *, shield: int) -> Iterator[str]:
    for word in ("relative_x", "relative_y"):
        yield f"{whose}_{word}_{i}"
    yield from [f"{whose}_shield_{i}"] * shield
    yield from _types(whose, i, sizes)


def _types(whose: str, i: int, sizes: Sizes) -> Iterator[str]:
    for bit in range(sizes.scenario.n_types):
        yield f"{whose}_unit_type_{i}_bit_{bit}"


def _last_actions(i: int, sizes: Sizes) -> Iterator[str]:
    for action in range(sizes.n_actions):
        yield f"ally_last_action_{i}_action_{action}"


EXAMPLE_RULES = Rules(obs_own_pos=True, use_unit_ranges=True)
"""The options of SMACv2's example configs."""
_SIZES = ((5, 5), (10, 10), (10, 11), (20, 20), (20, 23))
SCENARIOS: dict[str, tuple[str, int, int]] = {
    **{
        f"{map_name.removeprefix('10gen_')}_{n}_vs_{m}": (map_name, n, m)
        for map_name in MAPS
        for n, m in _SIZES
    },
    **{map_name: (map_name, 10, 10) for map_name in MAPS},
}
"""SMACv2's scenarios by name: map, units and enemies. A map's own name stands for ten each."""


class RandomTeamsTask(BattleTask):
    """One battle of random teams.

    Action space: `Discrete(6 + enemies)`. For Terran teams `6 + allies` if there are more allies.
    Observation space: a Box.

    Attributes:
        tells_best_return: whether each info has `max_reward`, the best return before scaling.
    """

    scenario: ClassVar[RandomTeams]
    rules: ClassVar[Rules] = EXAMPLE_RULES
    tells_best_return: ClassVar[bool] = False

    async def on_start(self) -> None:
        self.ground = Ground.of(self.game_info)
        copies = await copy_ids(self.game)
        await create(self.game, self.draw(), copies)
        await self.begin_with_units(partial(begun, self.scenario, self.rules, copies))

    def draw(self) -> Drawn:
        """The teams and places of this episode."""
        return self.scenario.draw(np.random.default_rng(self.episode.seed))

    def outcome(self) -> int | None:
        if MEDIVAC not in self.scenario.kinds:
            return self.battle.outcome()
        return terran_outcome(self.battle)

    def info(self) -> dict[str, Any]:
        info = super().info()
        if self.tells_best_return:
            info["max_reward"] = self.battle.largest_reward
        return info


def terran_outcome(battle: Battle) -> int | None:
    """The outcome of a battle of Terran teams; None if the battle continues."""
    allies, enemies = (
        (side.alive & ~side.medivacs).any() for side in (battle.allies, battle.enemies)
    )
    if not allies:
        return LOST
    return None if enemies else WON


def smacv2_task(
    name: str, capability_config: Mapping[str, Any] | None = None, rules: Rules | None = None
) -> type[RandomTeamsTask]:
    """The task of random teams.

    Args:
        name: a scenario, such as "terran_5_vs_5", or a map, such as "10gen_terran".
        capability_config: SMACv2's dictionary. With one, `name` must be a map. None for the
            scenario's own config.
        rules: the options. None for the options of SMACv2's example configs.

    Raises:
        ConfigError: the scenario is unknown, the config is wrong or impossible here, or the rules
            have another type.
    """
    if capability_config is not None:
        return _made(random_teams(name, name, capability_config), rules)
    if name not in SCENARIOS:
        raise ConfigError(f"no scenario {name!r}; SMACv2 has {', '.join(SCENARIOS)}")
    map_name, n, m = SCENARIOS[name]
    return _made(random_teams(name, map_name, example_config(map_name, n, m)), rules)


def _made(teams: RandomTeams, rules: Rules | None) -> type[RandomTeamsTask]:
    sides = f"{teams.n_agents} agents, {teams.n_enemies} enemies"
    doc = f"SMACv2's random teams, {teams.name}: {sides}."
    return made_task(RandomTeamsTask, teams.name, teams, rules, doc=doc, module=__name__)


def __getattr__(name: str) -> type[RandomTeamsTask]:
    """The tasks by their names, some of which are not Python names: `….task:10gen_zerg`."""
    if name in SCENARIOS:
        return smacv2_task(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
