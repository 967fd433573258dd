"""`AsyncPPO`: Stable-Baselines3's PPO with an actor in a thread of its own.

The actor passes its steps to the learner in rollouts.

    `add(step)` ──► in progress ──► waiting ──► taken by the learner,
                                     └─ or dropped when the next rollout is complete.

The learner takes the waiting rollout. If no rollout waits, the learner takes the rollout in
progress, and gets each further step as soon as the actor adds it.

The actor never waits for the learner, unless `game_waits` is set. A rollout is dropped as a whole,
and its steps are counted. The learner takes the waiting rollout before the rollout in progress,
because the rollout in progress has newer steps, and so can wait for longer.

The actor samples actions as SB3's `OnPolicyAlgorithm.collect_rollouts` does. The learner does the
bootstrapping at time limits.

The actor stays in the process that made the env. No other process can step the env, because the
env's sockets, child processes and locks belong to this process. If one interpreter is too slow for
actor and learner, `actor="process"` lets a child process compute the updates and return weights.

The learner takes whole rollouts, in order. All that SB3 does with a step (callbacks,
`num_timesteps`, episode statistics) happens in the learner's thread, for the steps that the learner
gets. When `learn` ends, for any reason, it waits for the end of the actor's thread and of the child
process. If a second Ctrl-C ends the wait of `learn`, the thread makes no further step, and the
child process no further update. The next call of `learn` waits for the thread's end.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, Self, get_args

import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3 import PPO
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.type_aliases import MaybeCallback
from stable_baselines3.common.utils import obs_as_tensor
from stable_baselines3.common.vec_env import VecEnv

from sc2pool.errors import ConfigError
from sc2pool.realtime.acting import (
    Actor,
    ActsWhileLearning,
    Exchange,
    Played,
    Weights,
    short_collections,
)
from sc2pool.realtime.async_ppo import decoupled
from sc2pool.realtime.async_ppo.update_process import UpdateProcess, copied


class ExchangedStep(NamedTuple):
    """One step of all n envs by the actor."""

    choice: PPOChoice
    episode_starts: NDArray[np.bool_]
    played: Played


Rollout = list[ExchangedStep]
"""A list of consecutive steps. The actor appends steps until the rollout is complete."""


class RolloutStore(Exchange):
    """Holds the rollout in progress, and at most one complete rollout (`n_steps` steps) that waits.

    If `game_waits`, the actor waits after a rollout until the learner has taken it.
    `dropped_steps` counts the steps that were dropped because the learner was too slow.
    `stale_steps` counts steps that were too old for the learner. A step of all envs counts once.
    """

    def __init__(self, n_steps: int, *, game_waits: bool = False) -> None:
        super().__init__(game_waits=game_waits)
        self.dropped_steps = 0
        self.stale_steps = 0
        self._n_steps = n_steps
        self._lock = threading.Lock()
        self._in_progress: Rollout = []
        self._waiting: Rollout | None = None
        self._followed: Rollout | None = None
        """The rollout in progress, if the learner has already taken it; else None."""

    def add(self, step: ExchangedStep) -> bool:
        """Append a step to the rollout in progress. Return True if the rollout is now complete."""
        with self._lock:
            rollout = self._in_progress
            rollout.append(step)
            complete = len(rollout) >= self._n_steps
            if complete:
                self._in_progress = []
                if rollout is self._followed:
                    self._followed = None
                else:
                    if self._waiting is not None:
                        self.dropped_steps += len(self._waiting)
                    self._waiting = rollout
        self._added.give()
        while self._game_waits and self._waiting is not None and self.learning.locked():
            self._taken.wait_briefly()
        return complete

    def take(self, oldest_version: int) -> Rollout:
        """Wait for the next rollout with at least one step. The learner calls this method.

        Rollouts that begin with older weights than `oldest_version` are discarded. If no rollout is
        left, raises the error that `fail` has received.
        """
        while True:
            error = self._error  # read first, because `fail` sets the error after the last step
            with self._lock:
                waiting, self._waiting = self._waiting, None
                rollout = self._in_progress if waiting is None else waiting
                is_fresh = bool(rollout) and rollout[0].choice.version >= oldest_version
                if not is_fresh:
                    self.stale_steps += len(rollout)
                if rollout is self._in_progress:
                    if is_fresh:
                        self._followed = rollout
                    else:
                        self._in_progress = []  # the actor's next steps may be new enough
            self._taken.give()
            if is_fresh:
                return rollout
            if not rollout:
                self._wait_for_step(error)

    def follow(self, rollout: Rollout) -> Iterator[ExchangedStep]:
        """Yield each step of a rollout from `take` as soon as the actor has added the step.

        If the actor fails, the method yields the last step, and then raises the actor's error.
        """
        for index in range(self._n_steps):
            error = self._error
            while len(rollout) <= index:
                self._wait_for_step(error)
                error = self._error
            yield rollout[index]


@dataclass(frozen=True)
class PPOChoice:
    """The actions that the policy has chosen, and its data about them."""

    version: int
    """The version of the weights that chose the actions."""
    observations: Any
    """The observations for which the policy chose: an array whose first axis is n, or a dict of
    such arrays. If the policy was late, the observations are older than the step."""
    actions: NDArray[Any]
    """The policy's actions."""
    played: NDArray[Any]
    """The clipped actions, which the envs received."""
    values: th.Tensor | None
    """Values, float (n, 1), on the CPU; None if the policy was late, so the learner adds them."""
    log_probs: th.Tensor
    """The behaviour policy's log-probs, float (n,), on the CPU; infinity for an action that the
    policy has not chosen for these observations."""


