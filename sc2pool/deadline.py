"""A deadline is an absolute instant on the monotonic clock.

Each wait makes one `Deadline` at its beginning, and passes this deadline to the functions that it
calls. So a wait that consists of many parts cannot exceed its total limit. The wall clock is never
used, because it may jump.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Final

_LONGEST_S: Final = 1e6
"""A timeout of eleven days or more counts as no limit, because `epoll` refuses several weeks."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """An instant of `time.monotonic()`, or `math.inf` for no limit."""

    instant_s: float

    @classmethod
    def after(cls, timeout_s: float | None) -> Deadline:
        """The deadline after `timeout_s`; `NEVER` if that is None or at least `_LONGEST_S`."""
        if timeout_s is None or timeout_s >= _LONGEST_S:
            return NEVER
        return cls(time.monotonic() + timeout_s)

    def remaining_s(self) -> float:
        """The seconds left, never negative; `math.inf` without a limit."""
        return max(0.0, self.instant_s - time.monotonic())

    def expired(self) -> bool:
        """True if the instant has passed."""
        return time.monotonic() >= self.instant_s


NEVER = Deadline(math.inf)
