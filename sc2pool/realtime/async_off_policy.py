"""`AsyncSAC`, `AsyncTD3` and `AsyncDQN` are SB3's algorithms with an actor in its own thread.

The actor is a thread that steps the env. Actor and learner exchange the data in this diagram.

    Actor    choose ─ step ─ choose ─ step ─ choose ─ …
                       │ steps             ▲ weights
    StepQueue          ▼                   │
    learner  callbacks, replay buffer ─► updates ─► callbacks, replay buffer ─► ….

* Every step that the actor plays is added to the replay buffer, once and in order. Only a second
  Ctrl-C can lose a step. Steps wait in a queue; if the queue is full, the actor waits.
* The learner makes at most as many updates as `train_freq` and `gradient_steps` demand for the
  steps that the learner has taken. A slow learner makes the missing updates later. Before each
  update the learner takes all steps in the queue, so a callback sees these steps in time.
* The actor calls SB3's own `_sample_action` and `_store_transition`. These methods run on a shallow
  copy of the model with the actor's policy, observations and step count.
* Callbacks, `num_timesteps`, episode statistics and DQN's schedule belong to the learner's thread.
  Action noise and gSDE's noise belong to the actor's thread.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple, Self

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3 import DQN, SAC, TD3
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.noise import ActionNoise
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.policies import BaseModel, BasePolicy
from stable_baselines3.common.type_aliases import (
    MaybeCallback,
    RolloutReturn,
    TrainFreq,
    TrainFrequencyUnit,
)
from stable_baselines3.common.utils import should_collect_more_steps
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.her.her_replay_buffer import HerReplayBuffer

from sc2pool.errors import ConfigError
from sc2pool.realtime.acting import (
    Actor,
    ActsWhileLearning,
    Exchange,
    Played,
    Weights,
    short_collections,
)
from sc2pool.realtime.async_ppo.update_process import copied

_MAX_QUEUED: Final = 1_000
"""Maximum length of the queue, in steps of all envs. The learner takes all steps between any two
updates, so only a slow callback fills the queue. For 8 envs with four frames of 84 x 84 pixels, a
full queue takes 450 MB."""


class PlayedStep(NamedTuple):
    """One step of all n envs by the actor."""

    choice: OffPolicyChoice
    played: Played
    transition: tuple[Any, ...]
    """The arguments of `ReplayBuffer.add`."""
    rollout_steps: int
    """The number of env steps of the rollout that this step ends; 0 if it ends no rollout."""


class StepQueue(Exchange):
    """The steps that the learner has not taken yet.

    If `game_waits`, the actor waits after each rollout until the learner has taken it. `full` is
    the number of steps after which the actor waited because the queue was full.
    """

    def __init__(self, *, game_waits: bool) -> None:
        super().__init__(game_waits=game_waits)
        self.full = 0
        self._steps: deque[PlayedStep] = deque()

    def __len__(self) -> int:
        return len(self._steps)

    def add(self, step: PlayedStep) -> None:
        """Add a step, and wait if the queue is full. The actor calls this method."""
        self._steps.append(step)
        self._added.give()
        if self._game_waits and step.rollout_steps:
            self._wait_for_fewer_than(1)
        elif len(self._steps) >= _MAX_QUEUED:
            self.full += 1
            self._wait_for_fewer_than(_MAX_QUEUED)

    def _wait_for_fewer_than(self, n: int) -> None:
        while len(self._steps) >= n and self.learning.locked():
            self._taken.wait_briefly()

    def take(self) -> PlayedStep:
        """Wait for the oldest step, and remove it. The learner calls this method.

        If no step is left, raises the error that `fail` has received.
        """
        while True:
            error = self._error  # read first, because `fail` sets the error after the last step
            if self._steps:
                step = self._steps.popleft()
                self._taken.give()
                return step
            self._wait_for_step(error)

    def rest(self) -> Iterator[PlayedStep]:
        """Remove and yield the steps that still wait. Call this after the actor's end."""
        while self._steps:
            yield self._steps.popleft()


class UpdateRatio:
    """Counts, for one call of `learn`, the updates that SB3 would make and the updates made.

    `gradient_steps` is SB3's number of updates per rollout; if negative, one update per env step.
    """

    def __init__(self, gradient_steps: int) -> None:
        self._gradient_steps = gradient_steps
        self._owed: deque[int] = deque()
        self._env_steps = 0
        self._wanted = 0
        self._made = 0

    def owe(self, env_steps: int) -> None:
        """Record that the learner has taken a rollout, whose updates are now due."""
        updates = self._gradient_steps if self._gradient_steps >= 0 else env_steps
        self._owed.append(updates)
        self._env_steps += env_steps
        self._wanted += updates

    @property
    def is_owing(self) -> bool:
        """True if the learner has taken a rollout, but has not made its updates yet."""
        return bool(self._owed)

    def pay(self) -> int:
        """Count the updates of the oldest recorded rollout as made, and return their number."""
        updates = self._owed.popleft()
        self._made += updates
        return updates

    def figures(self) -> dict[str, float]:
        """The numbers of updates made and of updates wanted, per env step, by log name."""
        if not self._env_steps:
            return {}
        return {
            "updates_per_step": self._made / self._env_steps,
            "updates_per_step_wanted": self._wanted / self._env_steps,
        }


