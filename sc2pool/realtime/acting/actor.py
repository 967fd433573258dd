"""The actor: steps all envs of a `VecEnv` with its own copy of the policy, in a thread.

Rules:
- The actor does the same work as SB3's `collect_rollouts` between an observation and its action. It
  runs no callback, and does not wait for the learner, except as its exchange says.
- While the thread runs, no other thread uses the env.
- An error of the env ends the thread, and the learner raises it.
- The thread ends when the learner releases `exchange.learning`, and cleans up by itself. Ctrl-C
  reaches only the main thread, and may interrupt the learner's own clean-up at any line.
- With `LateActions` a second thread chooses, and this one plays late actions in the meantime.
- `VecNormalize`'s statistics change only where `_exchange` returns True (`frozen`).
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from contextlib import nullcontext, suppress
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import torch as th
from numpy.typing import NDArray
from stable_baselines3.common.policies import BaseModel
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from sc2pool.realtime.acting.exchange import COPIED, Gaps, Weights
from sc2pool.realtime.acting.frozen import frozen
from sc2pool.realtime.acting.late import Chooser, LateActions


class Exchange(Protocol):
    """Where an actor puts its steps."""

    learning: threading.Lock
    """The learner holds this lock while the actor acts. Its release ends the actor. No interrupt
    can come between the end of a lock's `with` block and its release."""

    def wake_actor(self) -> None:
        """Wake an actor that waits for the learner, so that it checks `learning` now."""

    def fail(self, error: BaseException) -> None:
        """Note the actor's error, which the learner raises after all earlier steps."""


class Choice(Protocol):
    """The policy's choice for all n envs; an algorithm adds the data for its learner."""

    @property
    def played(self) -> NDArray[Any]:
        """The actions as the envs receive them."""


class Played:
    """The values that `VecEnv.step` returned, copied, because an env may reuse the memory."""

    def __init__(self, new_observations: Any, rewards: Any, dones: Any, infos: Any) -> None:
        self.new_observations = copied_observations(new_observations)
        self.rewards: NDArray[Any] = np.array(rewards)
        self.dones: NDArray[np.bool_] = np.array(dones)
        self.infos: list[dict[str, Any]] = infos


C = TypeVar("C", bound=Choice)


class Actor(ABC, Generic[C]):
    """Steps all envs with the newest weights while `exchange.learning` is held.

    Args:
        env: the envs, already reset.
        policy: the actor's own copy of the module that chooses actions.
        weights: holds the newest weights of that module.
        exchange: receives the steps.
        observations: the envs' newest observations, with a first axis of n.
        normalize: the env's `VecNormalize`, or None.
        late: the actions to play while the policy is late, or None to wait for the policy.

    Attributes:
        observations: the envs' newest observations.
        gaps: the time from each observation to its action.
        late_steps: number of steps with late actions. A step of all envs counts once.
        weights: as given.
    """

    def __init__(
        self,
        env: VecEnv,
        policy: BaseModel,
        weights: Weights,
        exchange: Exchange,
        *,
        observations: Any,
        normalize: VecNormalize | None,
        late: LateActions | None,
    ) -> None:
        policy.set_training_mode(False)
        self.observations = copied_observations(observations)
        self.weights = weights
        self.gaps = Gaps()
        self.late_steps = 0
        self._env = env
        self._policy = policy
        self._exchanged = exchange
        self._normalize = normalize
        self._late = late
        self._chosen: C | None = None
        self._n_late = 0
        self._stream = _own_stream(policy.device)
        self._loaded = COPIED
        self._observed_at_s: float | None = None
        self._update_ran = False
        self._thread = threading.Thread(target=self._run, name="sc2pool-actor", daemon=True)

    def start(self) -> None:
        """Start the thread; call this while `exchange.learning` is held."""
        self._thread.start()

    def finish(self) -> None:
        """Wait until the thread has ended; `exchange.learning` must have been released."""
        self._exchanged.wake_actor()
        with suppress(RuntimeError):  # an interrupt came before the thread started
            self._thread.join()

    @abstractmethod
    def _choose(self, observations: Any) -> C:
        """Choose actions; maybe called in another thread than `_exchange`."""

    @abstractmethod
    def _choose_late(self, chosen: C, played: NDArray[Any]) -> C:
        """A choice of late actions.

        Args:
            chosen: the last choice of the policy.
            played: the late actions, as the envs receive them.
        """

    @abstractmethod
    def _exchange(self, choice: C, played: Played) -> bool:
        """Pass the step to the learner; return True to let `VecNormalize`'s statistics change.

        `self.observations` are still those before the step.
        """

    def _run(self) -> None:
        with nullcontext() if self._late is None else Chooser() as chooser:
            try:
                with frozen(self._normalize) as commit:
                    while self._exchanged.learning.locked():
                        if self._step(chooser):
                            commit()
            except BaseException as error:
                self._exchanged.fail(error)

    def _step(self, chooser: Chooser | None) -> bool:
        choice = self._next_choice(chooser)
        self._record_gap()
        returned = self._env.step(choice.played)
        self._observed_at_s = time.monotonic()
        self._update_ran = self.gaps.updating
        return self._exchange(choice, Played(*returned))

    def _next_choice(self, chooser: Chooser | None) -> C:
        observations = self.observations
        if self._late is None or chooser is None:
            return self._choose_with_newest_weights(observations)
        timeout_s = None if self._chosen is None else self._late.after_s
        choice = chooser.chosen_within(
            timeout_s, lambda: self._choose_with_newest_weights(observations)
        )
        if choice is None:
            assert self._chosen is not None, "the first choice is awaited"
            self._n_late += 1
            self.late_steps += 1
            actions = self._late.actions(self._chosen.played, self._n_late)
            return self._choose_late(self._chosen, actions)
        self._chosen, self._n_late = choice, 0
        return choice

    def _choose_with_newest_weights(self, observations: Any) -> C:
        with nullcontext() if self._stream is None else th.cuda.stream(self._stream):
            if self.weights.newest is not self._loaded:
                self._load_newest_weights()
            return self._choose(observations)

    def _load_newest_weights(self) -> None:
        # This reference keeps the version's memory alive during the copy to the device.
        self._loaded = self.weights.newest
        self._policy.load_state_dict(self._loaded.state)

    def _record_gap(self) -> None:
        if self._observed_at_s is not None:
            gap_s = time.monotonic() - self._observed_at_s
            self.gaps.record(gap_s, self._update_ran or self.gaps.updating)


def _own_stream(device: th.device) -> Any:
    """A CUDA stream for the actor: in the learner's stream, actions would wait for updates."""
    if device.type != "cuda":
        return None
    return th.cuda.Stream(device)  # type: ignore[no-untyped-call]


def copied_observations(observations: Any) -> Any:
    """A copy of a batch of observations, because an env may reuse the memory."""
    if isinstance(observations, dict):
        return {key: np.array(value) for key, value in observations.items()}
    return np.array(observations)