class PPOActor(Actor[PPOChoice]):
    """An actor that puts its steps into `rollouts`. `Actor` explains the other arguments.

    `episode_starts`, bool (n,), is True if an env's newest observation is an episode's first one.
    `VecNormalize`'s statistics change only between rollouts.
    """

    def __init__(self, model: AsyncPPO, policy: ActorCriticPolicy, rollouts: RolloutStore) -> None:
        super().__init__(model, policy, Weights(model.policy, policy), rollouts)
        assert model._last_episode_starts is not None
        self.episode_starts: NDArray[np.bool_] = model._last_episode_starts
        self.rollouts: RolloutStore = rollouts
        self._actor_critic: ActorCriticPolicy = policy
        # A policy with gSDE draws new exploration noise after every `_noise_period` steps.
        self._noise_period: int = (
            model.sde_sample_freq if model.sde_sample_freq > 0 else model.n_steps
        )
        self._n_steps: int = 0
        self._ended: NDArray[np.bool_] = np.zeros(self._env.num_envs, bool)
        """True for an env whose episode has ended since the policy got the env's observation."""

    def _choose(self, observations: Any) -> PPOChoice:
        policy, version = self._actor_critic, self._loaded.number
        if policy.use_sde and self._n_steps % self._noise_period == 0:
            policy.reset_noise(self._env.num_envs)
        with th.no_grad():
            chosen, values, log_probs = policy(obs_as_tensor(observations, policy.device))
        actions = chosen.cpu().numpy()
        return PPOChoice(
            version, observations, actions, self._clipped(actions), values.cpu(), log_probs.cpu()
        )

    def _choose_late(self, chosen: PPOChoice, played: NDArray[Any]) -> PPOChoice:
        policy, actions = self._actor_critic, played
        if isinstance(policy.action_space, spaces.Box) and policy.squash_output:
            actions = policy.scale_action(played)
        log_probs = th.full_like(chosen.log_probs, th.inf)
        return PPOChoice(chosen.version, self.observations, actions, played, None, log_probs)

    def _exchange(self, choice: PPOChoice, played: Played) -> bool:
        if choice.values is None:
            self._ended |= played.dones
        elif self._ended.any():
            # In these envs the policy chose actions for the previous episode, not for the new one.
            choice = replace(
                choice,
                observations=_where(self._ended, self.observations, choice.observations),
                values=None,
                log_probs=th.where(th.as_tensor(self._ended), th.inf, choice.log_probs),
            )
            self._ended[:] = False
        step = ExchangedStep(choice, self.episode_starts, played)
        self.observations, self.episode_starts = played.new_observations, played.dones
        self._n_steps += 1
        return self.rollouts.add(step)

    def _load_newest_weights(self) -> None:
        super()._load_newest_weights()
        if self._actor_critic.use_sde:  # new weights need new noise
            self._actor_critic.reset_noise(self._env.num_envs)

    def _clipped(self, actions: NDArray[Any]) -> NDArray[Any]:
        """The actions clipped to the bounds of their space, as in SB3's `collect_rollouts`."""
        policy = self._actor_critic
        space = policy.action_space
        if not isinstance(space, spaces.Box):
            return actions
        if policy.squash_output:
            return policy.unscale_action(actions)
        clipped: NDArray[Any] = np.clip(actions, space.low, space.high)
        return clipped