@dataclass(frozen=True)
class OffPolicyChoice:
    """The actions that SB3's `_sample_action` has chosen."""

    version: int
    """The version of the weights that chose the actions."""
    played: NDArray[Any]
    """The actions in the form that the envs received."""
    buffer_actions: NDArray[Any]
    """The actions in the replay buffer's form: the actions of a Box are scaled to [-1, 1]."""


class _Transition:
    """Takes the place of a replay buffer, and keeps the arguments of `add`."""

    arguments: tuple[Any, ...] = ()

    def add(self, *arguments: Any) -> None:
        self.arguments = arguments


class OffPolicyActor(Actor[OffPolicyChoice]):
    """An actor that puts its steps into a queue.

    `policy` is the actor's own copy of the whole policy of `model` (see `Actor`).
    `original_observations` has the newest observations before `VecNormalize` normalised them.
    """

    def __init__(self, model: AsyncOffPolicy, policy: BasePolicy, steps: StepQueue) -> None:
        acting = model.acting_module(policy)
        super().__init__(model, acting, Weights(model.acting_module(model.policy), acting), steps)
        assert isinstance(model.train_freq, TrainFreq)
        self.steps: StepQueue = steps
        self.original_observations: Any = model._last_original_obs
        self._model: AsyncOffPolicy = model
        self._whole_policy: BasePolicy = policy
        self._train_freq: TrainFreq = model.train_freq
        self._num_timesteps: int = model.num_timesteps
        self._rollout_steps: int = 0
        self._rollout_episodes: int = 0
        self._draws_noise: bool = True

    def _choose(self, observations: Any) -> OffPolicyChoice:
        model = self._as_model(observations)
        if model.use_sde and self._draws_noise:
            model.actor.reset_noise(self._env.num_envs)  # type: ignore[operator]
            self._draws_noise = False
        played, buffer_actions = model._sample_action(
            model.learning_starts, model.action_noise, self._env.num_envs
        )
        return OffPolicyChoice(self._loaded.number, played, buffer_actions)

    def _choose_late(self, chosen: OffPolicyChoice, played: NDArray[Any]) -> OffPolicyChoice:
        buffer_actions = played
        if isinstance(self._env.action_space, spaces.Box):
            buffer_actions = self._whole_policy.scale_action(played)
        return OffPolicyChoice(chosen.version, played, buffer_actions)

    def _exchange(self, choice: OffPolicyChoice, played: Played) -> bool:
        transition, model = _Transition(), self._as_model(self.observations)
        model._store_transition(
            transition,  # type: ignore[arg-type]
            choice.buffer_actions,
            *played,
        )
        self.observations = model._last_obs
        self.original_observations = model._last_original_obs
        self._reset_action_noise(model.action_noise, played.dones)
        self.steps.add(
            PlayedStep(choice, played, transition.arguments, self._counted(played.dones))
        )
        return True

    def _as_model(self, observations: Any) -> AsyncOffPolicy:
        """A copy of the model with these observations, and the actor's policy and step count."""
        model = copy.copy(self._model)
        model.policy = self._whole_policy
        model._create_aliases()  # type: ignore[attr-defined]  # all three of SB3's classes have it
        model.num_timesteps = self._num_timesteps
        model._last_obs = observations
        model._last_original_obs = self.original_observations
        return model

    def _reset_action_noise(self, noise: ActionNoise | None, dones: NDArray[np.bool_]) -> None:
        if noise is not None:
            for env in np.flatnonzero(dones):
                noise.reset(**({"indices": [env]} if self._env.num_envs > 1 else {}))

    def _counted(self, dones: NDArray[np.bool_]) -> int:
        """Count a step, and return the number of env steps of the rollout that it ends, or 0."""
        self._num_timesteps += self._env.num_envs
        self._rollout_steps += 1
        self._rollout_episodes += int(dones.sum())
        steps = self._rollout_steps
        every = self._model.sde_sample_freq
        self._draws_noise |= every > 0 and steps % every == 0
        if should_collect_more_steps(self._train_freq, steps, self._rollout_episodes):
            return 0
        self._rollout_steps = self._rollout_episodes = 0
        self._draws_noise = True
        return steps * self._env.num_envs

    def _load_newest_weights(self) -> None:
        super()._load_newest_weights()
        self._draws_noise = True  # new weights need new noise


