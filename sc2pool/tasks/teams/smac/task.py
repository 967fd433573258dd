"""`SmacTask`: a scenario of SMAC as a team's task, and one for each of SMAC's maps, by its name.

    from sc2pool.tasks.teams.smac.task import smac_task
    class Sparse(smac_task("3m")):
        rules = Rules(reward_sparse=True)

Rule: the map's own script creates the units.
"""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from sc2pool.errors import ConfigError
from sc2pool.tasks.teams.smac.battle import Battle
from sc2pool.tasks.teams.smac.battle_task import BattleTask, made_task
from sc2pool.tasks.teams.smac.ground import Ground
from sc2pool.tasks.teams.smac.rules import Rules
from sc2pool.tasks.teams.smac.scenarios import SCENARIOS, Scenario


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
    """The tasks by their names, which Python could not give to a class: `….task:3m`."""
    if name in SCENARIOS:
        return smac_task(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
