"""`GamesCallback`: what RLlib must be told of its env runners' pools.

    env runner   env made ─► seeds of its own      fragment sampled ─► figures of the pool, as sums
    algorithm    all runners made, or one made anew ─► do all play the same?
                 each training step ─► has a pool failed for good?

Rule: an env runner's process may die with its games, and RLlib makes another; but a pool that has
failed for good (a task that raises, a crash loop) ends the training, see `failure`.
"""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import ray
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.env.env_runner import EnvRunner
from ray.rllib.env.env_runner_group import EnvRunnerGroup
from ray.rllib.utils.metrics.metrics_logger import MetricsLogger

from sc2pool.envs.vector.env import SC2VectorEnv
from sc2pool.errors import ClosedError, ConfigError
from sc2pool.pool.statistics.stats import PoolStats
from sc2pool.ray.agreement import Played, check_agreement
from sc2pool.ray.cluster import ANSWER_S
from sc2pool.ray.rllib.failure import ReportingEnv, failure_of
from sc2pool.realtime.rllib import after_each_training_step, log_growth

_RUN = "sc2pool_run"
"""The attribute of an env runner that names its training."""


class GamesCallback(RLlibCallback):
    """Figures, seeds and agreement of the pools of all env runners; `configure` adds it.

    **Figures**: `result["env_runners"]["pool"]` has sums over all env runners since the training
    began: `env_steps`, `episodes`, `launches`, `faults`, `recoveries` (faults whose env plays
    again), `recycles` by cause, and `misses` (actions that came too late, in real time); and, of
    the runner where it is highest, `recovery_s_max`, the longest time from a fault to the next
    first observation. In real time also `gap_s_p50`, `gap_s_p99` and `gap_s_max`, how long a game
    waited for its action.

    **Seeds**: with `config.debugging(seed=s)` equal seeds give equal episodes, and no two envs of
    the training have an episode in common. A runner that is made anew does not repeat the episodes
    of the one before.

    **Agreement**: all runners must play the same version of the game with the same sc2pool.

    Raises:
        ConfigError: the env is not an `SC2VectorEnv`, or runners play different versions; the
            message names their nodes.
        ClosedError: a runner's pool has failed for good.
    """

    def __init__(self) -> None:
        super().__init__()
        self._logged: Mapping[str, float] = {}
        self._envs_made = 0
        self._run = secrets.token_hex(8)

    # In the env runner's process.

    def on_environment_created(
        self, *, env_runner: EnvRunner, metrics_logger: MetricsLogger, env: Any, **keywords: Any
    ) -> None:
        """Give the runner a seed of its own; begin to count anew."""
        del metrics_logger, keywords
        if not isinstance(env, SC2VectorEnv):
            raise ConfigError(f"GamesCallback needs an SC2VectorEnv, got {env!r}")
        self._logged = {}
        if isinstance(env, ReportingEnv):
            env.run = getattr(env_runner, _RUN, "")  # it has one if it makes its env anew
        config = env_runner.config
        if config.seed is not None:
            # RLlib's own is the run's seed plus the runner's number, which repeats among runners,
            # because each env's number is added to it in turn.
            life = (config.in_evaluation, env_runner.worker_index or 0, self._envs_made)
            env_runner._seed = runner_seed(config.seed, life, _made_anew())
        self._envs_made += 1

    def on_sample_end(
        self, *, env_runner: EnvRunner, metrics_logger: MetricsLogger, samples: Any, **keywords: Any
    ) -> None:
        """Log what the pool has counted since the fragment before."""
        del samples, keywords
        stats = env_runner.env.unwrapped.stats()
        self._logged = log_growth(metrics_logger, "pool", self._logged, sums(stats))
        for name, value in highest(stats).items():
            metrics_logger.log_value(("pool", name), value, reduce="max")

    # In the algorithm's process.

    def on_algorithm_init(
        self, *, algorithm: Algorithm, metrics_logger: MetricsLogger, **keywords: Any
    ) -> None:
        """Check that all runners play the same, before the first step."""
        del metrics_logger, keywords
        try:
            check_agreement(_all_played(algorithm, self._run))
        except ConfigError:
            algorithm.cleanup()  # the caller never gets the algorithm, so it cannot stop it
            raise
        after_each_training_step(algorithm, lambda: _raise_failure(self._run))

    def on_env_runners_recreated(
        self, *, algorithm: Algorithm, env_runner_group: EnvRunnerGroup, **keywords: Any
    ) -> None:
        """Check again, with the runner that came back."""
        del env_runner_group, keywords
        check_agreement(_all_played(algorithm, self._run))


def sums(stats: PoolStats) -> dict[str, float]:
    """The pool's figures that add up over the runners and over time."""
    found: dict[str, float] = {
        "env_steps": stats.env_steps,
        "episodes": stats.episodes,
        "launches": stats.launches,
        "faults": stats.faults,
        "recoveries": 0 if stats.recovery_s is None else stats.recovery_s.count,
        "misses": stats.realtime.misses,
    }
    return found | {f"recycles/{cause}": count for cause, count in stats.recycles.items()}


def highest(stats: PoolStats) -> dict[str, float]:
    """The pool's figures of which the highest of all runners is shown."""
    found = {}
    if stats.recovery_s is not None:
        found["recovery_s_max"] = stats.recovery_s.max
    if stats.realtime.gap_s is not None:
        gap_s = stats.realtime.gap_s
        found |= {"gap_s_p50": gap_s.p50, "gap_s_p99": gap_s.p99, "gap_s_max": gap_s.max}
    return found


def runner_seed(seed: int, life: tuple[int, ...], made_anew: bool) -> int:
    """The seed of a vector env.

    Args:
        seed: of the run.
        life: what tells it from all others of the run.
        made_anew: whether its process follows one that died; it must not repeat its episodes.
    """
    key = (*map(int, life), secrets.randbits(32)) if made_anew else tuple(map(int, life))
    return int(np.random.SeedSequence(seed, spawn_key=key).generate_state(1)[0])


def _raise_failure(run: str) -> None:
    failure = failure_of(run)
    if failure:
        raise ClosedError(f"the pool of an env runner has failed {failure}")


def _all_played(algorithm: Algorithm, run: str) -> list[tuple[str, Played]]:
    """All env runners' games and their nodes; tells each the name of the training."""
    groups = (algorithm.env_runner_group, algorithm.eval_env_runner_group)
    found: list[tuple[str, Played]] = []
    for group in groups:
        if group is not None:
            told = group.foreach_env_runner(
                partial(_played, run=run), local_env_runner=True, timeout_seconds=ANSWER_S
            )
            found += filter(None, told)
    return found


def _played(runner: EnvRunner, run: str) -> tuple[str, Played] | None:
    """An env runner's games and their node; None if it has no env."""
    if runner.env is None:
        return None
    setattr(runner, _RUN, run)
    runner.env.unwrapped.run = run
    where = f"env runner {runner.worker_index or 0} on node {ray.util.get_node_ip_address()}"
    pool = runner.env.unwrapped.pool
    return where, Played.of(pool, pool.stats())


def _made_anew() -> bool:
    """True if Ray has restarted the actor that this process is."""
    context = ray.get_runtime_context()
    with warnings.catch_warnings():  # Ray calls what it has deprecated
        warnings.simplefilter("ignore")
        return context.get_actor_id() is not None and context.was_current_actor_reconstructed
