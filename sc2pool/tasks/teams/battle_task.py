"""A team's battle as a task (`BattleTask`), a task for each of SMAC's maps (`SmacTask`), and duels.

    from sc2pool.tasks.teams.battle_task import smac_task
    class Sparse(smac_task("3m")):
        rules = Rules(reward_sparse=True)

Rules: the death of a side terminates the episode, and the battle's time limit truncates it. (SMAC
calls both ends terminated.) Each episode is a new game of the pool, whereas SMAC plays one long
game and kills all units between episodes. The map's own script creates SMAC's units, and the task
creates the units of SMACv2's random teams.

A duel (`SmacDuel`) is a scenario of SMAC in which learners play both sides.

* `SubprocSC2VecEnv("3m_duel")` has rows for the first player's agents, then for the second's.
* `smac_duel("3m", ZERO_SUM)` is the duel with other options.

Observations, actions and rewards follow SMAC for each side, so a policy that was trained on a
scenario can play its duel. Rules: both sides have the same units, so only scenarios with equal
sides have a duel. The units of both sides act only on orders. The second player sees the map turned
by 180°, so both players begin with the same observations. Enemy i is agent i of the other side. A
side of which only medivacs are left has lost. If both sides have lost, the battle is drawn. SMAC
has no maps for duels; the stand-in has them in `sc2standin/maps/smac_duels`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, ClassVar, TypeVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from s2clientprotocol import raw_pb2, sc2api_pb2

from sc2pool.commands import Commands
from sc2pool.config import Computer
from sc2pool.errors import ConfigError, FaultKind, GameFault
from sc2pool.protocol.observed import Observed
from sc2pool.tasks.task import TeamTask
from sc2pool.tasks.teams import features
from sc2pool.tasks.teams.battle import (
    DRAWN,
    LOST,
    WON,
    Army,
    Battle,
    Bools,
    Ground,
    as_commands,
    available,
    by_type_and_place,
    own_kinds,
    side_of,
    units_of,
)
from sc2pool.tasks.teams.features import Features, Sizes
from sc2pool.tasks.teams.scenarios import SCENARIOS, Contest, Rules, Scenario, check_rules
from sc2pool.tasks.teams.scripted import EAST, NORTH, Heuristic, choose

STEP_MUL = 8
"""SMAC's game loops per env step."""
_LOOPS_FOR_UNITS = 100
"""The game loops within which all units must exist. SMAC waits for ever, SMACv2 for 1000 loops."""
_RESULTS = {WON: sc2api_pb2.Victory, DRAWN: sc2api_pb2.Tie, LOST: sc2api_pb2.Defeat}


