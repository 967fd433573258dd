"""RLlib on pools of games: `configure` prepares any algorithm, `GamesCallback` watches the pools.

    config = PPOConfig().env_runners(num_env_runners=2)
    configure(config, task="MoveToBeacon", n=8)
    algorithm = config.build_algo()

Each env runner has a pool of n games on one node, and steps them together (`vector_entry_point`).
`configure` makes all checks that need no actor, because RLlib would wait for ever for actors that
find no room in the cluster.

`GamesCallback` connects RLlib with its env runners' pools. When an env runner makes an env, the
callback gives the env its own seeds. After each fragment, the callback logs the pool's figures as
sums. If a step raises, `ReportingEnv` puts the error into Ray's key-value store. After all runners
are made, or a runner is replaced, the algorithm checks that all runners have the same game. After
each training step, the algorithm checks with `failure_of` if a pool has failed for good.

If an env runner's process dies with its games, RLlib starts another runner. But a pool that has
failed for good (a task that raises, a crash loop) ends the training. RLlib itself would only log
the env's exception, restart the runner and repeat the call, up to a thousand times. So with a
faulty task, RLlib would train without samples. Only errors of sc2pool, which would recur in a new
pool, end a training. Each algorithm gives its run a name, because several algorithms may be made
from one configuration, at the same time (Tune) or one after another.
"""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import ray
from ray.experimental.internal_kv import _internal_kv_get, _internal_kv_put
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.algorithms.impala import IMPALAConfig
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.env.env_runner import EnvRunner
from ray.rllib.env.env_runner_group import EnvRunnerGroup
from ray.rllib.utils.metrics.metrics_logger import MetricsLogger
from ray.tune.registry import register_env

from sc2pool import PoolStats, SC2VectorEnv
from sc2pool.config import PoolConfig
from sc2pool.errors import ClosedError, ConfigError, NodeLostError, SC2PoolError
from sc2pool.integration import (
    DEFAULT_TASK,
    GameChoice,
    TaskChoice,
    after_each_training_step,
    log_growth,
    make_players,
    resolve_task,
)
from sc2pool.ray.cluster import (
    ANSWER_S,
    GAME_RESOURCE,
    Need,
    Node,
    answered,
    check_room,
    connect,
    declares_games,
    nodes,
    on_each,
    resources_of,
)
from sc2pool.ray.equal_nodes import NodeGame, check_agreement
from sc2pool.ray.node_games import end_with_node
from sc2pool.realtime.rllib import RLlibPauseCallback
from sc2pool.utilities import whole_number

Config = TypeVar("Config", bound=AlgorithmConfig)

_PROBE_S = 0.25
"""Time for which each training step waits for a dead runner's answer. With RLlib's default of 30 s
the training would stop while a node is away."""
_RESTART_S = 1.0
"""Time until a runner that failed is restarted. RLlib's default of 60 s would lose more samples."""
_POLL_S = 0.02
"""Time for which IMPALA and APPO wait for samples in one call. Without this wait, RLlib's polling
takes a core from the games: on two busy cores, the games made no sample in 15 s."""


def configure(
    config: Config,
    task: TaskChoice = DEFAULT_TASK,
    n: int = 8,
    *,
    game: GameChoice = "auto",
    realtime: bool = False,
    spares: int = 0,
    step_mul: int | None = None,
    max_loops: int | None = None,
    pool: PoolConfig | None = None,
) -> Config:
    """Let the env runners of an algorithm play games. Connects this process to Ray if needed.

    Before this call, set the numbers of env runners and learners. Callbacks of the config are kept.
    Games in real time are paused while a synchronous algorithm updates (`RLlibPauseCallback`). The
    runners of IMPALA and APPO also play during updates. See `GamesCallback` for the figures in
    results, for seeds, and for the check that all runners have the same game.

    Args:
        config: The algorithm's configuration, which this function changes.
        task: A built-in task's name, or a task class.
        n: The number of games of each env runner.
        game: The game on each node: "auto", "real", or the path of an installation on the nodes.
        pool: The limits and policies of each runner's pool.

    The other keywords are those of `SC2VectorEnv`.

    Returns:
        `config`.

    Raises:
        ConfigError: A keyword is wrong, no cluster answers, the cluster has too little room for the
            runners and learners, or a node lacks the game, the map or the task.
    """
    if not isinstance(config, AlgorithmConfig):
        raise ConfigError(f"config must be an AlgorithmConfig of RLlib, got {config!r}")
    if not config.enable_env_runner_and_connector_v2:
        raise ConfigError("games are for RLlib's new API stack, and config has the old one")
    name = resolve_task(task).__name__
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
        check_room(nodes(), *needs)  # check again, because a node may have died in the meantime
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
    """Make the env of an env runner. RLlib calls this function."""
    folders: list[Path] = []
    if ray.get_runtime_context().get_actor_id() is not None:  # a runner in the driver is no actor
        end_with_node(folders)
    env = ReportingEnv(**settings)
    folders.append(env.pool.run_dir)
    return env


