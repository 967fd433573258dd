"""`RLlibPauseCallback`: pauses games in real time while RLlib updates the policy.

    Env runner   … step ─► on_sample_end: pause ─┐             ┌─► first step of the next sample.
    Algorithm                                    └─► update ─► │

RLlib's new API stack makes one callback object per process, samples several fragments for one
update, and calls `on_train_result` once for several updates. So an env runner's process pauses its
own games after each fragment. No callback resumes games: a paused env resumes its games when it is
stepped or reset.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.impala import IMPALAConfig
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.env.env_runner import EnvRunner
from ray.rllib.utils.metrics import ENV_RUNNER_RESULTS, NUM_ENV_STEPS_SAMPLED_LIFETIME
from ray.rllib.utils.metrics.metrics_logger import MetricsLogger

from sc2pool.errors import ConfigError, SampleTimeoutError
from sc2pool.pool.pool import Pool
from sc2pool.pool.statistics import PoolStats
from sc2pool.realtime.gate import pause_figures
from sc2pool.realtime.sample_timeout import Discards, Fragment, check_fragment

_ANSWER_S = 60.0
"""Time limit for env runners to answer the check. A runner that does not answer is not checked."""
_STEPS_LEARNED_FROM = (ENV_RUNNER_RESULTS, NUM_ENV_STEPS_SAMPLED_LIFETIME)


class RLlibPauseCallback(RLlibCallback):
    """Pauses an env runner's games from a fragment's end until the next fragment's first step.

    Add the callback with `config.callbacks(RLlibPauseCallback)`.

    The envs are `SC2GymEnv`s, or `PausableEnv`s of other games, in any vectorisation of RLlib. A
    runner may also have a single `SC2VectorEnv`, which steps its games together
    (`gym_env_vectorize_mode="vector_entry_point"`).

    In each result, `result["env_runners"]["pause"]` has two sums over all env runners since the
    training began. `paused_s` is the time for which games were paused. `loops_passed` is the number
    of game loops (or of ticks, if a game reports them) that passed in pauses, which should be 0. A
    pause is counted in these sums only after its end.

    Raises:
        ConfigError: The envs cannot be paused.
        PauseError: A game could not be paused.
        SampleTimeoutError: Fragments take longer than RLlib waits for them, see `sample_timeout`.
    """

    def __init__(self) -> None:
        super().__init__()
        self._logged: Mapping[str, float] = {}
        self._discards = Discards()

    def on_environment_created(
        self, *, env_runner: EnvRunner, metrics_logger: MetricsLogger, env: Any, **keywords: Any
    ) -> None:
        """Check the env before the first step, not after the first fragment."""
        del env_runner, metrics_logger, keywords
        try:
            _of_each_env(env, "stats")
        except AttributeError as error:
            raise ConfigError(
                "RLlibPauseCallback needs SC2GymEnvs, an SC2VectorEnv or envs with a pause method, "
                f"such as PausableEnv(env, PauseGate(pid)), got {env!r}"
            ) from error
        self._logged = {}

    def on_sample_end(
        self, *, env_runner: EnvRunner, metrics_logger: MetricsLogger, samples: Any, **keywords: Any
    ) -> None:
        """Pause the games of this env runner."""
        del samples, keywords
        env = env_runner.env.unwrapped
        _of_each_env(env, "pause")
        totals = pause_figures(_of_each_env(env, "stats"))
        self._logged = log_growth(metrics_logger, "pause", self._logged, totals)

    def on_algorithm_init(
        self, *, algorithm: Algorithm, metrics_logger: MetricsLogger, **keywords: Any
    ) -> None:
        """Before the training, check that no fragment takes longer than RLlib waits for it."""
        del metrics_logger, keywords
        runners = algorithm.env_runner_group
        # IMPALA and APPO only take ready samples. Without remote runners, no wait has a limit.
        if isinstance(algorithm.config, IMPALAConfig) or not runners.num_remote_workers():
            return
        try:
            for fragment in runners.foreach_env_runner(
                _fragment, local_env_runner=False, timeout_seconds=_ANSWER_S
            ):
                if fragment is not None:
                    check_fragment(fragment, algorithm.config.sample_timeout_s)
        except SampleTimeoutError:
            algorithm.cleanup()  # clean up here, because the caller gets no algorithm
            raise

        def check_discards() -> None:
            self._discards.after_training_step(
                algorithm.env_runner_group.num_env_runners_dropped_lifetime(),
                algorithm.metrics.peek(_STEPS_LEARNED_FROM, default=0),
                algorithm.config.sample_timeout_s,
            )

        after_each_training_step(algorithm, check_discards)


def log_growth(
    metrics_logger: MetricsLogger, key: str, before: Mapping[str, float], now: Mapping[str, float]
) -> Mapping[str, float]:
    """Log by how much the figures have grown, because RLlib adds up logs. Return `now`."""
    for name, total in now.items():
        grown = total - before.get(name, 0)
        metrics_logger.log_value((key, *name.split("/")), grown, reduce="lifetime_sum")
    return now


def after_each_training_step(algorithm: Algorithm, check: Callable[[], None]) -> None:
    """Call `check` after each training step; its error ends the training.

    A method of a callback would not suffice. With `min_sample_timesteps_per_iteration`, RLlib
    repeats empty training steps for ever, and calls no callback.
    """
    training_step = algorithm.training_step

    def step() -> None:
        try:
            training_step()
        except Exception:
            check()  # may raise a clearer error than RLlib's RuntimeError
            raise
        check()

    algorithm.training_step = step


def _fragment(runner: EnvRunner) -> Fragment | None:
    """The fragment that a runner plays per sample; None if it does not play SC2 in real time."""
    env = runner.env.unwrapped
    of_pools = all(isinstance(stats, PoolStats) for stats in _of_each_env(env, "stats"))
    if not of_pools or not any(_of_each_env(env, "realtime")):
        return None
    whole_episodes = runner.config.batch_mode == "complete_episodes"
    steps = 1 if whole_episodes else runner.config.get_rollout_fragment_length(runner.worker_index)
    return Fragment(steps, runner.num_envs, max(_of_each_env(env, "step_mul")))


def _of_each_env(env: Any, name: str) -> tuple[Any, ...]:
    """The attribute `name` of each env in a vector env, or the result of the method `name`."""
    if isinstance(getattr(env, "pool", None), Pool):
        found = getattr(env, name)
        return (found() if callable(found) else found,)
    return tuple(env.call(name))
