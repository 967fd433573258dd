"""How long a game waits for its action: from an observation until the next action is sent.

    actor ── record(gap) ──► gaps ──► learner: drain(), once a rollout

Rules: no gap is left out, those of data that is dropped neither; averages hide what kills, so
percentiles and the maximum are told; gaps that met an update are told apart as well.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

_MOST_KEPT = 1 << 16


class Gaps:
    """Gaps since they were last asked for; written by the actor, read by the learner."""

    def __init__(self) -> None:
        self.updating = False
        """Whether the learner is in the midst of an update."""
        self._kept: deque[tuple[float, bool]] = deque(maxlen=_MOST_KEPT)

    @contextmanager
    def update(self) -> Iterator[None]:
        """In the block the learner updates."""
        self.updating = True
        try:
            yield
        finally:
            self.updating = False

    def record(self, gap_s: float, met_update: bool) -> None:
        """Note one gap, and whether an update went on in it."""
        self._kept.append((gap_s, met_update))

    def drain(self) -> dict[str, float]:
        """Figures of the gaps so far, by the names they are logged under; those are forgotten."""
        drained = [self._kept.popleft() for _ in range(len(self._kept))]
        return {
            **figures("gap_s", [gap_s for gap_s, _ in drained]),
            **figures("update_gap_s", [gap_s for gap_s, met_update in drained if met_update]),
        }


def figures(name: str, seconds: Sequence[float]) -> dict[str, float]:
    """p50, p99 and maximum; none of nothing."""
    if not seconds:
        return {}
    p50, p99, top = np.percentile(seconds, [50, 99, 100]).tolist()
    return {f"{name}_p50": p50, f"{name}_p99": p99, f"{name}_max": top}