def _check_games(alive: Sequence[Node], games: dict[str, Any]) -> None:
    """Raise if a node that may get a runner cannot play, because RLlib would not report why."""
    declared = declares_games(alive)
    candidates = [node for node in alive if node.games or not declared]
    found = [(node, problem) for node, problem in on_each(candidates, _problem, games) if problem]
    if not found:
        return
    node, problem = found[0]
    advice = f"; if it shall not, start the nodes that shall with the resource {GAME_RESOURCE}"
    # If no node can play, the arguments are wrong, so advice about nodes would not help.
    raise ConfigError(
        f"node {node.name} cannot play: {problem}{advice * (len(found) < len(candidates))}"
    )


def _problem(games: dict[str, Any]) -> str:
    """The reason why this process's node cannot play; empty if it can."""
    try:
        _check_players(games)
    except ConfigError as error:
        return str(error)
    return ""


def _check_players(games: dict[str, Any]) -> None:
    """Raise if this machine cannot play these games, or if RLlib's env runners cannot step them."""
    make_players(**games).require_one_row("An env runner of RLlib")


def _needs_of(config: AlgorithmConfig, n: int) -> list[Need]:
    """The actors that an algorithm needs if each env runner plays n games."""
    cpus_each = config.num_cpus_per_env_runner
    per_learner = config.num_cpus_per_learner
    return [
        Need("env runners", config.num_env_runners, cpus_each, n),
        Need("evaluation env runners", config.evaluation_num_env_runners, cpus_each, n),
        Need("learners", config.num_learners, 1.0 if per_learner == "auto" else per_learner),
    ]


def _callbacks_of(config: AlgorithmConfig) -> list[type]:
    """The user's callback classes, without those that `configure` adds."""
    given = config.callbacks_class
    classes = given if isinstance(given, list | tuple) else [given]
    return [one for one in classes if one not in (GamesCallback, RLlibPauseCallback)]


_RUN = "sc2pool_run"
"""The env runner's attribute with the name of its training."""


class GamesCallback(RLlibCallback):
    """Seeds, logs and compares the env runners' pools. `configure` adds this callback.

    **Figures**: The entry `result["env_runners"]["pool"]` has the following sums over all env
    runners since the training began: `env_steps`, `episodes`, `launches`, `faults`, `recoveries`
    (faults after which the env plays again), `replacements` by cause, and in real time `misses`
    (late actions). Four figures are maxima over the runners. `recovery_s_max` is the longest time
    from a fault to the next episode's first observation. In real time, `gap_s_p50`, `gap_s_p99` and
    `gap_s_max` show how long a game waited for its action.

    **Seeds**: Equal seeds in `config.debugging(seed=s)` give equal episodes. All envs of a training
    have different episodes. A replaced runner does not repeat its predecessor's episodes.

    **Agreement**: All runners must have the same version of the game and of sc2pool.

    Raises:
        ConfigError: The env is not an `SC2VectorEnv`, or the runners' versions differ. The message
            names the nodes of the runners.
        ClosedError: A runner's pool has failed for good.
    """

    def __init__(self) -> None:
        super().__init__()
        self._logged: Mapping[str, float] = {}
        self._envs_made = 0
        self._run = secrets.token_hex(8)

    # The following methods run in the env runner's process.

    def on_environment_created(
        self, *, env_runner: EnvRunner, metrics_logger: MetricsLogger, env: Any, **keywords: Any
    ) -> None:
        """Give the runner its own seed, and count its figures from 0 again."""
        del metrics_logger, keywords
        if not isinstance(env, SC2VectorEnv):
            raise ConfigError(f"GamesCallback needs an SC2VectorEnv, got {env!r}")
        self._logged = {}
        if isinstance(env, ReportingEnv):
            env.run = getattr(env_runner, _RUN, "")  # not empty if this env replaces another env
        config = env_runner.config
        if config.seed is not None:
            # RLlib's seed for an env is the run's seed plus the numbers of runner and env.
            # So the envs of two runners could have the same seed.
            life = (config.in_evaluation, env_runner.worker_index or 0, self._envs_made)
            env_runner._seed = runner_seed(config.seed, life, _made_anew())
        self._envs_made += 1

    def on_sample_end(
        self, *, env_runner: EnvRunner, metrics_logger: MetricsLogger, samples: Any, **keywords: Any
    ) -> None:
        """Log the growth of the pool's counters since the previous fragment."""
        del samples, keywords
        stats = env_runner.env.unwrapped.stats()
        self._logged = log_growth(metrics_logger, "pool", self._logged, sums(stats))
        for name, value in highest(stats).items():
            metrics_logger.log_value(("pool", name), value, reduce="max")

    # The following methods run in the algorithm's process.

    def on_algorithm_init(
        self, *, algorithm: Algorithm, metrics_logger: MetricsLogger, **keywords: Any
    ) -> None:
        """Check that all runners have the same game, task and package, before the first step."""
        del metrics_logger, keywords
        try:
            check_agreement(_all_played(algorithm, self._run))
        except ConfigError:
            algorithm.cleanup()  # clean up here, because the caller gets no algorithm
            raise

        def check_pools() -> None:
            failure = failure_of(self._run)
            if failure:
                raise ClosedError(f"the pool of an env runner has failed {failure}")

        after_each_training_step(algorithm, check_pools)

    def on_env_runners_recreated(
        self, *, algorithm: Algorithm, env_runner_group: EnvRunnerGroup, **keywords: Any
    ) -> None:
        """Check again that all runners have the same game, because a runner was replaced."""
        del env_runner_group, keywords
        check_agreement(_all_played(algorithm, self._run))


