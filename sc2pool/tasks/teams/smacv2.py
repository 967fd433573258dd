"""SMACv2's battles of random teams: how teams are drawn, their configuration, and the tasks.

* `SubprocSC2VecEnv("terran_5_vs_5")` plays a scenario of SMACv2, one of its example configs.
* `SubprocSC2VecEnv("10gen_terran")` plays with ten units on either side on the named map.
* `smacv2_task("10gen_terran", capability_config)` makes the task of a config.

`RandomTeams` draws both sides' units and their places, and gives each agent its number.

* Team: each unit's type is drawn by weight; a team of only exception types is drawn again.
* Enemies: they have the team's types; any further enemies are drawn as a second team.
* Reflect: the agents are anywhere west of the centre, the enemies at mirrored places in the east.
* Surrounded: the agents are in the centre, the enemies in 1 to 4 groups on the map's diagonals.

For the team's units, the map has nine types of its own, whose units act only on orders. These types
have the highest ids of the game, in the order of the standard types' names. The enemies have
standard types. The sources are `smacv2/env/starcraft2/distributions.py` and the methods
`_init_ally_unit_types`, `_create_new_team` and `init_units` of `StarCraft2Env`. Rules: a draw
depends only on its random generator. Agents are numbered by type and place, enemies in the game's
order. Types are never looked up by name, because names depend on the game's language.

`random_teams` reads and checks SMACv2's dictionary `capability_config`:

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

The sources are `smacv2/env/starcraft2/distributions.py` and `smacv2/examples/configs`. Rule: a
wrong, missing or unknown value raises here; SMACv2 notices it in the first battle or not at all. A
part of the dictionary may repeat `n_units` and `n_enemies`, as in SMACv2's documentation.

`observation_names` and `state_names` name the numbers of observations and states as SMACv2 does.
The sources are `StarCraft2Env.build_obs_feature_names` and `build_state_feature_names`. Rules: the
names are in the order of `sc2pool.tasks.teams.features`. Observations have the names of agent 0's
observation.

`RandomTeamsTask` is a battle. Rules: the teams and places are drawn from the episode's seed, so an
episode can be repeated. The task creates the units by debug commands, as SMACv2 does. A Terran side
is beaten when only medivacs are left; if both sides are beaten, the team has lost. Each battle's
rewards are scaled by that battle's best return, so that episodes do not depend on each other.
SMACv2 and `StarCraft2Env` (SMACv2's interface) scale all battles by the first one's best return.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, get_args
from weakref import WeakKeyDictionary

import numpy as np
from s2clientprotocol import common_pb2, debug_pb2, raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.errors import ConfigError
from sc2pool.foreign import printable
from sc2pool.game.game import Game
from sc2pool.protocol.observed import Observed
from sc2pool.tasks.teams.battle import (
    LOST,
    WON,
    Army,
    Battle,
    Ground,
    by_type_and_place,
    units_of,
)
from sc2pool.tasks.teams.battle_task import BattleTask, is_beaten, made_task
from sc2pool.tasks.teams.features import N_AROUND, N_HEIGHTS, Sizes
from sc2pool.tasks.teams.scenarios import (
    BANELING,
    COLOSSUS,
    HYDRALISK,
    MARAUDER,
    MARINE,
    MEDIVAC,
    STALKER,
    ZEALOT,
    ZERGLING,
    Contest,
    Rules,
    UnitType,
)
from sc2pool.units import Floats

MAP_NAME = "32x32_flat"
MAP_CELLS = 32
"""The width and the height of the map, in cells."""
LIMIT = 200
"""The number of env steps after which a battle is over."""
MAPS: dict[str, tuple[UnitType, ...]] = {
    "10gen_terran": (MARINE, MARAUDER, MEDIVAC),
    "10gen_protoss": (STALKER, ZEALOT, COLOSSUS),
    "10gen_zerg": (ZERGLING, HYDRALISK, BANELING),
}
"""The types of each of SMACv2's maps, in SMACv2's order. All of SMACv2's maps use one file."""

_BESIDE_MIDDLE = 1.0
"""The least distance of agents from the map's centre, along x, in cells. According to SMACv2, units
that are created at the same place block each other."""
_OFFSET = 2.0
"""The least distance of enemies from the map's centre, along both axes, in cells: the agents are at
the centre, and units that are created at the same place block each other."""
_DIAGONALS = ((0, 0), (0, 1), (1, 1), (1, 0))
"""The corners of the map, in lengths of the map."""

Placing = Literal["surrounded_and_reflect", "reflect_position", "surrounded"]


@dataclass(frozen=True)
class Drawn:
    """The types of the team's and the enemy's units, and where they begin, (n, 2)."""

    allies: tuple[UnitType, ...]
    enemies: tuple[UnitType, ...]
    ally_places: Floats
    enemy_places: Floats


