"""The actor: steps all envs of a `VecEnv` with its own copy of the policy, in a thread.

Rules:
- The actor does the same work as SB3's `collect_rollouts` between an observation and its action. It
  runs no callback, does no bootstrapping and does not wait for the learner.
- While the thread runs, no other thread uses the env.
- An error of the env ends the thread, and the learner raises it.
- The thread ends when the learner releases `RolloutStore.learning`, and cleans up by itself. Ctrl-C
  reaches only the main thread, and may interrupt the learner's own clean-up at any line.
- `VecNormalize`'s statistics are constant within a rollout (`frozen`).
"""

from __future__ import annotations

import threading
import time
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.utils import obs_as_tensor
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from sc2pool.realtime.acting.exchange import Gaps, Weights
from sc2pool.realtime.acting.frozen import frozen
from sc2pool.realtime.async_ppo.exchange import ExchangedStep, RolloutStore


class Actor:
    """Steps all envs with the newest weights while `rollouts.learning` is held.

    Args:
        env: the envs, already reset.
        policy: the actor's own copy of the policy. It is put into eval mode.
        weights: holds the newest weights.
        rollouts: receives the steps.
        observations: the envs' newest observations, with a first axis of n.
        episode_starts: bool (n,). True if the observation is the first of an episode.
        noise_period: number of steps after which a policy with gSDE draws new exploration noise.
        normalize: the env's `VecNormalize`, or None. Its statistics change only between rollouts.

    Attributes:
        observations: the envs' newest observations.
        episode_starts: as above, for these observations.
        gaps: the time from each observation to its action.
    """

    def __init__(
        self,
        env: VecEnv,
        policy: ActorCriticPolicy,
        weights: Weights,
        rollouts: RolloutStore,
        *,
        observations: Any,
        episode_starts: NDArray[np.bool_],
        noise_period: int,
        normalize: VecNormalize | None,
    ) -> None:
        policy.set_training_mode(False)
        self.observations = _copied(observations)
        self.episode_starts = episode_starts
        self.weights = weights
        self.rollouts = rollouts
        self.gaps = Gaps()
        self._env = env
        self._policy = policy
        self._load_newest_weights()
        self._noise_period = noise_period
        self._normalize = normalize
        self._n_steps = 0
        self._observed_at_s: float | None = None
        self._update_ran = False
        self._thread = threading.Thread(target=self._run, name="sc2pool-actor", daemon=True)

    def start(self) -> None:
        """Start the thread; call this while `rollouts.learning` is held."""
        self._thread.start()

    def finish(self) -> None:
        """Wait until the thread has ended; `rollouts.learning` must have been released."""
        self.rollouts.wake_actor()
        with suppress(RuntimeError):  # an interrupt came before the thread started
            self._thread.join()

    def _run(self) -> None:
        try:
            with frozen(self._normalize) as commit, _own_stream(self._policy.device):
                while self.rollouts.learning.locked():
                    if self.rollouts.add(self._step()):
                        commit()
        except BaseException as error:
            self.rollouts.fail(error)

    def _step(self) -> ExchangedStep:
        if self.weights.newest is not self._loaded:
            self._load_newest_weights()
        policy, version = self._policy, self._loaded.number
        if policy.use_sde and self._n_steps % self._noise_period == 0:
            policy.reset_noise(self._env.num_envs)
        with th.no_grad():
            chosen, values, log_probs = policy(obs_as_tensor(self.observations, policy.device))
        actions = chosen.cpu().numpy()
        clipped_actions = self._clipped(actions)
        values, log_probs = values.cpu(), log_probs.cpu()
        self._record_gap()
        new_observations, rewards, dones, infos = self._env.step(clipped_actions)
        self._observed_at_s = time.monotonic()
        self._update_ran = self.gaps.updating
        step = ExchangedStep(
            version=version,
            observations=self.observations,
            episode_starts=self.episode_starts,
            actions=actions,
            clipped_actions=clipped_actions,
            values=values,
            log_probs=log_probs,
            new_observations=_copied(new_observations),
            rewards=rewards,
            dones=dones,
            infos=infos,
        )
        self.observations, self.episode_starts = step.new_observations, dones
        self._n_steps += 1
        return step

    def _load_newest_weights(self) -> None:
        # This reference keeps the version's memory alive during the copy to the device.
        self._loaded = self.weights.newest
        self._policy.load_state_dict(self._loaded.state)
        if self._policy.use_sde:  # the noise depends on the weights
            self._policy.reset_noise(self._env.num_envs)

    def _clipped(self, actions: NDArray[Any]) -> NDArray[Any]:
        """The actions clipped to the bounds of their space, as in SB3's `collect_rollouts`."""
        space = self._policy.action_space
        if not isinstance(space, spaces.Box):
            return actions
        if self._policy.squash_output:
            return self._policy.unscale_action(actions)
        clipped: NDArray[Any] = np.clip(actions, space.low, space.high)
        return clipped

    def _record_gap(self) -> None:
        if self._observed_at_s is not None:
            gap_s = time.monotonic() - self._observed_at_s
            self.gaps.record(gap_s, self._update_ran or self.gaps.updating)


def _own_stream(device: th.device) -> AbstractContextManager[Any]:
    """A CUDA stream for the actor: in the learner's stream, actions would wait for updates."""
    if device.type != "cuda":
        return nullcontext()
    return th.cuda.stream(th.cuda.Stream(device))  # type: ignore[no-untyped-call]


def _copied(observations: Any) -> Any:
    """A copy of a batch of observations, because an env may reuse the memory."""
    if isinstance(observations, dict):
        return {key: np.array(value) for key, value in observations.items()}
    return np.array(observations)