class BattleTask(TeamTask):
    """One battle.

    Actions are `Discrete(6 + enemies)` (see `battle`); observations are a Box (see `features`).

    Attributes:
        scenario: the units of both sides and the time limit. The agents, spaces, map, race,
            opponent and `max_loops` are derived from the scenario and the rules, unless the class
            defines them itself.
        rules: the values of SMAC's options.
        tells_deaths: whether each step's info has `battle_won`, `dead_allies` and `dead_enemies`,
            as in SMAC. If False, only an episode's last info has them: an info costs time.
    """

    scenario: ClassVar[Contest]
    rules: ClassVar[Rules] = Rules()
    sizes: ClassVar[Sizes]
    tells_deaths: ClassVar[bool] = False

    battle: Battle
    ground: Ground
    _steps = 0

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if not hasattr(cls, "scenario"):
            return
        own, scenario = vars(cls), cls.scenario
        inherited = {"scenario", "rules", "step_mul"}.isdisjoint(own)
        if inherited:
            return
        check_rules(cls.rules)
        cls.sizes = sizes = Sizes(scenario, cls.rules)
        made = {
            "agents": scenario.agents,
            "action_space": spaces.Discrete(sizes.n_actions),
            "observation_space": spaces.Box(-1.0, 1.0, (sizes.observation,), np.float32),
            # Unbounded, because a weapon's cooldown can be longer than SMAC's divisor.
            "state_space": spaces.Box(-np.inf, np.inf, (sizes.state,), np.float32),
            "max_loops": scenario.limit * cls.step_mul,
        }
        if "scenario" in own:
            made |= cls.game_of(scenario)
        for name, value in made.items():
            if name not in own:
                setattr(cls, name, value)

    @staticmethod
    def game_of(scenario: Contest) -> dict[str, Any]:
        """The class attributes of a scenario's map, race and opponent."""
        return {
            "map_name": scenario.map_name,
            "race_requested": scenario.kinds[0].race,
            "opponents": (Computer(scenario.enemy_kinds[0].race, sc2api_pb2.VeryHard),),
        }

    async def begin_with_units(self, begun: Callable[[Observed], Battle | None]) -> None:
        """Begin the battle with the first observation that shows all units.

        Args:
            begun: returns the battle of an observation, or None if units are missing.

        Raises:
            GameFault: of the kind SETUP_FAILED, if units are missing for too long.
        """
        for _ in range(_LOOPS_FOR_UNITS):
            battle = begun(self.lazy_observation)
            if battle is not None:
                self.begin(battle)
                return
            # The map's script or the game may create units some loops after the start.
            # The time limit begins when all units exist.
            self.lazy_observation = (await self.game.step([], 1)).observed
            if self.max_loops is not None:
                self.max_loops += 1  # type: ignore[misc]  # changes only this episode's object
        raise self.not_the_units()

    def begin(self, battle: Battle) -> None:
        """Begin this battle, whose units all exist."""
        self.battle = battle
        self._heuristic = Heuristic(battle)

    def not_the_units(self) -> GameFault:
        """The fault to raise if units are missing: a new game process may show all units."""
        return GameFault(
            FaultKind.SETUP_FAILED,
            f"the map {self.map_name!r} has not the units of the scenario {self.scenario.name!r}: "
            f"{self.scenario.n_agents} of the team and {self.scenario.n_enemies} enemies",
        )

    def outcome(self) -> int | None:
        """The battle's outcome: WON, DRAWN or LOST; None if the battle continues."""
        return self.battle.outcome()

    def result(self) -> int | None:
        outcome = self.outcome()
        return None if outcome is None else _RESULTS[outcome]

    def observe(self) -> Features:
        if self.last_action is not None:
            self._steps += 1
            self.battle.update(self.lazy_observation)
        self._masks = available(self.battle, self.ground)
        self._last_actions = self._one_hot(self.last_action)
        self._seen_by_agents = features.observations(
            self.battle, self.ground, self._masks, self._last_actions, self._elapsed
        )
        return self._seen_by_agents

    def state(self) -> Features:
        """The state of the whole battle; `features` describes its numbers."""
        return features.state(
            self.battle, self.ground, self._last_actions, self._elapsed, self._seen_by_agents
        )

    def reward(self) -> float:
        """The step's reward.

        It is the sum of the damage dealt (health and shield), `reward_death_value` for each kill,
        and `reward_win` for a victory. Without `reward_only_positive`, the team's lost points and
        deaths times `reward_negative_scale` are subtracted. With `reward_scale` the sum is divided
        by the best return and multiplied by `reward_scale_rate`.
        """
        rules, outcome = self.rules, self.outcome()
        reward = self.battle.reward
        if outcome == WON:
            reward = 1.0 if rules.reward_sparse else reward + rules.reward_win
        elif outcome == LOST:
            reward = -1.0 if rules.reward_sparse else reward + rules.reward_defeat
        if rules.reward_scale:
            reward /= self.battle.largest_reward / rules.reward_scale_rate
        return reward

    def terminated(self) -> bool:
        return self.outcome() is not None

    def info(self) -> dict[str, Any]:
        outcome = self.outcome()
        if not (self.tells_deaths or outcome is not None or self._at_limit()):
            return {}
        return {
            "battle_won": outcome == WON,
            "dead_allies": int((~self.battle.allies.alive).sum()),
            "dead_enemies": int((~self.battle.enemies.alive).sum()),
        }

    def action_masks(self) -> Bools:
        return self._masks

    def act(self, action: Sequence[int]) -> Commands:
        if not self.rules.heuristic_ai:
            return as_commands(self.battle, self._masks, [int(one) for one in action])
        only_available = self.rules.heuristic_rest
        chosen = self._heuristic.actions(self._masks, only_available=only_available)
        return as_commands(self.battle, np.ones_like(self._masks), chosen)

    @property
    def _elapsed(self) -> float:
        return self._steps / self.scenario.limit

    def _at_limit(self) -> bool:
        in_loops = self.max_loops is not None and self.lazy_observation.game_loop >= self.max_loops
        return in_loops or self._steps == self.max_episode_steps

    def _one_hot(self, taken: Sequence[int] | None) -> Features:
        last = np.zeros((self.scenario.n_agents, self.sizes.n_actions), dtype=np.float32)
        if taken is not None:
            last[np.arange(len(last)), np.asarray(taken, dtype=np.intp)] = 1.0
        return last