@dataclass(frozen=True)
class RandomTeams(Contest):
    """How battles of random teams are drawn.

    Attributes:
        kinds: all possible types, of which a battle may have fewer.
        drawn_kinds: the types that are drawn.
        weights: the probability of each drawn type.
        exceptions: the types that do not form a team by themselves.
        placing: how places are drawn.
        p_reflect: with `surrounded_and_reflect`, the probability of reflected places.
        area: width and height of the part of the map on which units begin.
    """

    drawn_kinds: tuple[UnitType, ...]
    weights: tuple[float, ...]
    exceptions: frozenset[UnitType]
    placing: Placing
    p_reflect: float
    area: tuple[float, float]

    def draw(self, rng: np.random.Generator) -> Drawn:
        """The teams and places of a battle."""
        team = self._team(rng, self.n_agents)
        more = self.n_enemies - self.n_agents
        enemies = (*team, *self._team(rng, more)) if more > 0 else team[: self.n_enemies]
        reflects = self.placing == "reflect_position" or (
            self.placing == "surrounded_and_reflect" and rng.random() <= self.p_reflect
        )
        places = self._reflected(rng) if reflects else self._surrounded(rng)
        return Drawn(team, enemies, *places)

    def _team(self, rng: np.random.Generator, n: int) -> tuple[UnitType, ...]:
        while True:
            chosen = rng.choice(len(self.drawn_kinds), size=n, p=self.weights)
            team = tuple(self.drawn_kinds[i] for i in chosen)
            if not self.exceptions.issuperset(team):
                return team

    def _reflected(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        width, height = self.area
        n, m = self.n_agents, self.n_enemies
        allies = rng.uniform((0, 0), (width / 2 - _BESIDE_MIDDLE, height), (n, 2))
        enemies = np.column_stack([width - allies[:m, 0], allies[:m, 1]])
        if m > n:
            more = rng.uniform((width / 2, 0), (width, height), (m - n, 2))
            enemies = np.concatenate([enemies, more])
        return allies, enemies

    def _surrounded(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        middle = np.divide(self.area, 2)
        n_groups = int(rng.integers(1, len(_DIAGONALS) + 1))
        members = rng.multinomial(self.n_enemies, np.full(n_groups, 1 / n_groups))
        share = rng.uniform(size=(n_groups, 1))
        chosen = rng.choice(len(_DIAGONALS), size=n_groups, replace=False)
        corners = np.array(_DIAGONALS)[chosen]
        nearest = middle + np.where(corners == 1, _OFFSET, -_OFFSET)
        groups = nearest * share + corners * self.area * (1 - share)
        return np.tile(middle, (self.n_agents, 1)), np.repeat(groups, members, axis=0)


_COPIED = sorted({kind for kinds in MAPS.values() for kind in kinds}, key=lambda kind: kind.name)
"""The types that the map copies for the team's units, in the order of the copies."""
_TEAM, _ENEMY = 1, 2
"""The numbers of the two players in the game."""
_first_copies: WeakKeyDictionary[Game, int] = WeakKeyDictionary()
"""For each game, the id of the map's first copy, which stays the same in a game process."""


async def copy_ids(game: Game) -> dict[UnitType, int]:
    """The id of the team's copy of each type on this map."""
    first = _first_copies.get(game)
    if first is None:
        asked = sc_pb.Request(data=sc_pb.RequestData(unit_type_id=True))
        first = len((await game.request(asked)).data.units) - len(_COPIED)
        _first_copies[game] = first
    return {kind: first + i for i, kind in enumerate(_COPIED)}


async def create(game: Game, drawn: Drawn, copies: dict[UnitType, int]) -> None:
    """Create both sides in the next loop; ConfigError if the map lacks their types or places."""
    own = [copies[kind] for kind in drawn.allies]
    others = [kind.id for kind in drawn.enemies]
    units = [
        *_births(_TEAM, own, drawn.ally_places),
        *_births(_ENEMY, others, drawn.enemy_places),
    ]
    reply = await game.request(sc_pb.Request(debug=sc_pb.RequestDebug(debug=units)))
    if reply.error:
        words = printable(", ".join(reply.error))
        raise ConfigError(f"the game does not create the units: {words}")


def _births(player: int, unit_types: Sequence[int], places: Floats) -> list[debug_pb2.DebugCommand]:
    return [
        debug_pb2.DebugCommand(
            create_unit=debug_pb2.DebugCreateUnit(
                unit_type=unit_type, owner=player, pos=common_pb2.Point2D(x=x, y=y), quantity=1
            )
        )
        for unit_type, (x, y) in zip(unit_types, places.tolist(), strict=True)
    ]


def begun(
    teams: RandomTeams, rules: Rules, copies: dict[UnitType, int], observed: Observed
) -> Battle | None:
    """The battle that begins with this observation; None if units are still missing."""
    own = sorted(units_of(observed, raw_pb2.Self), key=by_type_and_place)
    enemies = units_of(observed, raw_pb2.Enemy)
    if (len(own), len(enemies)) != (teams.n_agents, teams.n_enemies):
        return None
    allies = _side(own, teams.kinds, {copies[kind]: i for i, kind in enumerate(teams.kinds)})
    others = _side(enemies, teams.kinds, {kind.id: i for i, kind in enumerate(teams.kinds)})
    if allies is None or others is None:
        return None
    return Battle(teams, rules, allies, others, observed, recovery_counts=False)


def _side(
    units: Sequence[raw_pb2.Unit], kinds: tuple[UnitType, ...], index_of: dict[int, int]
) -> Army | None:
    """The units as a side; None if a unit's type is not in `index_of`."""
    if any(unit.unit_type not in index_of for unit in units):
        return None
    return Army(units, kinds, [index_of[unit.unit_type] for unit in units])


MOST_UNITS = 100
"""The largest number of units of a side. SMACv2's largest scenario has 23 units."""
_PLACINGS: tuple[Placing, ...] = get_args(Placing)
_LEAST_SHARE = 0.001
"""The least sum of the weights of types that are not exceptions. With the least sum, a team of
one unit is drawn about 1,000 times, because a team of only exceptions is drawn again."""
_TOLERANCE = 1e-6
"""The largest difference between 1 and the sum of the weights."""


def example_config(map_name: str, n_units: int, n_enemies: int) -> dict[str, Any]:
    """The capability config of SMACv2's example for a map, with these numbers of units.

    Raises:
        ConfigError: the map is not one of SMACv2's maps.
    """
    types = [kind.name for kind in _kinds_of(map_name)]
    # Only Protoss teams may consist of the third, rare type alone.
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
    """The teams of a config, on a map such as "10gen_terran"; ConfigError for a wrong value."""
    kinds = _kinds_of(map_name)
    whole = _Part("capability_config", config)
    counts = {key: whole.count(key) for key in ("n_units", "n_enemies")}
    n_units, n_enemies = counts.values()
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
    # Only "surrounded_and_reflect" needs the key "p", but SMACv2 allows it for each placing.
    needed = placing == "surrounded_and_reflect"
    p_reflect = places.number("p", 1.0, default=None if needed else 0.0)
    area = places.number("map_x", MAP_CELLS), places.number("map_y", MAP_CELLS)
    places.finish()
    whole.finish()
    # Medivacs heal allies, so allies are also targets.
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
        """The number under a key, from 0 to `most`; required unless it has a default."""
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
        """The types whose names are in the list under `key`; no name may come twice."""
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
        """The dictionary under a key of this dictionary; `counts` in it are checked and removed."""
        part = _Part(f"{self.where}.{key}", self.take(key))
        for name, count in counts.items():
            if part._left.pop(name, count) != count:
                raise ConfigError(f"{part.where}.{name} must be {count}, as in {self.where}")
        return part

    def finish(self) -> None:
        if self._left:
            raise ConfigError(f"{self.where} has unknown keys: {', '.join(map(str, self._left))}")


def observation_names(sizes: Sizes) -> list[str]:
    """The name of each number of an agent's observation."""
    scenario, rules = sizes.scenario, sizes.rules
    names = [f"move_action_{direction}" for direction in ("north", "south", "east", "west")]
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
    """The names of the numbers with which an agent observes another unit."""
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
"""SMACv2's scenarios by name: map, units and enemies. A map's name alone means ten against ten."""


class RandomTeamsTask(BattleTask):
    """One battle of random teams.

    The action space is `Discrete(6 + enemies)`, or `Discrete(6 + allies)` for Terran teams with
    more allies than enemies. The observation space is a Box.

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
    if is_beaten(battle.allies):
        return LOST
    return WON if is_beaten(battle.enemies) else None


def smacv2_task(
    name: str, capability_config: Mapping[str, Any] | None = None, rules: Rules | None = None
) -> type[RandomTeamsTask]:
    """The task of random teams.

    Args:
        name: a scenario, such as "terran_5_vs_5", or a map, such as "10gen_terran".
        capability_config: the dictionary of SMACv2; with it, `name` must be a map. None for the
            scenario's own config.
        rules: the options. None for the options of SMACv2's example configs.

    Raises:
        ConfigError: the scenario is unknown, the config is wrong or impossible here, or
            `rules` is not a `Rules` object.
    """
    map_name = name
    if capability_config is None:
        if name not in SCENARIOS:
            raise ConfigError(f"no scenario {name!r}; SMACv2 has {', '.join(SCENARIOS)}")
        map_name, n, m = SCENARIOS[name]
        capability_config = example_config(map_name, n, m)
    teams = random_teams(name, map_name, capability_config)
    sides = f"{teams.n_agents} agents, {teams.n_enemies} enemies"
    doc = f"SMACv2's random teams, {name}: {sides}."
    return made_task(RandomTeamsTask, name, teams, rules, doc)


def __getattr__(name: str) -> type[RandomTeamsTask]:
    """The task with this name, as in `….task:10gen_zerg`; some names are not valid in Python."""
    if name in SCENARIOS:
        return smacv2_task(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
