"""The battle of a team as a task (`BattleTask`), and one for each of SMAC's maps (`SmacTask`).

    from sc2pool.tasks.teams.smac.battle_task import smac_task
    class Sparse(smac_task("3m")):
        rules = Rules(reward_sparse=True)

Rules: a battle ends when a side is dead, which terminates the episode, or at the contest's time
limit, which truncates it (SMAC calls both terminated). Each episode is a new game of the pool,
while SMAC kills all units of one long game. SMAC's units are created by the map's own script,
those of SMACv2's random teams by the task.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, ClassVar, TypeVar

import numpy as np
from gymnasium import spaces
from s2clientprotocol import sc2api_pb2

from sc2pool.commands import Commands
from sc2pool.config import Computer
from sc2pool.errors import ConfigError, FaultKind, GameFault
from sc2pool.protocol.observed import Observed
from sc2pool.tasks.teams.smac import actions, features
from sc2pool.tasks.teams.smac.battle import DRAWN, LOST, WON, Battle, Bools
from sc2pool.tasks.teams.smac.features import Features, Sizes
from sc2pool.tasks.teams.smac.ground import Ground
from sc2pool.tasks.teams.smac.rules import Rules, check_rules
from sc2pool.tasks.teams.smac.scenarios import SCENARIOS, Contest, Scenario
from sc2pool.tasks.teams.smac.scripted import Heuristic
from sc2pool.tasks.teams.team_task import TeamTask

STEP_MUL = 8
"""SMAC's game loops per env step, in which the scenarios' time limits count."""
_LOOPS_FOR_UNITS = 100
"""Game loops in which all units must be there. SMAC waits for ever, SMACv2 for 1000."""
_RESULTS = {WON: sc2api_pb2.Victory, DRAWN: sc2api_pb2.Tie, LOST: sc2api_pb2.Defeat}


class BattleTask(TeamTask):
    """One battle.

    Action space: `Discrete(6 + enemies)`, see `actions`. Observation space: a Box, see `features`.

    Attributes:
        scenario: the units of both sides and the time limit. From these and the rules a class gets
            what it does not define itself: agents, spaces, map, race, opponent, `max_loops`.
        rules: SMAC's options.
        tells_deaths: whether each step's info has `battle_won`, `dead_allies` and `dead_enemies`,
            as SMAC's; otherwise only the last one of an episode, because an info costs time.
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
            # A weapon's cooldown can be longer than the one that SMAC divides by.
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
        """The class attributes that say on which map a scenario is played, and by whom."""
        return {
            "map_name": scenario.map_name,
            "race_requested": scenario.kinds[0].race,
            "opponents": (Computer(scenario.enemy_kinds[0].race, sc2api_pb2.VeryHard),),
        }

    async def begin_with_units(self, begun: Callable[[Observed], Battle | None]) -> None:
        """Begin the battle with the first observation that shows all units.

        Args:
            begun: the battle that an observation shows; None if units are missing.

        Raises:
            GameFault: SETUP_FAILED; units are missing for too long.
        """
        for _ in range(_LOOPS_FOR_UNITS):
            battle = begun(self.lazy_observation)
            if battle is not None:
                self.begin(battle)
                return
            # The map's script, or the game, may create the units some loops after the start. The
            # battle's time begins with them.
            self.lazy_observation = (await self.game.step([], 1)).observed
            if self.max_loops is not None:
                self.max_loops += 1  # type: ignore[misc]  # of this episode's object alone
        raise self.not_the_units()

    def begin(self, battle: Battle) -> None:
        """All units are there."""
        self.battle = battle
        self._heuristic = Heuristic(battle)

    def not_the_units(self) -> GameFault:
        """The fault if the units do not come; another process may have them."""
        return GameFault(
            FaultKind.SETUP_FAILED,
            f"the map {self.map_name!r} has not the units of the scenario {self.scenario.name!r}: "
            f"{self.scenario.n_agents} of the team and {self.scenario.n_enemies} enemies",
        )

    def outcome(self) -> int | None:
        """How the battle has ended: WON, DRAWN or LOST; None if it continues."""
        return self.battle.outcome()

    def result(self) -> int | None:
        outcome = self.outcome()
        return None if outcome is None else _RESULTS[outcome]

    def observe(self) -> Features:
        if self.last_action is not None:
            self._steps += 1
            self.battle.update(self.lazy_observation)
        self._masks = actions.available(self.battle, self.ground)
        self._last_actions = self._one_hot(self.last_action)
        self._seen_by_agents = features.observations(
            self.battle, self.ground, self._masks, self._last_actions, self._elapsed
        )
        return self._seen_by_agents

    def state(self) -> Features:
        """The whole battle, see `features`."""
        return features.state(
            self.battle, self.ground, self._last_actions, self._elapsed, self._seen_by_agents
        )

    def reward(self) -> float:
        """The step's reward.

        The damage dealt (health and shield), `reward_death_value` for each kill and `reward_win` at
        a victory, divided by the best return and multiplied by `reward_scale_rate`. Without
        `reward_only_positive`, less the team's damage and deaths times `reward_negative_scale`.
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
            return actions.as_commands(self.battle, self._masks, [int(one) for one in action])
        only_available = self.rules.heuristic_rest
        chosen = self._heuristic.actions(self._masks, only_available=only_available)
        return actions.as_commands(self.battle, np.ones_like(self._masks), chosen)

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
    base: type[Made],
    name: str,
    scenario: Contest,
    rules: Rules | None,
    *,
    doc: str,
    module: str,
) -> type[Made]:
    """The class for a scenario, always the same one.

    Args:
        rules: None for those of the base.
        module: where it is found by its name.

    Raises:
        ConfigError: the rules are of another type.
    """
    if rules is not None:
        check_rules(rules)
    return _made(base, name, scenario, rules, doc=doc, module=module)  # type: ignore[return-value]


@cache
def _made(
    base: type[BattleTask],
    name: str,
    scenario: Contest,
    rules: Rules | None,
    *,
    doc: str,
    module: str,
) -> type[BattleTask]:
    members: dict[str, Any] = {"__module__": module, "__doc__": doc, "scenario": scenario}
    if rules is not None:
        members["rules"] = rules
    return type(name, (base,), members)


class SmacTask(BattleTask):
    """One battle of a scenario of SMAC.

    Action space: `Discrete(6 + enemies)`, see `actions`. Observation space: a Box, see `features`.
    """

    scenario: ClassVar[Scenario]

    async def on_start(self) -> None:
        self.ground = Ground.of(self.game_info)
        await self.begin_with_units(partial(Battle.begun, self.scenario, self.rules))


def smac_task(name: str | Scenario, rules: Rules | None = None) -> type[SmacTask]:
    """The task of a scenario, with SMAC's default options or others.

    Args:
        name: SMAC's name of the scenario, or a scenario from `own_scenario`.

    Raises:
        ConfigError: SMAC has no such map, or the rules are of another type.
    """
    scenario = SCENARIOS.get(name) if isinstance(name, str) else name
    if not isinstance(scenario, Scenario):
        raise ConfigError(f"no scenario {name!r}; SMAC has {', '.join(SCENARIOS)}")
    whose = "SMAC's scenario" if isinstance(name, str) else "The scenario"
    sides = f"{scenario.n_agents} agents, {scenario.n_enemies} enemies"
    doc = f"{whose} {scenario.name}: {sides}."
    return made_task(SmacTask, scenario.name, scenario, rules, doc=doc, module=__name__)


def __getattr__(name: str) -> type[SmacTask]:
    """The tasks by their names, which Python could not give to a class: `….battle_task:3m`."""
    if name in SCENARIOS:
        return smac_task(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
