"""`smac_battle`: the task of a battle from the arguments of SMAC's and SMACv2's own classes.

Rule: an option that has no effect here accepts any value. Other unsupported options raise an error
if their value would change the game.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from sc2pool.config import Computer
from sc2pool.errors import ConfigError
from sc2pool.tasks.teams.battle_task import BattleTask, smac_task
from sc2pool.tasks.teams.scenarios import SCENARIOS, Rules, Scenario
from sc2pool.tasks.teams.smacv2 import SCENARIOS as RANDOM_TEAMS
from sc2pool.tasks.teams.smacv2 import smacv2_task

_DIFFICULTIES = {name: number for number, name in enumerate("123456789A", start=1)}
"""The game's numbers for the built-in opponent's levels, by SMAC's names of the levels."""
_FIXED: dict[str, tuple[Any, ...]] = {
    "game_version": (None, "latest"),
    "conic_fov": (False,),
    "fully_observable": (False,),
    "obs_starcraft": (True,),
    "prob_obs_enemy": (1.0,),
    "action_mask": (True,),
}
"""The accepted values of each option; any other value would change the game."""
_WITHOUT_EFFECT = frozenset(
    {"window_size_x", "window_size_y", "debug", "kill_unit_step_mul", "num_fov_actions"}
)
"""Options that accept any value: the size of SMAC's window, its log lines, the loops in which
SMACv2's units die between battles, and the actions of `conic_fov`."""


def smac_battle(
    map_name: str | Scenario,
    capability_config: Mapping[str, Any] | None,
    options: Mapping[str, Any],
    difficulty: str,
    limit: int | None,
) -> type[BattleTask]:
    """The task of a battle, with the additional outputs that SMAC's interface needs.

    Args:
        map_name: a scenario of SMAC or SMACv2, or a scenario of the user's own map. With a
            `capability_config`, the name must be that of a map of SMACv2.
        capability_config: the dictionary of SMACv2, or None.
        options: the other options of SMAC and SMACv2, by name.
        difficulty: the built-in opponent's level, "1" to "9" or "A".
        limit: the battle's time limit in env steps; None for the scenario's own.

    Raises:
        ConfigError: a scenario, option or level is unknown, or a value is wrong.
    """
    if difficulty not in _DIFFICULTIES:
        raise ConfigError(
            f"difficulty must be one of {', '.join(_DIFFICULTIES)}, got {difficulty!r}"
        )
    values = _values_of(options)
    rules = Rules(**values)
    members: dict[str, Any] = {"shares_state": True, "tells_deaths": True}
    parent: type[BattleTask]
    if isinstance(map_name, Scenario) and capability_config is not None:
        raise ConfigError("a scenario of your own has no capability_config, which is SMACv2's")
    if isinstance(map_name, Scenario) or (capability_config is None and map_name in SCENARIOS):
        parent = smac_task(map_name)
    elif capability_config is None and map_name not in RANDOM_TEAMS:
        raise ConfigError(
            f"no scenario {map_name!r}; SMAC has {', '.join(SCENARIOS)}; SMACv2 has "
            f"{', '.join(RANDOM_TEAMS)}; sc2pool.smac.own_scenario makes one of your own map"
        )
    else:
        parent = smacv2_task(map_name, capability_config)
        members["tells_best_return"] = True
        if capability_config is None:
            rules = replace(parent.rules, **values)
    scenario = parent.scenario
    if limit is not None:
        scenario = replace(scenario, limit=limit)
    opponent = Computer(scenario.enemy_kinds[0].race, _DIFFICULTIES[difficulty])
    members |= {
        "__module__": parent.__module__,
        "__doc__": parent.__doc__,
        "scenario": scenario,
        "rules": rules,
        "opponents": (opponent,),
    }
    return type(parent.__name__, (parent,), members)


def _values_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that are `Rules`; ConfigError for an unknown option or wrong value."""
    known = [field.name for field in fields(Rules)]
    for name, value in options.items():
        if name in _FIXED and value not in _FIXED[name]:
            possible = " or ".join(map(repr, _FIXED[name]))
            raise ConfigError(f"{name} can only be {possible} here, got {value!r}")
        if name not in _FIXED and name not in _WITHOUT_EFFECT and name not in known:
            raise ConfigError(f"no option {name!r}; SMAC's are {', '.join(known)}")
    return {name: value for name, value in options.items() if name in known}
