"""`configure`: games for any algorithm of RLlib, in one call.

    config = PPOConfig().env_runners(num_env_runners=2)
    configure(config, task="MoveToBeacon", n=8)
    algorithm = config.build_algo()

Each env runner has a pool of n games, stepped together (`vector_entry_point`), on a node that has
room for them. Rule: what can be known without an actor is checked here, because RLlib waits for
ever for actors that the cluster has no room for.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import ray
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.algorithms.impala import IMPALAConfig
from ray.tune.registry import register_env

from sc2pool.config import PoolConfig
from sc2pool.envs.specs import (
    DEFAULT_N,
    Game,
    TaskChoice,
    make_players,
    whole_number,
)
from sc2pool.errors import ConfigError
from sc2pool.ray.cluster import (
    GAME_RESOURCE,
    Need,
    Node,
    check_room,
    connect,
    declares_games,
    nodes,
    on_each,
    resources_of,
)
from sc2pool.ray.node_end import end_with_node
from sc2pool.ray.rllib.callback import GamesCallback
from sc2pool.ray.rllib.failure import ReportingEnv
from sc2pool.realtime.rllib import RLlibPauseCallback
from sc2pool.tasks.registry import DEFAULT_TASK, resolve

Config = TypeVar("Config", bound=AlgorithmConfig)

_PROBE_S = 0.25
"""How long each training step waits for a runner that is gone. RLlib's own 30 s would stop the
training for as long as a node is away."""
_RESTART_S = 1.0
"""How long a runner that raised lives on, with its samples missing; RLlib's own is 60 s."""
_POLL_S = 0.02
"""How long IMPALA and APPO wait for samples at one time. Without it RLlib asks without a pause,
which takes a core from the games: on two busy cores it got no sample in 15 s."""


def configure(
    config: Config,
    task: TaskChoice = DEFAULT_TASK,
    n: int = DEFAULT_N,
    *,
    game: Game = "auto",
    realtime: bool = False,
    spares: int = 0,
    step_mul: int | None = None,
    max_loops: int | None = None,
    pool: PoolConfig | None = None,
) -> Config:
    """Let the env runners of an algorithm play games. Connects to Ray if that has not been done.

    Set the numbers of env runners and learners before. Callbacks that the config has are kept.
    Games in real time are paused while a synchronous algorithm updates (`RLlibPauseCallback`);
    IMPALA's and APPO's runners act during updates. See `GamesCallback` for what results contain,
    for seeds, and for the check that all runners play the same.

    Args:
        config: of the algorithm; changed.
        task: a built-in task's name, or a task class.
        n: games of each env runner.
        game: on each node: "auto", "real", or the path of an installation there.
        pool: limits and policies of each runner's pool.

    The other keywords are those of `SC2VectorEnv`.

    Returns:
        `config`.

    Raises:
        ConfigError: a wrong keyword; no cluster answers; it has no room for the runners and
            learners; one of its nodes has no such game, map or task.
    """
    if not isinstance(config, AlgorithmConfig):
        raise ConfigError(f"config must be an AlgorithmConfig of RLlib, got {config!r}")
    if not config.enable_env_runner_and_connector_v2:
        raise ConfigError("games are for RLlib's new API stack, and config has the old one")
    name = resolve(task).__name__
    n = whole_number("n", n, 1)
    games: dict[str, Any] = {
        "task": task,
        "game": game,
        "realtime": realtime,
        "spares": spares,
        "step_mul": step_mul,
        "max_loops": max_loops,
        "config": pool,
    }
    connect()
    if config.num_env_runners or config.evaluation_num_env_runners:
        needs = _needs_of(config, n)
        check_room(nodes(), *needs)
        _check_games(nodes(), games)
        check_room(nodes(), *needs)  # a node that has just died was listed until now
    else:
        _check_players(games)
    register_env(f"sc2pool/{name}", _make_games)
    config.environment(f"sc2pool/{name}", env_config=games)
    config.env_runners(
        num_envs_per_env_runner=n,
        gym_env_vectorize_mode="vector_entry_point",
        custom_resources_per_env_runner=resources_of(n, nodes()),
    )
    config.fault_tolerance(
        env_runner_health_probe_timeout_s=_PROBE_S,
        delay_between_env_runner_restarts_s=_RESTART_S,
    )
    ours: list[type] = [GamesCallback]
    if isinstance(config, IMPALAConfig):
        config.training(timeout_s_sampler_manager=config.timeout_s_sampler_manager or _POLL_S)
    elif realtime:
        ours.append(RLlibPauseCallback)
    config.callbacks(callbacks_class=[*_callbacks_of(config), *ours])
    return config


def _make_games(settings: dict[str, Any]) -> ReportingEnv:
    """Make the env of an env runner; RLlib calls it."""
    folders: list[Path] = []
    if ray.get_runtime_context().get_actor_id() is not None:  # not with RLlib's runner in a driver
        end_with_node(folders)
    env = ReportingEnv(**settings)
    folders.append(env.pool.run_dir)
    return env


def _check_games(alive: Sequence[Node], games: dict[str, Any]) -> None:
    """Raise if a node that a runner may go to cannot play; RLlib would not say why."""
    declared = declares_games(alive)
    candidates = [node for node in alive if node.games or not declared]
    found = [(node, problem) for node, problem in on_each(candidates, _problem, games) if problem]
    if not found:
        return
    node, problem = found[0]
    advice = f"; if it shall not, start the nodes that shall with the resource {GAME_RESOURCE}"
    # If no node can, the arguments are to blame.
    raise ConfigError(
        f"node {node.name} cannot play: {problem}{advice * (len(found) < len(candidates))}"
    )


def _problem(games: dict[str, Any]) -> str:
    """Why the node of this process cannot play; empty if it can."""
    try:
        _check_players(games)
    except ConfigError as error:
        return str(error)
    return ""


def _check_players(games: dict[str, Any]) -> None:
    """Raise if this machine cannot play these games, or RLlib's env runners cannot step them."""
    make_players(**games).require_one_row("An env runner of RLlib")


def _needs_of(config: AlgorithmConfig, n: int) -> list[Need]:
    """The actors of an algorithm; each runner plays n games."""
    cpus_each = config.num_cpus_per_env_runner
    per_learner = config.num_cpus_per_learner
    return [
        Need("env runners", config.num_env_runners, cpus_each, n),
        Need("evaluation env runners", config.evaluation_num_env_runners, cpus_each, n),
        Need("learners", config.num_learners, 1.0 if per_learner == "auto" else per_learner),
    ]


def _callbacks_of(config: AlgorithmConfig) -> list[type]:
    """The classes of callbacks that the user has given, as far as they are not ours."""
    given = config.callbacks_class
    classes = given if isinstance(given, list | tuple) else [given]
    return [one for one in classes if one not in (GamesCallback, RLlibPauseCallback)]
