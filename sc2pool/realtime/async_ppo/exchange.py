"""The messages between the actor's and the learner's threads.

    actor ── Step ──► RolloutStore ──► learner      observations, actions and rewards
    actor ◄─ WeightVersion ◄─ Weights ◄── learner   the newest policy
    actor ── gap ──► Gaps ──► learner's log         how long each game waited for its action

The life of a rollout:

    add(step) ──► in progress ──► waiting ──► taken by the learner
                                     └─ dropped when the next rollout is complete

The learner takes the waiting rollout. If no rollout waits, it takes the one in progress and
receives its steps as the actor adds them.

Rules: the actor never waits for the learner, unless `game_waits`. Rollouts are dropped as a whole,
and counted. The learner takes the older rollout first, because the newer one stays fresh for
longer. Published weights are never modified, so the actor never mixes two versions. Every gap is
recorded, including those of dropped steps.
"""

from __future__ import annotations

import copy
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import numpy as np
import torch as th
from numpy.typing import NDArray
from stable_baselines3.common.policies import ActorCriticPolicy

from sc2pool.pool.statistics.measures import Durations

_WAKE_UP_S: Final = 1.0
"""The longest single wait: on some systems Ctrl-C does not interrupt a wait without limit."""
_MAX_GAPS: Final = 1 << 16
"""How many of the newest gaps are kept between two log records."""


class ExchangedStep(NamedTuple):
    """One step of all n envs by the actor."""

    version: int
    """The version of the weights that chose the actions."""
    observations: Any
    """The observations for the actions: an array with a first axis of n, or a dict of arrays."""
    episode_starts: NDArray[np.bool_]
    actions: NDArray[Any]
    """The policy's actions."""
    clipped_actions: NDArray[Any]
    """The actions that the envs received."""
    values: th.Tensor
    """float (n, 1), on the CPU."""
    log_probs: th.Tensor
    """float (n,), on the CPU. Those of the behaviour policy."""
    new_observations: Any
    rewards: NDArray[Any]
    dones: NDArray[np.bool_]
    infos: list[dict[str, Any]]


Rollout = list[ExchangedStep]
"""Consecutive steps; the actor appends steps until the rollout is complete."""


class _Signal:
    """Wakes a thread that waits now or later; one thread gives the signal, one waits.

    The signal is a lock that the giver releases. A `threading.Condition` is written in Python: an
    interrupt inside it could leave the other thread blocked for ever.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire(timeout=0)

    def give(self) -> None:
        if self._lock.locked():
            self._lock.release()

    def wait_briefly(self) -> None:
        """Wait for the signal, for at most `_WAKE_UP_S`."""
        self._lock.acquire(timeout=_WAKE_UP_S)


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
        self._added = _Signal()
        self._taken = _Signal()
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


class WeightVersion(NamedTuple):
    """A copy of all parameters and buffers of the policy after `number` updates."""

    number: int
    state: dict[str, th.Tensor]


class Weights:
    """The newest version of the policy's weights; written by the learner, read by the actor."""

    def __init__(self, policy: ActorCriticPolicy) -> None:
        self.newest = WeightVersion(-1, {})
        self.publish(policy)

    def publish(self, policy: ActorCriticPolicy) -> None:
        """Make a copy of this policy's weights the newest version."""
        state = copy.deepcopy(
            {
                # A module's own `get_extra_state` may return anything.
                name: value.detach() if isinstance(value, th.Tensor) else value
                for name, value in policy.state_dict().items()
            }
        )
        if policy.device.type == "cuda":
            # The actor reads the copy in its own CUDA stream, which does not wait for this one.
            th.cuda.current_stream(policy.device).synchronize()
        self.newest = WeightVersion(self.newest.number + 1, state)


class Gaps:
    """The gaps from an observation to its action; written by the actor, read by the learner."""

    def __init__(self) -> None:
        self.updating = False
        """True while the learner updates the policy."""
        self._recorded: deque[tuple[float, bool]] = deque(maxlen=_MAX_GAPS)

    @contextmanager
    def update(self) -> Iterator[None]:
        """Mark the block as an update of the learner."""
        self.updating = True
        try:
            yield
        finally:
            self.updating = False

    def record(self, gap_s: float, during_update: bool) -> None:
        """Record one gap, and whether an update ran at its beginning or end."""
        self._recorded.append((gap_s, during_update))

    def drain(self) -> dict[str, float]:
        """p50, p99 and maximum of the gaps since the last call, in seconds, by log name."""
        recorded = [self._recorded.popleft() for _ in range(len(self._recorded))]
        return {
            **_percentiles("gap_s", [gap_s for gap_s, _ in recorded]),
            **_percentiles("update_gap_s", [gap_s for gap_s, in_update in recorded if in_update]),
        }


def _percentiles(name: str, seconds: Sequence[float]) -> dict[str, float]:
    if not seconds:
        return {}
    took = Durations.of(seconds)
    return {f"{name}_p50": took.p50, f"{name}_p99": took.p99, f"{name}_max": took.max}
