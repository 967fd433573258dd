"""`AsyncPPO`: Stable-Baselines3's PPO, with an actor that plays on while the learner updates.

    actor    observe ─ act ─ observe ─ act ─ observe ─ act ─ observe ─ act ─ …
                 │ rollouts                    ▲ weights
    learner      └─► callbacks ─► update ──────┴─► callbacks ─► update ─► …

The actor is a thread of the process that made the env, for that process alone can step it: its
sockets, its child processes and its locks cannot be driven from another one. So where a single
interpreter is too narrow for both (`actor="process"`), it is the update that moves: a child process
computes it and sends the weights back, and the actor has the interpreter to itself.

Rules: the actor waits for nobody, unless it was said that the game waits too; the learner takes
whole rollouts, in their order, and everything that SB3 does with a step besides taking it
(callbacks, `num_timesteps`, episode statistics) is done in the learner's thread with the steps that
it takes; a step that was dropped is seen by nobody, but counted. However `learn` ends, neither
thread nor process is left.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args

import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.type_aliases import MaybeCallback
from stable_baselines3.common.utils import obs_as_tensor
from stable_baselines3.common.vec_env import VecEnv

from sc2pool.errors import ConfigError
from sc2pool.realtime.acting import Acting, Actor
from sc2pool.realtime.decoupled_ppo import DecoupledPPO
from sc2pool.realtime.frozen_statistics import frozen
from sc2pool.realtime.gaps import Gaps
from sc2pool.realtime.rollouts import RolloutStore
from sc2pool.realtime.update_process import UpdateProcess
from sc2pool.realtime.weights import Weights

ActorKind = Literal["thread", "process"]
SelfAsyncPPO = TypeVar("SelfAsyncPPO", bound="AsyncPPO")


@dataclass(frozen=True)
class Play:
    """What there is only while `learn` runs."""

    weights: Weights
    store: RolloutStore
    gaps: Gaps


class AsyncPPO(DecoupledPPO):
    """PPO for games that do not wait: an actor keeps them fed while the learner updates.

        model = AsyncPPO("MlpPolicy", env, n_steps=64)
        model.learn(100_000)

    It takes any `VecEnv`, and everything else that `stable_baselines3.PPO` takes; `learn`,
    `save`, `load`, callbacks and loggers are PPO's, and a model that PPO has saved can be loaded.

    The data is a little older than the policy that learns from it. The loss corrects for that
    (`sc2pool.realtime.decoupled`); with data of its own age it is PPO's.

    A learner that is slower than the actor leaves data: of the rollouts that are complete, one
    waits, and an older one is dropped, unless `game_waits`. `num_timesteps` counts the steps that
    were learned from, and callbacks see those. A callback must not call the training env, which the
    actor is stepping; `stats()` of a pool may be called at any time. `PauseDuringTraining` makes no
    sense here.

    After each rollout it records:

    - `async/lag_mean`, `async/lag_max`: how many updates older its steps are than the policy
    - `async/dropped_steps`, `async/stale_steps`: of all envs together, since `learn` began: what
      the learner was too slow for, and what was older than `max_lag`
    - `async/gap_s_p50`, `async/gap_s_p99`, `async/gap_s_max`: from an observation to its action,
      of every step since the last record, dropped ones too
    - `async/update_gap_s_p50` and so on: the same, of the steps that met an update

    and after each update `async/weight_mean`, `async/weight_max` (before the cap) and
    `async/weight_capped` (the fraction that met it).

    Args:
        args: as of PPO.
        actor: `"thread"`, or `"process"`, which computes the updates in another process: worth it
            where an update keeps the interpreter busy, at the price of sending rollouts and weights
            (a model that cannot be saved cannot be sent), and of 2 s for the start. The script
            needs no `if __name__ == "__main__"` for it.
        max_lag: how many updates older than the policy a rollout's oldest step may be; older
            rollouts are discarded. One or two are what occurs.
        game_waits: whether the env plays no further while nobody steps it, as StarCraft II does
            unless `realtime=True`. Then the actor waits for a learner that is behind, and nothing
            is dropped.
        weight_cap: the most that a single action's importance weight counts.
        kwargs: as of PPO.

    Raises:
        ConfigError: unknown `actor`, `max_lag` below 0, `weight_cap` below 1.
        LearnerError: from `learn`: the process that computes the updates has ended.
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
            raise ConfigError(f"actor is one of {get_args(ActorKind)}, got {actor!r}")
        if max_lag < 0:
            raise ConfigError(f"max_lag is a number of updates, at least 0, got {max_lag}")
        if not weight_cap >= 1.0:
            raise ConfigError(f"weight_cap is at least 1, which current data has, got {weight_cap}")
        self.actor = actor
        self.max_lag = max_lag
        self.game_waits = game_waits
        self.weight_cap = weight_cap
        self._play: Play | None = None
        super().__init__(*args, **kwargs)

    def learn(  # noqa: PLR0917 - the arguments are SB3's
        self: SelfAsyncPPO,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: int = 1,
        tb_log_name: str = "AsyncPPO",
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> SelfAsyncPPO:
        """As PPO's; the actor plays from the first step to the end of the last update."""
        iteration = 0
        with closing(UpdateProcess(self)) if self.actor == "process" else nullcontext() as updater:
            actors_policy = self._new_policy()  # before the reset: a game would not wait for it
            total_timesteps, callback = self._setup_learn(
                total_timesteps, callback, reset_num_timesteps, tb_log_name, progress_bar
            )
            callback.on_training_start(locals(), globals())
            assert self.env is not None
            with self._playing(self.env, actors_policy) as play:
                while self.num_timesteps < total_timesteps:
                    if not self.collect_rollouts(
                        self.env, callback, self.rollout_buffer, self.n_steps
                    ):
                        break
                    iteration += 1
                    self._update_current_progress_remaining(self.num_timesteps, total_timesteps)
                    if log_interval is not None and iteration % log_interval == 0:
                        self.dump_logs(iteration)
                    with play.gaps.update():
                        if updater is None:
                            self.train()
                        else:
                            updater.update(self)
                    play.weights.publish(self.policy)
            callback.on_training_end()
        return self

    def _new_policy(self) -> ActorCriticPolicy:
        policy = self.policy_class(
            self.observation_space,
            self.action_space,
            self.lr_schedule,
            use_sde=self.use_sde,
            **self.policy_kwargs,
        )
        assert isinstance(policy, ActorCriticPolicy)
        return policy.to(self.device)

    @contextmanager
    def _playing(self, env: VecEnv, policy: ActorCriticPolicy) -> Iterator[Play]:
        """In the block the actor plays; after it, model and env are as PPO leaves them."""
        assert self._last_episode_starts is not None
        store = RolloutStore(self.n_steps, game_waits=self.game_waits)
        play = Play(Weights(self.policy), store, Gaps())
        with frozen(self._vec_normalize_env) as commit:
            acting = Acting(
                env,
                policy,
                play.weights,
                play.gaps,
                observations=self._last_obs,
                episode_starts=self._last_episode_starts,
                sde_sample_freq=self.sde_sample_freq,
                n_steps=self.n_steps,
            )
            actor = Actor(acting, play.store, on_rollout=commit)
            self._play = play
            actor.start()
            try:
                yield play
            finally:
                self._play = None
                actor.stop()
                self._last_obs = acting.observations
                self._last_episode_starts = acting.episode_starts

    def collect_rollouts(
        self,
        env: VecEnv,
        callback: BaseCallback,
        rollout_buffer: RolloutBuffer,
        n_rollout_steps: int,
    ) -> bool:
        """Take a rollout from the actor, and do with it what PPO does; called by `learn`."""
        assert self._play is not None, "only while learn() runs is there an actor"
        store, version = self._play.store, self._play.weights.newest.number
        self.policy.set_training_mode(False)
        rollout_buffer.reset()
        callback.on_rollout_start()
        rollout = store.take(version - self.max_lag)
        versions = []
        for n_steps, step in enumerate(store.follow(rollout)):  # noqa: B007 - callbacks know it
            # Callbacks know PPO's local variables by their names.
            actions, clipped_actions = step.actions, step.clipped_actions
            values, log_probs = step.values, step.log_probs
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
                self._with_value_of_the_rest(rewards, dones, infos),
                step.episode_starts,
                values,
                log_probs,
            )
            versions.append(step.version)
            self._last_obs, self._last_episode_starts = new_obs, dones
        with th.no_grad():
            values = self.policy.predict_values(obs_as_tensor(new_obs, self.device))
        rollout_buffer.compute_returns_and_advantage(last_values=values, dones=dones)
        self._record_play(version - np.array(versions))
        callback.update_locals(locals())
        callback.on_rollout_end()
        return True

    def _with_value_of_the_rest(
        self, rewards: NDArray[Any], dones: NDArray[np.bool_], infos: list[dict[str, Any]]
    ) -> NDArray[Any]:
        """Rewards, with what a time limit has cut off as the value function sees it."""
        rewards = rewards.copy()
        for env in np.flatnonzero(dones):
            info = infos[env]
            last = info.get("terminal_observation")
            if last is not None and info.get("TimeLimit.truncated", False):
                with th.no_grad():
                    value = self.policy.predict_values(self.policy.obs_to_tensor(last)[0])[0]
                rewards[env] += self.gamma * value.item()
        return rewards

    def _record_play(self, lags: NDArray[np.int64]) -> None:
        assert self._play is not None
        store, n = self._play.store, self.n_envs
        figures = {
            "lag_mean": lags.mean(),
            "lag_max": lags.max(),
            "dropped_steps": store.dropped_steps * n,
            "stale_steps": store.stale_steps * n,
            **self._play.gaps.drain(),
        }
        for name, value in figures.items():
            self.logger.record(f"async/{name}", value)

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "_play"]
