"""`SmacTask`: a scenario of SMAC as a team's task, and one for each of SMAC's maps, by its name.

    from sc2pool.tasks.teams.smac.task import smac_task
    class Sparse(smac_task("3m")):
        rules = Rules(reward_sparse=True)

Rules: a battle ends when a side is dead, which terminates the episode, or at the scenario's time
limit, which truncates it (SMAC calls both terminated); each episode is a new game of the pool,
while SMAC kills all units and lets the map create new ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from s2clientprotocol import sc2api_pb2

from sc2pool.config import Computer
from sc2pool.errors import ConfigError
from sc2pool.tasks.commands import Commands
from sc2pool.tasks.teams.smac import actions, features
from sc2pool.tasks.teams.smac.battle import LOST, WON, Battle, Bools
from sc2pool.tasks.teams.smac.features import Features, Sizes
from sc2pool.tasks.teams.smac.ground import Ground
from sc2pool.tasks.teams.smac.rules import Rules
from sc2pool.tasks.teams.smac.scenarios import SCENARIOS, Scenario
from sc2pool.tasks.teams.team_task import TeamTask

STEP_MUL = 8
"""SMAC's game loops per env step, in which the scenarios' time limits count."""
_LOOPS_FOR_UNITS = 100
"""Game loops in which the map must have created all units; SMAC waits for ever."""


class SmacTask(TeamTask):
    """One battle of a scenario of SMAC.

    Action space: `Discrete(6 + enemies)`, see `actions`. Observation space: a Box, see `features`.

    Attributes:
        scenario: the map, its units and its time limit. From these and the rules a class gets what
            it does not define itself: agents, spaces, map, race, opponent, `max_loops`.
        rules: SMAC's options.
        tells_deaths: whether each step's info has `battle_won`, `dead_allies` and `dead_enemies`,
            as SMAC's; otherwise only the last one of an episode, because an info costs time.
    """

    scenario: ClassVar[Scenario]
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
            made |= {
                "map_name": scenario.name,
                "race_requested": scenario.race,
                "opponents": (Computer(scenario.enemy_race, sc2api_pb2.VeryHard),),
            }
        for name, value in made.items():
            if name not in own:
                setattr(cls, name, value)

    async def on_start(self) -> None:
        self.ground = Ground.of(self.game_info)
        for _ in range(_LOOPS_FOR_UNITS):
            battle = Battle.begun(self.scenario, self.rules, self.lazy_observation)
            if battle is not None:
                self.battle = battle
                return
            # The map's script may create the units some loops after the start.
            self.lazy_observation = (await self.game.step([], 1)).observed
        raise ConfigError(
            f"the map {self.map_name!r} has not the units of the scenario {self.scenario.name!r}: "
            f"{self.scenario.n_agents} of the team and {self.scenario.n_enemies} enemies"
        )

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
        """What the step earned.

        The damage dealt (health and shield), `reward_death_value` for each kill and `reward_win` at
        a victory, divided by the best return and multiplied by `reward_scale_rate`. Without
        `reward_only_positive`, less the team's damage and deaths times `reward_negative_scale`.
        """
        rules, outcome = self.rules, self.battle.outcome()
        reward = self.battle.reward
        if outcome == WON:
            reward = 1.0 if rules.reward_sparse else reward + rules.reward_win
        elif outcome == LOST:
            reward = -1.0 if rules.reward_sparse else reward + rules.reward_defeat
        if rules.reward_scale:
            reward /= self.battle.largest_reward / rules.reward_scale_rate
        return reward

    def terminated(self) -> bool:
        return self.battle.outcome() is not None

    def info(self) -> dict[str, Any]:
        outcome = self.battle.outcome()
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
        return actions.as_commands(self.battle, self._masks, [int(one) for one in action])

    @property
    def _elapsed(self) -> float:
        return self._steps / self.scenario.limit

    def _at_limit(self) -> bool:
        return self.max_loops is not None and self.lazy_observation.game_loop >= self.max_loops

    def _one_hot(self, taken: Sequence[int] | None) -> Features:
        last = np.zeros((self.scenario.n_agents, self.sizes.n_actions), dtype=np.float32)
        if taken is not None:
            last[np.arange(len(last)), np.asarray(taken, dtype=np.intp)] = 1.0
        return last


@cache
def smac_task(name: str, rules: Rules | None = None) -> type[SmacTask]:
    """The task of a scenario, with SMAC's default options or others.

    Raises:
        ConfigError: SMAC has no such map.
    """
    scenario = SCENARIOS.get(name)
    if scenario is None:
        raise ConfigError(f"no scenario {name!r}; SMAC has {', '.join(SCENARIOS)}")
    sides = f"{scenario.n_agents} agents, {scenario.n_enemies} enemies"
    members: dict[str, Any] = {
        "__module__": __name__,
        "__doc__": f"SMAC's scenario {name}: {sides}.",
        "scenario": scenario,
    }
    if rules is not None:
        members["rules"] = rules
    return type(name, (SmacTask,), members)


def __getattr__(name: str) -> type[SmacTask]:
    """The tasks by their names, which Python could not give to a class: `….task:3m`."""
    if name in SCENARIOS:
        return smac_task(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
