"""`SmacTask`: a scenario of SMAC as a team's task, and one for each of SMAC's maps, by its name.

    from sc2pool.tasks.teams.smac.task import smac_task
    class Sparse(smac_task("3m")):
        rules = Rules(reward_sparse=True)

Rule: the map's own script creates the units.
"""

from __future__ import annotations

from functools import cache
from typing import ClassVar

from sc2pool.errors import ConfigError
from sc2pool.tasks.teams.smac.battle import Battle
from sc2pool.tasks.teams.smac.battle_task import BattleTask, made_task
from sc2pool.tasks.teams.smac.ground import Ground
from sc2pool.tasks.teams.smac.rules import Rules
from sc2pool.tasks.teams.smac.scenarios import SCENARIOS, Scenario

_LOOPS_FOR_UNITS = 100
"""Game loops in which the map must have created all units; SMAC waits for ever."""


class SmacTask(BattleTask):
    """One battle of a scenario of SMAC.

    Action space: `Discrete(6 + enemies)`, see `actions`. Observation space: a Box, see `features`.
    """

    scenario: ClassVar[Scenario]

    async def on_start(self) -> None:
        self.ground = Ground.of(self.game_info)
        for _ in range(_LOOPS_FOR_UNITS):
            battle = Battle.begun(self.scenario, self.rules, self.lazy_observation)
            if battle is not None:
                self.begin(battle)
                return
            # The map's script may create the units some loops after the start.
            self.lazy_observation = (await self.game.step([], 1)).observed
        raise self.not_the_units()


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
    doc = f"SMAC's scenario {name}: {sides}."
    return made_task(SmacTask, name, scenario, rules, doc=doc, module=__name__)


def __getattr__(name: str) -> type[SmacTask]:
    """The tasks by their names, which Python could not give to a class: `….task:3m`."""
    if name in SCENARIOS:
        return smac_task(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
