"""The actor: a copy of the policy that keeps all envs of a `VecEnv` fed.

    Acting    one step of all envs with the newest weights
    Actor     a thread that does nothing else, until it is stopped

Rules: what SB3's `collect_rollouts` does between an observation and its action is done here, and
nothing else: no callback, no bootstrapping, no waiting for the learner. All of the env is this
thread's while it runs. What the env raises ends the thread and is raised by the learner.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.utils import obs_as_tensor
from stable_baselines3.common.vec_env import VecEnv

from sc2pool.realtime.gaps import Gaps
from sc2pool.realtime.rollouts import RolloutStore, Step
from sc2pool.realtime.weights import Weights


class Acting:
    """Steps all envs with a policy of its own.

    Args:
        env: what is stepped.
        policy: a copy that nobody else uses; put into eval mode.
        weights: where newer weights are found.
        gaps: where the time from an observation to its action is noted.
        observations: the envs' newest, with a first axis of n.
        episode_starts: bool (n,), whether those are the first of an episode.
        sde_sample_freq: after how many steps to draw new exploration noise, of a policy that has
            gSDE; -1 for once a rollout.
        n_steps: length of a rollout.
    """

    def __init__(
        self,
        env: VecEnv,
        policy: ActorCriticPolicy,
        weights: Weights,
        gaps: Gaps,
        *,
        observations: Any,
        episode_starts: NDArray[np.bool_],
        sde_sample_freq: int,
        n_steps: int,
    ) -> None:
        policy.set_training_mode(False)
        self.device = policy.device
        self.observations = copied(observations)
        self.episode_starts = episode_starts
        self._env = env
        self._policy = policy
        self._weights = weights
        self._loaded = weights.newest  # held: its copy to the device may still be under way
        self._load()
        self._gaps = gaps
        self._noise_every = sde_sample_freq if sde_sample_freq > 0 else n_steps
        self._taken = 0
        self._observed_at_s: float | None = None
        self._update_met = False

    def step(self) -> Step:
        """Take one step of all envs."""
        if self._weights.newest is not self._loaded:
            self._load()
        policy, version = self._policy, self._loaded.number
        if policy.use_sde and self._taken % self._noise_every == 0:
            policy.reset_noise(self._env.num_envs)
        with th.no_grad():
            tensor = obs_as_tensor(self.observations, policy.device)
            chosen, values, log_probs = policy(tensor)
        actions = chosen.cpu().numpy()
        clipped = self._for_env(actions)
        values, log_probs = values.cpu(), log_probs.cpu()
        self._note_gap()
        new_observations, rewards, dones, infos = self._env.step(clipped)
        self._observed_at_s = time.monotonic()
        self._update_met = self._gaps.updating
        step = Step(
            version,
            self.observations,
            self.episode_starts,
            actions,
            clipped,
            values,
            log_probs,
            copied(new_observations),
            rewards,
            dones,
            infos,
        )
        self.observations, self.episode_starts = step.new_observations, dones
        self._taken += 1
        return step

    def _load(self) -> None:
        self._loaded = self._weights.newest
        self._policy.load_state_dict(self._loaded.state)
        if self._policy.use_sde:  # the noise is of the weights before
            self._policy.reset_noise(self._env.num_envs)

    def _for_env(self, actions: NDArray[Any]) -> NDArray[Any]:
        """Within the space's bounds, as SB3 brings them there."""
        space = self._policy.action_space
        if not isinstance(space, spaces.Box):
            return actions
        if self._policy.squash_output:
            actions = self._policy.unscale_action(actions)
        else:
            actions = np.clip(actions, space.low, space.high)
        return actions

    def _note_gap(self) -> None:
        if self._observed_at_s is not None:
            met_update = self._update_met or self._gaps.updating
            self._gaps.record(time.monotonic() - self._observed_at_s, met_update)


class Actor:
    """A thread that acts until it is stopped.

    Args:
        acting: what is done in it.
        store: where its steps go.
        on_rollout: called in the thread after each complete rollout.
    """

    def __init__(self, acting: Acting, store: RolloutStore, on_rollout: Callable[[], None]) -> None:
        self._acting = acting
        self._store = store
        self._on_rollout = on_rollout
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="sc2pool-actor", daemon=True)

    def start(self) -> None:
        """Begin to act."""
        self._thread.start()

    def stop(self) -> None:
        """Let it finish the step it is in; may be called again."""
        self._stopping = True
        self._store.stop_waiting()
        self._thread.join()

    def _run(self) -> None:
        try:
            with own_stream(self._acting.device):
                while not self._stopping:
                    if self._store.add(self._acting.step()):
                        self._on_rollout()
        except BaseException as error:
            self._store.fail(error)


def own_stream(device: th.device) -> AbstractContextManager[Any]:
    """In one stream with the learner's work an action would wait for all of it."""
    if device.type != "cuda":
        return nullcontext()
    return th.cuda.stream(th.cuda.Stream(device))  # type: ignore[no-untyped-call]


def copied(observations: Any) -> Any:
    """A copy of a batch of observations: an env may write the next one into the same memory."""
    if isinstance(observations, dict):
        return {key: np.array(value) for key, value in observations.items()}
    return np.array(observations)
