"""`AsyncPPO`'s actor: it samples actions as SB3's `OnPolicyAlgorithm.collect_rollouts` does.

Bootstrapping at time limits is the learner's work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.utils import obs_as_tensor
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from sc2pool.realtime.acting import Actor, LateActions, Played, Weights
from sc2pool.realtime.async_ppo.exchange import ExchangedStep, RolloutStore


@dataclass(frozen=True)
class PPOChoice:
    """The policy's choice; the fields are those of `ExchangedStep`."""

    version: int
    observations: Any
    actions: NDArray[Any]
    played: NDArray[Any]
    """`clipped_actions`."""
    values: th.Tensor | None
    log_probs: th.Tensor


class PPOActor(Actor[PPOChoice]):
    """Puts steps into rollouts.

    Args:
        env: see `Actor`.
        policy: see `Actor`.
        weights: see `Actor`.
        rollouts: receives the steps.
        observations: see `Actor`.
        episode_starts: bool (n,). True if the observation is the first of an episode.
        noise_period: number of steps after which a policy with gSDE draws new exploration noise.
        normalize: see `Actor`. The statistics change only between rollouts.
        late: see `Actor`.

    Attributes:
        episode_starts: as above, for the newest observations.
        rollouts: as given.
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
        late: LateActions | None,
    ) -> None:
        self.episode_starts = episode_starts
        self.rollouts = rollouts
        self._actor_critic = policy
        self._noise_period = noise_period
        self._n_steps = 0
        self._ended = np.zeros(env.num_envs, bool)
        """True if the env's episode has ended since the policy was given its observation."""
        super().__init__(
            env,
            policy,
            weights,
            rollouts,
            observations=observations,
            normalize=normalize,
            late=late,
        )

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
        observations, values, log_probs = choice.observations, choice.values, choice.log_probs
        if values is None:
            self._ended |= played.dones
        elif self._ended.any():
            # The policy saw these envs' last episodes, so its actions say nothing about the new.
            observations = _where(self._ended, self.observations, observations)
            values, log_probs = None, th.where(th.as_tensor(self._ended), th.inf, log_probs)
            self._ended[:] = False
        step = ExchangedStep(
            version=choice.version,
            observations=observations,
            episode_starts=self.episode_starts,
            actions=choice.actions,
            clipped_actions=choice.played,
            values=values,
            log_probs=log_probs,
            new_observations=played.new_observations,
            rewards=played.rewards,
            dones=played.dones,
            infos=played.infos,
        )
        self.observations, self.episode_starts = played.new_observations, played.dones
        self._n_steps += 1
        return self.rollouts.add(step)

    def _load_newest_weights(self) -> None:
        super()._load_newest_weights()
        if self._actor_critic.use_sde:  # the noise depends on the weights
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
    """Observations of `ours` for the envs in `mask`, and of `others` for the rest."""
    if isinstance(ours, dict):
        return {key: _where(mask, ours[key], others[key]) for key in ours}
    return np.where(mask.reshape(-1, *[1] * (ours.ndim - 1)), ours, others)