def _where(mask: NDArray[np.bool_], ours: Any, others: Any) -> Any:
    """The observations of `ours` for the envs in `mask`, and of `others` for all other envs."""
    if isinstance(ours, dict):
        return {key: _where(mask, ours[key], others[key]) for key in ours}
    return np.where(mask.reshape(-1, *[1] * (ours.ndim - 1)), ours, others)


ActorKind = Literal["thread", "process"]


class AsyncPPO(ActsWhileLearning[PPOActor], PPO):
    """PPO for games that do not wait: an actor keeps acting while the learner updates the policy.

        model = AsyncPPO("MlpPolicy", env, n_steps=64)
        model.learn(100_000)

    `AsyncPPO` takes any `VecEnv` and all arguments of `stable_baselines3.PPO`. Its `learn`, `save`,
    `load`, callbacks and loggers work as in PPO, and it loads models that PPO has saved.

    The data comes from a slightly older policy than the policy that learns. The loss corrects for
    the policy's age (`sc2pool.realtime.async_ppo.decoupled`). On data of the current policy, the
    loss is equal to PPO's loss.

    If the learner is slower than the actor, rollouts are dropped. One complete rollout waits for
    the learner, and the next rollout replaces it, unless `game_waits`. `num_timesteps` and
    callbacks count the steps that the learner takes. A callback must not call the training env,
    because the actor steps it; only `stats()` of a pool is always allowed. `PauseCallback` cannot
    be used.

    After each rollout the following figures are logged. All counts are 0 when `learn` begins.

    * `async/lag_mean` and `async/lag_max` show the age, in updates, of the policy that acted.
    * `async/dropped_steps`: The number of env steps dropped because the learner was too slow.
    * `async/stale_steps`: The number of env steps that were discarded because of `max_lag`.
    * `async/late_steps`: The number of env steps with late actions, including dropped steps.
    * `async/gap_s_p50`, `async/gap_s_p99` and `async/gap_s_max` are seconds from an observation to
      its action, for all steps since the last record, including dropped steps.
    * The figures `async/update_gap_s_*` are seconds from observation to action during updates.

    After each update three figures of the importance weights are logged. `async/weight_mean` is
    the mean. `async/weight_max` is the maximum before the cap. `async/weight_capped` is the
    fraction of weights above the cap. Late actions have weight 0.

    Args:
        args: The arguments of PPO.
        actor: `"thread"`, or `"process"`, which computes the updates in a child process. A child
            process helps if an update keeps the interpreter busy. A child process takes 2 s to
            start, and each update sends the model's state both ways. The script needs no `__main__`
            guard. In the child process, `train` can read and change any attribute of the model that
            can be pickled. Changes to the class, a module or a callback are lost.
        max_lag: The maximum age of a rollout's oldest step, in updates. Older rollouts are
            discarded. An age of one or two updates is usual.
        game_waits: True if the env does not advance between two steps, like StarCraft II without
            `realtime=True`. The actor then waits for a slower learner, and nothing is dropped.
        weight_cap: The upper bound of an action's importance weight.
        kwargs: The keyword arguments of PPO and of `ActsWhileLearning`.

    Raises:
        ConfigError: `actor` is unknown, `max_lag` is below 0, `weight_cap` is below 1, or the
            value of `late_after_s` or of `on_late` is invalid.
        LearnerError: In `learn`, if the process that computes the updates has ended or hangs.
        Exception: In `learn`, if the policy cannot be pickled, so the actor cannot have a copy.
    """

    def __init__(
        self,
        *args: Any,
        actor: ActorKind = "thread",
        max_lag: int = 2,
        game_waits: bool = False,
        weight_cap: float = 5.0,
        **kwargs: Any,
    ) -> None:
        if actor not in get_args(ActorKind):
            raise ConfigError(f"actor must be one of {get_args(ActorKind)}, got {actor!r}")
        if max_lag < 0:
            raise ConfigError(f"max_lag is a number of updates, at least 0, got {max_lag}")
        if not weight_cap >= 1.0:
            raise ConfigError(
                f"weight_cap must be at least 1, the weight of current data, got {weight_cap}"
            )
        self.actor = actor
        self.max_lag = max_lag
        self.game_waits = game_waits
        self.weight_cap = weight_cap
        super().__init__(*args, **kwargs)

    @short_collections()
    def learn(  # noqa: PLR0917 - the arguments are SB3's
        self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: int = 1,
        tb_log_name: str = "AsyncPPO",
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> Self:
        """Learn as in PPO. The actor runs from the first step to the end of the last update."""
        self._end_actor()
        iteration = 0
        process = UpdateProcess(self) if self.actor == "process" else None
        lifeline = nullcontext() if process is None else process.lifeline
        # A second Ctrl-C may interrupt `closing`, which is Python code.
        # Ctrl-C cannot interrupt releases of `lifeline` or `learning`, which run no Python code.
        with nullcontext() if process is None else closing(process), lifeline:
            policy = copied(self.policy)
            self._warm_up(policy)
            total_timesteps, callback = self._setup_learn(
                total_timesteps, callback, reset_num_timesteps, tb_log_name, progress_bar
            )
            callback.on_training_start(locals(), globals())
            assert self.env is not None
            try:
                store = RolloutStore(self.n_steps, game_waits=self.game_waits)
                self._actor = running = PPOActor(self, policy, store)
                with running.rollouts.learning:
                    running.start()
                    while self.num_timesteps < total_timesteps:
                        if not self.collect_rollouts(
                            self.env, callback, self.rollout_buffer, self.n_steps
                        ):
                            break
                        iteration += 1
                        self._update_current_progress_remaining(self.num_timesteps, total_timesteps)
                        if log_interval is not None and iteration % log_interval == 0:
                            self.dump_logs(iteration)
                        with running.gaps.update():
                            if process is None:
                                self.train()
                            else:
                                process.update(self)
                        running.weights.publish(self.policy)
            finally:
                self._end_actor()
            callback.on_training_end()
        return self

    def _adopt(self, actor: PPOActor) -> None:
        if self._last_obs is not None:
            self._last_episode_starts = actor.episode_starts
        super()._adopt(actor)

    def collect_rollouts(
        self,
        env: VecEnv,
        callback: BaseCallback,
        rollout_buffer: RolloutBuffer,
        n_rollout_steps: int,
    ) -> bool:
        """Fill the buffer with a rollout of the actor. `learn` calls this method."""
        actor = self._actor
        assert actor is not None, "only learn() calls this, while the actor runs"
        version = actor.weights.newest.number
        self.policy.set_training_mode(False)
        rollout_buffer.reset()
        callback.on_rollout_start()
        rollout = actor.rollouts.take(version - self.max_lag)
        lags: list[int] = []
        for n_steps, step in enumerate(actor.rollouts.follow(rollout)):  # noqa: B007 - for callbacks
            # Callbacks read PPO's local variables under these names.
            choice = step.choice
            actions, clipped_actions = choice.actions, choice.played
            values, log_probs = choice.values, choice.log_probs
            if values is None:
                with th.no_grad():
                    values = self.policy.predict_values(
                        obs_as_tensor(choice.observations, self.device)
                    )
            new_obs, rewards, dones, infos = step.played
            self.num_timesteps += env.num_envs
            callback.update_locals(locals())
            if not callback.on_step():
                return False
            self._update_info_buffer(infos, dones)
            if isinstance(self.action_space, spaces.Discrete):
                actions = actions.reshape(-1, 1)
            rollout_buffer.add(
                choice.observations,
                actions,
                self._bootstrapped(rewards, dones, infos),
                step.episode_starts,
                values,
                log_probs,
            )
            lags.append(version - choice.version)
            self._last_obs, self._last_episode_starts = new_obs, dones
        with th.no_grad():
            values = self.policy.predict_values(obs_as_tensor(new_obs, self.device))
        rollout_buffer.compute_returns_and_advantage(last_values=values, dones=dones)
        figures = {
            "dropped_steps": actor.rollouts.dropped_steps * self.n_envs,
            "stale_steps": actor.rollouts.stale_steps * self.n_envs,
        }
        self._log_acting(actor, lags, figures)
        callback.update_locals(locals())
        callback.on_rollout_end()
        return True

    def _bootstrapped(
        self, rewards: NDArray[Any], dones: NDArray[np.bool_], infos: list[dict[str, Any]]
    ) -> NDArray[Any]:
        """The rewards; if a time limit ended an episode, its last state's value is added.

        The value is discounted, as in SB3's `OnPolicyAlgorithm.collect_rollouts`.
        """
        rewards = rewards.copy()
        for env in np.flatnonzero(dones):
            info = infos[env]
            last = info.get("terminal_observation")
            if last is not None and info.get("TimeLimit.truncated", False):
                with th.no_grad():
                    value = self.policy.predict_values(self.policy.obs_to_tensor(last)[0])[0]
                rewards[env] += self.gamma * value.item()
        return rewards

    def train(self) -> None:
        """Update the policy from the rollout buffer, as PPO does, but with the decoupled loss."""
        decoupled.update(self, self.weight_cap)