def sums(stats: PoolStats) -> dict[str, float]:
    """The pool's figures that results show as sums over the runners and over time."""
    found: dict[str, float] = {
        "env_steps": stats.env_steps,
        "episodes": stats.episodes,
        "launches": stats.launches,
        "faults": stats.faults,
        "recoveries": 0 if stats.recovery_s is None else stats.recovery_s.count,
        "misses": stats.realtime.misses,
    }
    return found | {f"replacements/{cause}": count for cause, count in stats.replacements.items()}


def highest(stats: PoolStats) -> dict[str, float]:
    """The pool's figures that results show as the maximum over the runners."""
    found = {}
    if stats.recovery_s is not None:
        found["recovery_s_max"] = stats.recovery_s.max
    if (gap_s := stats.realtime.gap_s) is not None:
        found |= {"gap_s_p50": gap_s.p50, "gap_s_p99": gap_s.p99, "gap_s_max": gap_s.max}
    return found


def runner_seed(seed: int, life: tuple[int, ...], made_anew: bool) -> int:
    """The seed of a vector env. The numbers in `life` identify the vector env within the run.

    If `made_anew`, this process replaces a dead process, whose episodes it must not repeat.
    """
    key = (*map(int, life), secrets.randbits(32)) if made_anew else tuple(map(int, life))
    return int(np.random.SeedSequence(seed, spawn_key=key).generate_state(1)[0])


def _all_played(algorithm: Algorithm, run: str) -> list[tuple[str, NodeGame]]:
    """Give each env runner the training's name. Return the nodes and games of all runners."""
    groups = (algorithm.env_runner_group, algorithm.eval_env_runner_group)
    found: list[tuple[str, NodeGame]] = []
    for group in groups:
        if group is not None:
            told = group.foreach_env_runner(
                partial(_played, run=run), local_env_runner=True, timeout_seconds=ANSWER_S
            )
            found += filter(None, told)
    return found


def _played(runner: EnvRunner, run: str) -> tuple[str, NodeGame] | None:
    """Give an env runner the training's name. Return its node and game; None if it has no env."""
    if runner.env is None:
        return None
    setattr(runner, _RUN, run)
    runner.env.unwrapped.run = run
    where = f"env runner {runner.worker_index or 0} on node {ray.util.get_node_ip_address()}"
    pool = runner.env.unwrapped.pool
    return where, NodeGame.of(pool, pool.stats())


def _made_anew() -> bool:
    """True if this process is an actor that Ray has restarted."""
    context = ray.get_runtime_context()
    with warnings.catch_warnings():  # because Ray calls its own deprecated functions
        warnings.simplefilter("ignore")
        return context.get_actor_id() is not None and context.was_current_actor_reconstructed


_NAMESPACE = "sc2pool"


class ReportingEnv(SC2VectorEnv):
    """The `SC2VectorEnv` of an env runner, which reports its failure to the algorithm.

    `run` is the name of the training. `run` is empty until the algorithm sets it.
    """

    run = ""

    def reset(self, **keywords: Any) -> Any:
        """Reset the env; see `SC2VectorEnv.reset`."""
        with self._reported():
            return super().reset(**keywords)

    def step(self, actions: Any) -> Any:
        """Step the env; see `SC2VectorEnv.step`."""
        with self._reported():
            return super().step(actions)

    @contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except SC2PoolError as error:
            words = f"on node {ray.util.get_node_ip_address()}: {type(error).__name__}: {error}"
            with suppress(NodeLostError):  # if the head does not answer, raise only the env's error
                answered(
                    lambda: _internal_kv_put(
                        self.run.encode(), words.encode(), False, namespace=_NAMESPACE
                    )
                )
            raise


def failure_of(run: str) -> str:
    """The text of the error that ended a pool of this training; empty if no pool has failed.

    Raises `NodeLostError` if the cluster's head does not answer.
    """
    found = answered(lambda: _internal_kv_get(run.encode(), namespace=_NAMESPACE))
    return "" if found is None else found.decode()
