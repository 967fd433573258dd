"""`PauseDuringTraining`: games in real time stand still while RLlib's new API stack learns.

    env runner   … step ─► on_sample_end: pause ─┐             ┌─► the next sample's first step:
    algorithm                                    └─► update ─► │   the games go on by themselves

RLlib makes one callback object per process, samples several fragments for an update, and calls
`on_train_result` once for several updates. Hence the rules: games are paused in their own process
after each fragment; that they are paused is known to their env, which lets them go on when it is
stepped or reset; nothing that the algorithm's process is told of resumes anything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.impala import IMPALAConfig
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.env.env_runner import EnvRunner
from ray.rllib.utils.metrics import ENV_RUNNER_RESULTS, NUM_ENV_STEPS_SAMPLED_LIFETIME
from ray.rllib.utils.metrics.metrics_logger import MetricsLogger

from sc2pool.errors import ConfigError, SampleTimeoutError
from sc2pool.pool.pool import Pool
from sc2pool.realtime.fragments import Discards, Fragment, check_fragment

_STEPS_LEARNED_FROM = (ENV_RUNNER_RESULTS, NUM_ENV_STEPS_SAMPLED_LIFETIME)


class PauseDuringTraining(RLlibCallback):
    """Pauses an env runner's games from the end of each fragment until the first step of the next.

        config.callbacks(PauseDuringTraining)

    The envs are `SC2GymEnv`s, however RLlib vectorises them, or an `SC2VectorEnv`
    (`gym_env_vectorize_mode="vector_entry_point"`), which steps its games together.

    Each result has sums over all env runners since the training began, in
    `result["env_runners"]["pause"]`: `paused_s`, how long games were paused, and `loops_passed`,
    how many game loops passed meanwhile, which should be 0. A pause counts when it is over.

    Raises:
        ConfigError: the env is none of these.
        PauseError: a game could not be stopped.
        SampleTimeoutError: fragments come too late to be learned from; see there.
    """

    def __init__(self) -> None:
        super().__init__()
        self._told = {"paused_s": 0.0, "loops": 0}
        self._discards = Discards()

    def on_environment_created(
        self, *, env_runner: EnvRunner, metrics_logger: MetricsLogger, env: Any, **keywords: Any
    ) -> None:
        """A wrong env is told before the first step, not after the first fragment."""
        del env_runner, metrics_logger, keywords
        try:
            each(env, "realtime")
        except AttributeError as error:
            raise ConfigError(
                f"PauseDuringTraining needs SC2GymEnvs or an SC2VectorEnv, got {env!r}"
            ) from error
        self._told = dict.fromkeys(self._told, 0)

    def on_sample_end(
        self, *, env_runner: EnvRunner, metrics_logger: MetricsLogger, samples: Any, **keywords: Any
    ) -> None:
        """Pause the games of this env runner."""
        del samples, keywords
        env = env_runner.env.unwrapped
        each(env, "pause")
        pauses = [stats["pauses"] for stats in each(env, "stats")]
        for name, key in (("paused_s", "paused_s"), ("loops_passed", "loops")):
            total = sum(pause[key] for pause in pauses)
            metrics_logger.log_value(
                ("pause", name), total - self._told[key], reduce="lifetime_sum"
            )
            self._told[key] = total

    def on_algorithm_init(
        self, *, algorithm: Algorithm, metrics_logger: MetricsLogger, **keywords: Any
    ) -> None:
        """Fragments that no env runner can play in time are told before the first one is."""
        del metrics_logger, keywords
        runners = algorithm.env_runner_group
        # IMPALA and its kin take what is ready, and wait for nobody; neither does a sole process.
        if isinstance(algorithm.config, IMPALAConfig) or not runners.num_remote_workers():
            return
        try:
            for fragment in runners.foreach_env_runner(fragment_of, local_env_runner=False):
                if fragment is not None:
                    check_fragment(fragment, algorithm.config.sample_timeout_s)
        except SampleTimeoutError:
            algorithm.cleanup()  # nobody gets this algorithm, so nobody else could stop it
            raise
        algorithm.training_step = self._watched(algorithm)

    def _watched(self, algorithm: Algorithm) -> Callable[[], None]:
        """Its `training_step`, after which samples that came too late are told of.

        Of a callback's methods none would do: in an iteration that is to have so many steps
        (`min_sample_timesteps_per_iteration`) RLlib tries for ever, and calls none of them.
        """
        training_step = algorithm.training_step

        def step() -> None:
            training_step()
            self._discards.after_training_step(
                algorithm.env_runner_group.num_env_runners_dropped_lifetime(),
                algorithm.metrics.peek(_STEPS_LEARNED_FROM, default=0),
                algorithm.config.sample_timeout_s,
            )

        return step


def fragment_of(runner: EnvRunner) -> Fragment | None:
    """What an env runner plays in a call; None where its games wait for it."""
    env = runner.env.unwrapped
    if not any(each(env, "realtime")):
        return None
    whole_episodes = runner.config.batch_mode == "complete_episodes"
    steps = 1 if whole_episodes else runner.config.get_rollout_fragment_length(runner.worker_index)
    return Fragment(steps, runner.num_envs, max(each(env, "step_mul")))


def each(env: Any, name: str) -> tuple[Any, ...]:
    """An attribute of each pool in a vector env, or what a method of that name returns."""
    if isinstance(getattr(env, "pool", None), Pool):
        found = getattr(env, name)
        return (found() if callable(found) else found,)
    return tuple(env.call(name))