class AsyncOffPolicy(ActsWhileLearning[OffPolicyActor], OffPolicyAlgorithm):
    """The base class of `AsyncSAC`, `AsyncTD3` and `AsyncDQN`, which act while they learn.

        model = AsyncSAC("MlpPolicy", env)
        model.learn(100_000)

    Each class takes any `VecEnv`, and all arguments of SB3's class. Its `learn`, `save`, `load`,
    replay buffer files, callbacks and loggers work as in SB3. Each class loads models that SB3's
    class has saved, and SB3's class loads models that this class has saved.

    There are at most as many updates per step as `train_freq` and `gradient_steps` demand. A
    learner that is too slow makes fewer updates, and the log shows this. No step is lost, because
    `learn` at its end adds all waiting steps to the replay buffer. But `num_timesteps` and
    callbacks do not count the steps that are added at the end. The actor's weights are usually one
    update old. As in SB3, `VecNormalize`'s statistics change in every step.

    A callback must not call the training env, because the actor steps it; only `stats()` of a pool
    is always allowed. `PauseCallback` cannot be used.

    After every `log_interval` episodes the following figures are logged with SB3's own figures.

    * `async/updates_per_step` and `async/updates_per_step_wanted` are the numbers of updates per
      env step since `learn` began. The first `learning_starts` steps are not counted.
    * `async/lag_mean` and `async/lag_max` are the mean and maximum age of the actor's weights
      since the last record, in versions. Each rollout of `train_freq` makes a version.
    * `async/full_queue_steps`: The number of env steps after which the actor waited for the
      learner, since `learn` began. The actor waits if the queue has 1,000 steps of all envs.
    * `async/late_steps`: The number of env steps with late actions since `learn` began.
    * `async/gap_s_p50`, `async/gap_s_p99` and `async/gap_s_max` are seconds from an observation to
      its action, since the last record.
    * The figures `async/update_gap_s_*` are seconds from observation to action during updates.

    Args:
        args: The arguments of SB3's class.
        game_waits: True if the env does not advance between two steps, like StarCraft II without
            `realtime=True`. The actor then waits for a slower learner, so there are exactly as many
            updates per step as with SB3's class. The actor is at most one rollout ahead.
        kwargs: The keyword arguments of SB3's class and of `ActsWhileLearning`.

    Raises:
        ConfigError: The value of `late_after_s` or of `on_late` is invalid.
        ConfigError: `learn` cannot use a `HerReplayBuffer`, whose samples call the env. `learn`
            also rejects a `train_freq` below 1, and a `train_freq` in episodes for several envs.
        Exception: `learn` cannot pickle the policy, so the actor cannot have a copy of it.
    """

    _acting_module: ClassVar[str]
    """The name of the policy's part that chooses actions."""

    def __init__(self, *args: Any, game_waits: bool = False, **kwargs: Any) -> None:
        self.game_waits = game_waits
        self._ratio = UpdateRatio(0)
        self._lags: list[int] = []
        super().__init__(*args, **kwargs)

    def acting_module(self, policy: BasePolicy) -> BaseModel:
        """The part of a policy that chooses actions, with its features extractor."""
        module: BaseModel = getattr(policy, self._acting_module)
        return module

    @short_collections()
    def learn(  # noqa: PLR0917 - the arguments are SB3's
        self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: int = 4,
        tb_log_name: str = "",
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> Self:
        """Learn as in SB3. The actor runs from the first step to the end of the last update."""
        self._end_actor()
        self._check()
        policy = copied(self.policy)
        self._warm_up(policy)
        total_timesteps, callback = self._setup_learn(
            total_timesteps,
            callback,
            reset_num_timesteps,
            tb_log_name or type(self).__name__,
            progress_bar,
        )
        callback.on_training_start(locals(), globals())
        assert self.env is not None
        assert self.replay_buffer is not None
        assert isinstance(self.train_freq, TrainFreq)
        try:
            running = OffPolicyActor(self, policy, StepQueue(game_waits=self.game_waits))
            self._actor = running
            self._ratio = UpdateRatio(self.gradient_steps)
            self._lags = []
            with running.steps.learning:
                running.start()
                while self.num_timesteps < total_timesteps:
                    rollout = self.collect_rollouts(
                        self.env,
                        callback,
                        self.train_freq,
                        self.replay_buffer,
                        self.action_noise,
                        self.learning_starts,
                        log_interval,
                    )
                    if not rollout.continue_training:
                        break
                    if self._ratio.is_owing and (updates := self._ratio.pay()):
                        with running.gaps.update():
                            self.train(gradient_steps=updates, batch_size=self.batch_size)
                        running.weights.publish(self.acting_module(self.policy))
        finally:
            self._end_actor()
        callback.on_training_end()
        return self

    def _check(self) -> None:
        """Raise `ConfigError` for settings that cannot work while an actor steps the env."""
        if isinstance(self.replay_buffer, HerReplayBuffer):
            raise ConfigError(
                f"{type(self).__name__} cannot use HerReplayBuffer: a sample calls the env's "
                "compute_reward, while the actor steps the env"
            )
        assert isinstance(self.train_freq, TrainFreq)
        if self.train_freq.frequency < 1:
            raise ConfigError(f"train_freq must be at least 1, got {self.train_freq.frequency}")
        if self.train_freq.unit is TrainFrequencyUnit.EPISODE and self.n_envs > 1:
            raise ConfigError(
                f"train_freq counts episodes only with one env, and there are {self.n_envs}: give "
                "it in steps"
            )

    def collect_rollouts(  # noqa: PLR0917 - the arguments are SB3's
        self,
        env: VecEnv,
        callback: BaseCallback,
        train_freq: TrainFreq,
        replay_buffer: ReplayBuffer,
        action_noise: ActionNoise | None = None,
        learning_starts: int = 0,
        log_interval: int | None = None,
    ) -> RolloutReturn:
        """Take all steps that wait in the queue. `learn` calls this method.

        If no updates are due after these steps, also wait for the rollout's end.
        """
        actor, ratio = self._actor, self._ratio
        assert actor is not None, "only learn() calls this, while the actor runs"
        self.policy.set_training_mode(False)
        waiting = len(actor.steps)
        num_collected_steps = num_collected_episodes = 0
        rollout_ended = False
        callback.on_rollout_start()
        while num_collected_steps < waiting or not (rollout_ended or ratio.is_owing):
            step = actor.steps.take()
            # Callbacks read SB3's local variables under these names.
            actions, buffer_actions = step.choice.played, step.choice.buffer_actions
            new_obs, rewards, dones, infos = step.played
            self.num_timesteps += env.num_envs
            num_collected_steps += 1
            self._lags.append(actor.weights.newest.number - step.choice.version)
            callback.update_locals(locals())
            try:
                continue_training = callback.on_step()
            finally:  # the env has played the step, even if a callback raises
                replay_buffer.add(*step.transition)
                self._last_obs = new_obs
            if not continue_training:
                return RolloutReturn(
                    num_collected_steps * env.num_envs,
                    num_collected_episodes,
                    continue_training=False,
                )
            self._update_info_buffer(infos, dones)
            self._update_current_progress_remaining(self.num_timesteps, self._total_timesteps)
            self._on_step()
            for _ in np.flatnonzero(dones):
                num_collected_episodes += 1
                self._episode_num += 1
                if log_interval is not None and self._episode_num % log_interval == 0:
                    self.dump_logs()
            if step.rollout_steps:
                rollout_ended = True
                if self.num_timesteps > learning_starts:
                    ratio.owe(step.rollout_steps)
                if self.num_timesteps >= self._total_timesteps:
                    break
        callback.on_rollout_end()
        return RolloutReturn(
            num_collected_steps * env.num_envs, num_collected_episodes, continue_training=True
        )

    def dump_logs(self) -> None:
        """Log as in SB3. While the actor runs, log the actor's figures as well."""
        if self._actor is not None:
            full_queue_steps = self._actor.steps.full * self.n_envs
            figures = {**self._ratio.figures(), "full_queue_steps": full_queue_steps}
            self._log_acting(self._actor, self._lags, figures)
            self._lags.clear()
        super().dump_logs()

    def _adopt(self, actor: OffPolicyActor) -> None:
        assert self.replay_buffer is not None
        for step in actor.steps.rest():
            self.replay_buffer.add(*step.transition)
        if self._last_obs is not None:
            self._last_original_obs = actor.original_observations
        super()._adopt(actor)

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "_ratio", "_lags"]


class AsyncSAC(AsyncOffPolicy, SAC):
    """SAC for games that do not wait; see `AsyncOffPolicy`."""

    _acting_module = "actor"


class AsyncTD3(AsyncOffPolicy, TD3):
    """TD3 for games that do not wait; see `AsyncOffPolicy`.

    If no `action_noise` is given, TD3 does not explore, as in SB3.
    """

    _acting_module = "actor"


class AsyncDQN(AsyncOffPolicy, DQN):
    """DQN for games that do not wait; see `AsyncOffPolicy`.

    The exploration rate and the updates of the target network follow the steps that the learner has
    taken.
    """

    _acting_module = "q_net"
