"""From what a user asks for to the players of a pool."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from operator import index
from typing import Any, SupportsIndex

import gymnasium

from sc2pool.config import PoolConfig
from sc2pool.errors import ConfigError
from sc2pool.game.installation import find, find_map
from sc2pool.tasks.definition import TaskDefinition
from sc2pool.tasks.player import PlayerSpec
from sc2pool.tasks.players.gym_player import GymSpec
from sc2pool.tasks.players.sc2_player import TaskSpec
from sc2pool.tasks.registry import resolve

EnvFn = Callable[[], gymnasium.Env[Any, Any]]


def task_spec(
    task: str | type[TaskDefinition],
    game: str | os.PathLike[str],
    config: PoolConfig,
    render_mode: str | None = None,
    realtime: bool = False,
) -> TaskSpec:
    """A task on the games of an installation, all checked before any process starts.

    Args:
        render_mode: one of the task's `metadata["render_modes"]`; None for the task's own.
        realtime: whether the games run by themselves.

    Raises:
        ConfigError: unknown task or render mode, no such installation, or no such map in it.
    """
    definition = resolve(task)
    if render_mode is None:
        render_mode = definition.render_mode
    modes = list(definition.metadata.get("render_modes", ()))
    if render_mode is not None and render_mode not in modes:
        raise ConfigError(f"render_mode must be None or one of {modes}, got {render_mode!r}")
    installation = find(game)
    map_path = find_map(installation, definition.map_name)
    return TaskSpec(
        definition, installation, map_path, config.limits, render_mode, config.replays, realtime
    )


def gym_specs(env_fns: Sequence[EnvFn]) -> list[PlayerSpec]:
    """A gym player for each function.

    Raises:
        ConfigError: there are none, or one is not callable.
    """
    if not env_fns:
        raise ConfigError("env_fns is empty; expected at least one function that makes an env")
    for env, env_fn in enumerate(env_fns):
        if not callable(env_fn):
            raise ConfigError(
                f"env_fns[{env}] must be a function that makes an env, got {env_fn!r}"
            )
    return [GymSpec(env_fn) for env_fn in env_fns]


def player_specs(
    env_fns: Sequence[EnvFn] | None,
    task: str | type[TaskDefinition] | None,
    *,
    n: int,
    game: str | os.PathLike[str],
    spares: int,
    render_mode: str | None,
    config: PoolConfig,
    realtime: bool = False,
) -> Sequence[PlayerSpec]:
    """A player for each env, of the functions or of the task, whichever is given.

    Raises:
        ConfigError: both or neither are given; see `task_spec`, `gym_specs`, `check_n`; spares,
            a render mode or real time for functions.
    """
    if (env_fns is None) == (task is None):
        raise ConfigError("give either env_fns or task")
    if task is not None:
        return [task_spec(task, game, config, render_mode, realtime)] * check_n(n)
    if spares:
        raise ConfigError(f"spares are for tasks; with env_fns they must be 0, not {spares}")
    if render_mode is not None:
        raise ConfigError(
            f"render_mode is for tasks; give it to the envs that env_fns make, not here: "
            f"{render_mode!r}"
        )
    if realtime:
        raise ConfigError("realtime is for tasks; the envs that env_fns make have their own clock")
    return gym_specs(list(env_fns or ()))


def check_n(n: object) -> int:
    """A number of envs.

    Raises:
        ConfigError: not a whole number of at least 1.
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise ConfigError(f"n must be a whole number of at least 1, got {n!r}")
    return n


def check_seed(seed: object) -> int:
    """A run's seed.

    Raises:
        ConfigError: not a whole number of at least 0.
    """
    if isinstance(seed, bool) or not isinstance(seed, SupportsIndex) or index(seed) < 0:
        raise ConfigError(f"seed must be None or a whole number of at least 0, got {seed!r}")
    return index(seed)


def check_spares(spares: object) -> int:
    """A number of spares.

    Raises:
        ConfigError: not a whole number of at least 0.
    """
    if isinstance(spares, bool) or not isinstance(spares, int) or spares < 0:
        raise ConfigError(f"spares must be a whole number of at least 0, got {spares!r}")
    return spares