Made = TypeVar("Made", bound=BattleTask)


def made_task(
    base: type[Made], name: str, scenario: Contest, rules: Rules | None, doc: str
) -> type[Made]:
    """The task class of a scenario; the same arguments give the same class.

    The class becomes an attribute of the module that defines `base`. Without `rules`, the class has
    the base class's rules. If `rules` is not a `Rules` object, ConfigError is raised.
    """
    if rules is not None:
        check_rules(rules)
    return _made(base, name, scenario, rules, doc)  # type: ignore[return-value]


@cache
def _made(
    base: type[BattleTask], name: str, scenario: Contest, rules: Rules | None, doc: str
) -> type[BattleTask]:
    members: dict[str, Any] = {"__module__": base.__module__, "__doc__": doc, "scenario": scenario}
    if rules is not None:
        members["rules"] = rules
    return type(name, (base,), members)


class SmacTask(BattleTask):
    """One battle of a scenario of SMAC.

    Actions are `Discrete(6 + enemies)` (see `battle`); observations are a Box (see `features`).
    """

    scenario: ClassVar[Scenario]

    async def on_start(self) -> None:
        self.ground = Ground.of(self.game_info)
        await self.begin_with_units(partial(Battle.begun, self.scenario, self.rules))


def smac_task(name: str | Scenario, rules: Rules | None = None) -> type[SmacTask]:
    """The task of a scenario, with SMAC's default options or other options.

    Args:
        name: the scenario's name in SMAC, or a scenario from `own_scenario`.
        rules: the options. None for SMAC's defaults.

    Raises:
        ConfigError: there is no such map in SMAC, or `rules` is not a `Rules` object.
    """
    scenario = SCENARIOS.get(name) if isinstance(name, str) else name
    if not isinstance(scenario, Scenario):
        raise ConfigError(f"no scenario {name!r}; SMAC has {', '.join(SCENARIOS)}")
    whose = "SMAC's scenario" if isinstance(name, str) else "The scenario"
    sides = f"{scenario.n_agents} agents, {scenario.n_enemies} enemies"
    doc = f"{whose} {scenario.name}: {sides}."
    return made_task(SmacTask, scenario.name, scenario, rules, doc)


# ---- duels ---------------------------------------------------------------------------------------


SUFFIX = "_duel"
"""The suffix of a duel's name. `_vs` would not fit: in SMAC's names, it means unequal sides."""
DUELS = {f"{one.name}{SUFFIX}": one for one in SCENARIOS.values() if one.is_even}
"""The scenarios that have a duel, by the duel's name."""
_AHEAD = {"bane_vs_bane": NORTH}
"""The move towards the enemy's end, for each scenario in which this move is not east."""


