"""Rollouts on their way from the actor to the learner.

    actor ── add(step) ──► the rollout in progress ──► waiting ──► taken by the learner
                                                          │
                                                          └─ dropped when the next one is complete

The learner takes the rollout that waits; where none does, it takes the one in progress and is
given its steps as they come. Rules: the actor never waits, not even for a learner that has stopped
to take anything, unless it was said that the game waits too; what is dropped or too old is dropped
as a whole rollout, and counted; the older rollout goes first, because the newer is nearer to what
the learner has now.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch as th
from numpy.typing import NDArray

_LOOK_AGAIN_S = 1.0
"""Not every system lets Ctrl-C end a wait that has no limit."""


class Step(NamedTuple):
    """One step of all n envs, as the actor took it."""

    version: int
    """Of the weights that chose the actions."""
    observations: Any
    """What they were chosen for: an array with a first axis of n, or a dict of such."""
    episode_starts: NDArray[np.bool_]
    actions: NDArray[Any]
    """As the policy gave them."""
    clipped_actions: NDArray[Any]
    """As the envs were given them."""
    values: th.Tensor
    """float (n, 1), on the CPU."""
    log_probs: th.Tensor
    """float (n,), on the CPU; of the behaviour policy."""
    new_observations: Any
    rewards: NDArray[Any]
    dones: NDArray[np.bool_]
    infos: list[dict[str, Any]]


class Rollout:
    """Consecutive steps; the actor appends, until there are enough."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    @property
    def version(self) -> int:
        """That of its oldest step."""
        return self.steps[0].version


class RolloutStore:
    """Holds one rollout in progress, and at most one that waits.

    Args:
        n_steps: of a complete rollout.
        game_waits: whether the actor is to wait, after a rollout, until the learner has taken it.

    Attributes:
        dropped_steps: steps of rollouts that the learner was too slow for, each of all envs.
        stale_steps: steps of rollouts that were too old when the learner came to take them.
    """

    def __init__(self, n_steps: int, *, game_waits: bool = False) -> None:
        self.dropped_steps = 0
        self.stale_steps = 0
        self._n_steps = n_steps
        self._game_waits = game_waits
        self._changed = threading.Condition()
        self._in_progress = Rollout()
        self._waiting: Rollout | None = None
        self._taken: Rollout | None = None
        self._error: BaseException | None = None

    def add(self, step: Step) -> bool:
        """Append a step to the rollout in progress.

        Returns:
            Whether that has completed it.
        """
        with self._changed:
            rollout = self._in_progress
            rollout.steps.append(step)
            complete = len(rollout.steps) >= self._n_steps
            if complete:
                self._in_progress = Rollout()
                if rollout is self._taken:
                    self._taken = None
                else:
                    if self._waiting is not None:
                        self.dropped_steps += len(self._waiting.steps)
                    self._waiting = rollout
            self._changed.notify_all()
            while self._game_waits and self._waiting is not None:
                self._changed.wait()
            return complete

    def stop_waiting(self) -> None:
        """The actor is wanted back: it waits for nobody any more."""
        with self._changed:
            self._game_waits = False
            self._changed.notify_all()

    def fail(self, error: BaseException) -> None:
        """No step will follow: the learner is to raise this error."""
        with self._changed:
            self._error = error
            self._changed.notify_all()

    def take(self, oldest_version: int) -> Rollout:
        """The next rollout, of which at least one step is there.

        Args:
            oldest_version: what begins with older weights is discarded.

        Raises:
            BaseException: what `fail` was given, once everything before it was taken.
        """
        with self._changed:
            while True:
                if self._waiting is not None:
                    rollout, self._waiting = self._waiting, None
                    self._changed.notify_all()
                else:
                    rollout = self._in_progress
                if not rollout.steps:
                    self._wait()
                elif rollout.version >= oldest_version:
                    if rollout is self._in_progress:
                        self._taken = rollout
                    return rollout
                else:
                    self.stale_steps += len(rollout.steps)
                    if rollout is self._in_progress:  # the rest of it may be young enough
                        self._in_progress = Rollout()

    def follow(self, rollout: Rollout) -> Iterator[Step]:
        """The steps of a rollout that was taken, each as soon as it is there.

        Raises:
            BaseException: what `fail` was given, in place of the step that is missing.
        """
        for index in range(self._n_steps):
            with self._changed:
                while len(rollout.steps) <= index:
                    self._wait()
            yield rollout.steps[index]

    def _wait(self) -> None:
        if self._error is not None:
            raise self._error
        self._changed.wait(_LOOK_AGAIN_S)
