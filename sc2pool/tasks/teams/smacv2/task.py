"""`RandomTeamsTask`: a battle of SMACv2's random teams, and a task for each of its scenarios.

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

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np

from sc2pool.errors import ConfigError
from sc2pool.tasks.teams.smac.battle import LOST, WON, Battle
from sc2pool.tasks.teams.smac.battle_task import BattleTask, made_task
from sc2pool.tasks.teams.smac.ground import Ground
from sc2pool.tasks.teams.smac.rules import Rules
from sc2pool.tasks.teams.smac.scenarios import MEDIVAC
from sc2pool.tasks.teams.smacv2.config import example_config, random_teams
from sc2pool.tasks.teams.smacv2.teams import MAPS, Drawn, RandomTeams, begun, copy_ids, create

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
