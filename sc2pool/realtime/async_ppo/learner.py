"""The learner: `AsyncPPO`, Stable-Baselines3's PPO with an actor in a thread of its own.

The actor stays in the process that made the env, because no other process can step it: its
sockets, child processes and locks belong here. If one interpreter is too slow for both threads,
`actor="process"` moves the update instead: a child process computes it and sends the weights back.

Rules: the learner takes whole rollouts, in order. All that SB3 does with a step (callbacks,
`num_timesteps`, episode statistics) happens in the learner's thread, for the steps that it learns
from. Dropped steps are only counted. When `learn` ends, for any reason, the thread and the child
process have ended. A second Ctrl-C cuts this wait short: then they take no further step or update,
and the next `learn` waits for the thread's end.
"""

from __future__ import annotations

from contextlib import closing, nullcontext
from typing import Any, Literal, Self, get_args

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
from sc2pool.realtime.acting import ActsWhileLearning, Weights, short_collections
from sc2pool.realtime.async_ppo import decoupled
from sc2pool.realtime.async_ppo.actor import PPOActor, RolloutStore
from sc2pool.realtime.async_ppo.update_process import UpdateProcess, copied

ActorKind = Literal["thread", "process"]


class AsyncPPO(ActsWhileLearning[PPOActor], PPO):
    """PPO for games that do not wait: an actor keeps acting while the learner updates the policy.

        model = AsyncPPO("MlpPolicy", env, n_steps=64)
        model.learn(100_000)

    It takes any `VecEnv` and all arguments of `stable_baselines3.PPO`. `learn`, `save`, `load`,
    callbacks and loggers are PPO's, and it loads models that PPO has saved.

    The data is slightly older than the policy that learns from it. The loss corrects for that
    (`sc2pool.realtime.async_ppo.decoupled`). On data of the current policy the loss is PPO's.

    If the learner is slower than the actor, rollouts are dropped. One complete rollout waits for
    the learner, and the next one replaces it, unless `game_waits`. `num_timesteps` and callbacks
    count the steps that were learned from. A callback must not call the training env, because the
    actor steps it; only `stats()` of a pool is always allowed. `PauseCallback` cannot be used.

    After each rollout it logs:

    - `async/lag_mean`, `async/lag_max`: staleness of the steps, in updates of the policy
    - `async/dropped_steps`: env steps since `learn` began that were dropped because the learner
      was too slow
    - `async/stale_steps`: env steps since `learn` began that were discarded because they were
      older than `max_lag`
    - `async/late_steps`: env steps since `learn` began with late actions, including dropped ones
    - `async/gap_s_p50`, `async/gap_s_p99`, `async/gap_s_max`: seconds from an observation to its
      action, for all steps since the last record, including dropped ones
    - `async/update_gap_s_p50`, …: the same figures for the steps during an update

    After each update it logs `async/weight_mean` and `async/weight_max` (before the cap) of the
    importance weights, and `async/weight_capped`, the fraction above the cap. Late actions have
    weight 0.

    Args:
        args: see PPO.
        actor: `"thread"`, or `"process"`, which computes the updates in a child process. A process
            pays off if an update keeps the interpreter busy. It sends the model's state between
            the processes and takes 2 s to start. The script needs no `if __name__ == "__main__"`
            for it. `train` can read and change any attribute of the model that can be pickled.
            Other changes, in the class, a module or a callback, are lost.
        max_lag: maximum staleness of a rollout's oldest step, in updates. Older rollouts are
            discarded. One or two updates are usual.
        game_waits: True if the env does not advance between two steps, like StarCraft II without
            `realtime=True`. The actor then waits for a slower learner, and nothing is dropped.
        weight_cap: upper bound of an action's importance weight.
        kwargs: `late_after_s` and `on_late`, see `ActsWhileLearning`, and those of PPO.

    Raises:
        ConfigError: unknown `actor`, `max_lag` below 0, `weight_cap` below 1, invalid
            `late_after_s` or `on_late`.
        LearnerError: from `learn`: the process that computes the updates has ended or hangs.
        Exception: from `learn`: the policy cannot be pickled, which the actor's copy needs.
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
        """See PPO; the actor runs from the first step to the end of the last update."""
        self._end_actor()
        iteration = 0
        process = UpdateProcess(self) if self.actor == "process" else None
        lifeline = nullcontext() if process is None else process.lifeline
        # A second Ctrl-C may cut `closing` short. It cannot interrupt the end of the lifeline or of
        # the lock `learning`, because these are not written in Python.
        with nullcontext() if process is None else closing(process), lifeline:
            policy = copied(self.policy)
            self._warm_up(policy)
            total_timesteps, callback = self._setup_learn(
                total_timesteps, callback, reset_num_timesteps, tb_log_name, progress_bar
            )
            callback.on_training_start(locals(), globals())
            assert self.env is not None
            try:
                running = self._new_actor(self.env, policy)
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

    def _new_actor(self, env: VecEnv, policy: ActorCriticPolicy) -> PPOActor:
        assert self._last_episode_starts is not None
        self._actor = PPOActor(
            env,
            policy,
            Weights(self.policy, policy),
            RolloutStore(self.n_steps, game_waits=self.game_waits),
            observations=self._last_obs,
            episode_starts=self._last_episode_starts,
            noise_period=self.sde_sample_freq if self.sde_sample_freq > 0 else self.n_steps,
            normalize=self._vec_normalize_env,
            late=self._late_actions(),
        )
        return self._actor

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
        """Fill the buffer with a rollout of the actor; called by `learn`."""
        actor = self._actor
        assert actor is not None, "only learn() calls this, while the actor runs"
        version = actor.weights.newest.number
        self.policy.set_training_mode(False)
        rollout_buffer.reset()
        callback.on_rollout_start()
        rollout = actor.rollouts.take(version - self.max_lag)
        versions = []
        for n_steps, step in enumerate(actor.rollouts.follow(rollout)):  # noqa: B007 - for callbacks
            # Callbacks read PPO's local variables under these names.
            actions, clipped_actions = step.actions, step.clipped_actions
            values, log_probs = step.values, step.log_probs
            if values is None:
                with th.no_grad():
                    values = self.policy.predict_values(
                        obs_as_tensor(step.observations, self.device)
                    )
            new_obs, rewards, dones, infos = (
                step.new_observations,
                step.rewards,
                step.dones,
                step.infos,
            )
            self.num_timesteps += env.num_envs
            callback.update_locals(locals())
            if not callback.on_step():
                return False
            self._update_info_buffer(infos, dones)
            if isinstance(self.action_space, spaces.Discrete):
                actions = actions.reshape(-1, 1)
            rollout_buffer.add(
                step.observations,
                actions,
                self._bootstrapped(rewards, dones, infos),
                step.episode_starts,
                values,
                log_probs,
            )
            versions.append(step.version)
            self._last_obs, self._last_episode_starts = new_obs, dones
        with th.no_grad():
            values = self.policy.predict_values(obs_as_tensor(new_obs, self.device))
        rollout_buffer.compute_returns_and_advantage(last_values=values, dones=dones)
        self._log_rollout(actor, version - np.array(versions))
        callback.update_locals(locals())
        callback.on_rollout_end()
        return True

    def _bootstrapped(
        self, rewards: NDArray[Any], dones: NDArray[np.bool_], infos: list[dict[str, Any]]
    ) -> NDArray[Any]:
        """The rewards, plus the value of the last state where a time limit ended the episode.

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

    def _log_rollout(self, actor: PPOActor, lags: NDArray[np.int64]) -> None:
        figures = {
            "lag_mean": lags.mean(),
            "lag_max": lags.max(),
            "dropped_steps": actor.rollouts.dropped_steps * self.n_envs,
            "stale_steps": actor.rollouts.stale_steps * self.n_envs,
            "late_steps": actor.late_steps * self.n_envs,
            **actor.gaps.drain(),
        }
        for name, value in figures.items():
            self.logger.record(f"async/{name}", value)

    def train(self) -> None:
        """Update the policy with the rollout buffer: PPO's update, with the decoupled loss."""
        decoupled.update(self, self.weight_cap)
