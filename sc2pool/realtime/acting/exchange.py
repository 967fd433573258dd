"""The data that an actor's and a learner's thread exchange, beside the steps.

    actor ◄─ WeightVersion ◄─ Weights ◄── learner   the newest policy
    actor ── gap ──► Gaps ──► learner's log         how long each game waited for its action

Rules: published weights are never modified, so the actor never mixes two versions. Every gap is
recorded, including those of dropped steps.
"""

from __future__ import annotations

import copy
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

import torch as th
from stable_baselines3.common.policies import BaseModel

from sc2pool.pool.measures import Durations

_WAKE_UP_S: Final = 1.0
"""The longest single wait: on some systems Ctrl-C does not interrupt a wait without limit."""
_MAX_GAPS: Final = 1 << 16
"""How many of the newest gaps are kept between two log records."""


class Signal:
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


class WeightVersion(NamedTuple):
    """A copy of all parameters and buffers of the acting module after `number` updates."""

    number: int
    state: dict[str, th.Tensor]


COPIED: Final = WeightVersion(0, {})
"""The weights that the actor's module was made with."""


class Weights:
    """The newest version of the policy's weights; written by the learner, read by the actor.

    Args:
        policy: the learner's module.
        copied: the actor's copy of it. If a callback has changed the policy since, the policy's
            weights are published.
    """

    def __init__(self, policy: BaseModel, copied: BaseModel) -> None:
        self.newest = COPIED
        if not _has_equal_state(policy, copied):
            self.publish(policy)

    def publish(self, policy: BaseModel) -> None:
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


def _has_equal_state(one: BaseModel, other: BaseModel) -> bool:
    pairs = zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    return all(isinstance(a, th.Tensor) and th.equal(a, b) for a, b in pairs)


def _percentiles(name: str, seconds: Sequence[float]) -> dict[str, float]:
    if not seconds:
        return {}
    took = Durations.of(seconds)
    return {f"{name}_p50": took.p50, f"{name}_p99": took.p99, f"{name}_max": took.max}
