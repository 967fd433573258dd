"""The steps that `AsyncPPO`'s actor passes to its learner, in rollouts.

    add(step) ──► in progress ──► waiting ──► taken by the learner
                                     └─ dropped when the next rollout is complete

The learner takes the waiting rollout. If no rollout waits, it takes the one in progress and
receives its steps as the actor adds them.

Rules: the actor never waits for the learner, unless `game_waits`. Rollouts are dropped as a whole,
and counted. The learner takes the older rollout first, because the newer one stays fresh for
longer.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch as th
from numpy.typing import NDArray

from sc2pool.realtime.acting import Signal


class ExchangedStep(NamedTuple):
    """One step of all n envs by the actor."""

    version: int
    """The version of the weights that chose the actions."""
    observations: Any
    """The observations for the actions: an array with a first axis of n, or a dict of arrays. Those
    of a policy that was late are older than the step."""
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
            error = self._error  # read first: it is set after the last step was added
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
                        self._in_progress = []  # later steps may be fresh enough
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
