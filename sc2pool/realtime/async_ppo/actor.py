"""`AsyncPPO`'s actor, and the rollouts in which it passes its steps to the learner.

    add(step) ──► in progress ──► waiting ──► taken by the learner
                                     └─ dropped when the next rollout is complete

The learner takes the waiting rollout. If no rollout waits, it takes the one in progress and
receives its steps as the actor adds them.

Rules of the rollouts: the actor never waits for the learner, unless `game_waits`. Rollouts are
dropped as a whole, and counted. The learner takes the older rollout first, because the newer one
stays fresh for longer.

The actor samples actions as SB3's `OnPolicyAlgorithm.collect_rollouts` does. Bootstrapping at time
limits is the learner's work.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.utils import obs_as_tensor
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from sc2pool.realtime.acting import Actor, LateActions, Played, Signal, Weights


class ExchangedStep(NamedTuple):
    """One step of all n envs by the actor."""

    version: int
    """The version of the weights that chose the actions."""
    observations: Any
    """The observations for the actions: an array with a first axis of n, or a dict of arrays. If
    the policy was late, they are older than the step."""
    episode_starts: NDArray[np.bool_]
    actions: NDArray[Any]
    """The policy's actions."""
    clipped_actions: NDArray[Any]
    """The actions that the envs received."""
    values: th.Tensor | None
    """float (n, 1), on the CPU. None if the policy was late, so that the learner computes them."""
    log_probs: th.Tensor
    """float (n,), on the CPU. Those of the behaviour policy; infinity for actions that it has not
    chosen."""
    new_observations: Any
    rewards: NDArray[Any]
    dones: NDArray[np.bool_]
    infos: list[dict[str, Any]]


Rollout = list[ExchangedStep]
"""Consecutive steps; the actor appends steps until the rollout is complete."""


class RolloutStore:
    """Holds one rollout in progress, and at most one complete rollout that waits.

    Args:
        n_steps: number of steps in a complete rollout.
        game_waits: True if the actor waits after a rollout until the learner has taken it.

    Attributes:
        learning: a lock that the learner holds while the actor acts. Its release ends the actor. No
            interrupt can come between the end of a lock's `with` block and its release.
        dropped_steps: steps dropped because the learner was too slow. A step of all envs counts
            once.
        stale_steps: steps discarded because they were too old when the learner took them.
    """

    def __init__(self, n_steps: int, *, game_waits: bool = False) -> None:
        self.learning = threading.Lock()
        self.dropped_steps = 0
        self.stale_steps = 0
        self._n_steps = n_steps
        self._game_waits = game_waits
        self._lock = threading.Lock()
        self._added = Signal()
        self._taken = Signal()
        self._in_progress: Rollout = []
        self._waiting: Rollout | None = None
        self._followed: Rollout | None = None
        """The rollout that the learner took while it was in progress."""
        self._error: BaseException | None = None

    def add(self, step: ExchangedStep) -> bool:
        """Append a step to the rollout in progress; called by the actor.

        Returns:
            True if the rollout is complete now.
        """
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

    def wake_actor(self) -> None:
        """Wake an actor that waits for the learner, so that it checks `learning` now."""
        self._taken.give()

    def fail(self, error: BaseException) -> None:
        """Note the actor's error, which the learner raises after all earlier steps."""
        self._error = error
        self._added.give()

    def take(self, oldest_version: int) -> Rollout:
        """Wait for the next rollout with at least one step; called by the learner.

        Args:
            oldest_version: rollouts that begin with older weights are discarded.

        Raises:
            BaseException: the error given to `fail`, once all earlier rollouts were taken.
        """
        while True:
            error = self._error  # read first, because it is set after the last step was added
            with self._lock:
                waiting, self._waiting = self._waiting, None
                rollout = self._in_progress if waiting is None else waiting
                is_fresh = bool(rollout) and rollout[0].version >= oldest_version
                if not is_fresh:
                    self.stale_steps += len(rollout)
                if rollout is self._in_progress:
                    if is_fresh:
                        self._followed = rollout
                    else:
                        self._in_progress = []  # the steps that follow may be new enough
            self._taken.give()
            if is_fresh:
                return rollout
            if not rollout:
                self._wait(error)

    def follow(self, rollout: Rollout) -> Iterator[ExchangedStep]:
        """Yield the steps of a rollout from `take`, each as soon as the actor has added it.

        Raises:
            BaseException: the error given to `fail`, in place of the first missing step.
        """
        for index in range(self._n_steps):
            error = self._error
            while len(rollout) <= index:
                self._wait(error)
                error = self._error
            yield rollout[index]

    def _wait(self, error: BaseException | None) -> None:
        if error is not None:
            raise error
        self._added.wait_briefly()


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