class SmacDuel(SmacTask):
    """One side of a battle between two learners.

    The action and observation spaces are the scenario's. Each side's reward is SMAC's. With the
    rules `ZERO_SUM`, the two sides' rewards add up to 0.
    """

    players: ClassVar[int] = 2

    @staticmethod
    def game_of(scenario: Contest) -> dict[str, Any]:
        return {"map_name": scenario.name + SUFFIX, "race_requested": scenario.kinds[0].race}

    @classmethod
    def scripted(cls, observation: NDArray[np.float32]) -> int:
        """A scripted player for one agent, as described in the module `scripted`."""
        ahead = _AHEAD.get(cls.scenario.name, EAST)
        return choose(observation, cls.sizes, ahead)

    async def on_start(self) -> None:
        ground = Ground.of(self.game_info)
        is_second = self.game.player_id == 2
        self.ground = ground.turned() if is_second else ground
        turned_on = ground.size if is_second else None
        battle = begun(self.scenario, self.rules, self.lazy_observation, turned_on)
        if battle is None:
            raise self.not_the_units()
        self.begin(battle)

    def outcome(self) -> int | None:
        own, enemy = is_beaten(self.battle.allies), is_beaten(self.battle.enemies)
        if not (own or enemy):
            return None
        return DRAWN if own and enemy else LOST if own else WON


def is_beaten(side: Army) -> bool:
    """True if all units of a side are dead, or only medivacs are left."""
    return not (side.alive & ~side.medivacs).any()


def begun(
    scenario: Scenario, rules: Rules, observed: Observed, turned_on: tuple[int, int] | None
) -> Battle | None:
    """A player's battle; None if units are missing. `turned_on` is the map's size for player 2."""
    own, enemies = (units_of(observed, whose) for whose in (raw_pb2.Self, raw_pb2.Enemy))
    if (len(own), len(enemies)) != (scenario.n_agents, scenario.n_enemies):
        return None
    # Enemies get the numbers that they have as agents of their own side.
    for units, is_turned in ((own, turned_on is not None), (enemies, turned_on is None)):
        units.sort(key=_turned_type_and_place if is_turned else by_type_and_place)
    allies = side_of(own, scenario.allies, own_kinds(own), turned_on)
    # Both sides have the same types of units, but SMAC may give the enemy's types another order.
    numbered = [kind for kind, _ in scenario.enemies]
    index_of = [numbered.index(kind) for kind, _ in scenario.allies]
    kinds = [index_of[k] if k < len(index_of) else k for k in own_kinds(enemies)]
    others = side_of(enemies, scenario.enemies, kinds, turned_on)
    return Battle(scenario, rules, allies, others, observed)


def _turned_type_and_place(unit: raw_pb2.Unit) -> tuple[int, float, float]:
    """The sort key of units: the second player's agents get their numbers in this order."""
    unit_type, x, y = by_type_and_place(unit)
    return unit_type, -x, -y


def smac_duel(name: str, rules: Rules | None = None) -> type[SmacTask]:
    """The duel of a scenario, with SMAC's default options or other options.

    Raises:
        ConfigError: there is no such map in SMAC, the map's sides have different units, or
            `rules` is not a `Rules` object.
    """
    scenario = SCENARIOS.get(name)
    if scenario is None or not scenario.is_even:
        even = ", ".join(one.name for one in DUELS.values())
        why = "no such scenario" if scenario is None else "its sides have different units"
        raise ConfigError(f"no duel of {name!r}: {why}; there is one of {even}")
    doc = f"SMAC's scenario {name} for two players: {scenario.n_agents} agents on either side."
    return made_task(SmacDuel, name + SUFFIX, scenario, rules, doc)


def __getattr__(name: str) -> type[SmacTask]:
    """The task with this name, as in `….battle_task:3m`; most names are not valid in Python."""
    if name in SCENARIOS:
        return smac_task(name)
    if name in DUELS:
        return smac_duel(DUELS[name].name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
