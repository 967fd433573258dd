"""Late actions: the actions of the game's periods in which the policy is still computing.

    env.step   ──a0──│──a0──│──a1──│──a1──│──a1──│──a2──│      an action in every period
    policy     ─────choose a1─────►  ─────choose a2──────►     in a thread of its own

A step of an env in real time lasts until the period's end, so the period is kept if the next step
begins in time. The actor waits for the policy for `late_after_s`. Then it plays a *late action*
until the policy's action is there: the policy's last action again, a given one, or the result of a
function.

Late steps are stored unchanged, one period each:

- Off-policy algorithms learn from any action. Each transition has the observation at its period's
  beginning, the action that was played, and the reward of that period. The Q-value assumes that
  later actions are chosen without a delay. Late periods must not be folded into the transition of
  the action that was chosen before them. This action has no effect on their rewards, and the next
  observation does not show it, so its Q-value would not depend on it.
- `AsyncPPO` learns the value of late observations, but no probability: the policy has not chosen
  these actions. Their importance weight is 0. The policy's next action keeps the observation that
  the policy saw, which its log-prob is for. Its advantage counts the rewards of the late periods
  after it, so a repeated action gets the credit for all periods in which it was played.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Literal, TypeVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from sc2pool.errors import ConfigError

OnLate = Literal["repeat"] | int | NDArray[Any] | Callable[[NDArray[Any], int], NDArray[Any]]
"""See `ActsWhileLearning`."""
T = TypeVar("T")


class LateActions:
    """The late actions of a training.

    Args:
        after_s: how long the envs may wait for the policy's actions.
        on_late: see `ActsWhileLearning`.
    """

    def __init__(self, after_s: float, on_late: OnLate) -> None:
        self.after_s = after_s
        self._on_late = on_late

    def actions(self, chosen: NDArray[Any], n_late: int) -> NDArray[Any]:
        """The actions for all envs in the late step number `n_late` after the policy's actions.

        Raises:
            ConfigError: the user's function returned another shape than that of `chosen`.
        """
        if isinstance(self._on_late, str):
            return chosen
        if not callable(self._on_late):
            return np.broadcast_to(np.asarray(self._on_late, chosen.dtype), chosen.shape).copy()
        actions = np.asarray(self._on_late(chosen, n_late))
        if actions.shape != chosen.shape:
            raise ConfigError(
                f"on_late must return actions of shape {chosen.shape}, got {actions.shape}"
            )
        return actions


def check_late_actions(
    after_s: float | None, on_late: OnLate, action_space: spaces.Space[Any] | None
) -> None:
    """Raise `ConfigError` if late actions cannot be made from these settings.

    Args:
        after_s: see `ActsWhileLearning`.
        on_late: see `ActsWhileLearning`.
        action_space: the space of one env's actions; None if it is not known yet.
    """
    if after_s is None:
        if not isinstance(on_late, str) or on_late != "repeat":
            raise ConfigError(f"on_late={on_late!r} needs late_after_s, which is None")
        return
    if not (isinstance(after_s, int | float) and 0 < after_s < math.inf):
        raise ConfigError(f"late_after_s is a number of seconds above 0, got {after_s!r}")
    if callable(on_late) or action_space is None:
        return
    if isinstance(on_late, str):
        is_valid = on_late == "repeat"
    else:
        is_valid = action_space.contains(np.asarray(on_late, action_space.dtype))
    if not is_valid:
        raise ConfigError(
            f'on_late is "repeat", an action of {action_space}, or a function; got {on_late!r}'
        )


class Chooser:
    """Makes the policy's choices in a thread of its own; a context manager that ends the thread."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(1, "sc2pool-chooser")
        self._pending: Future[Any] | None = None

    def chosen_within(self, timeout_s: float | None, choose: Callable[[], T]) -> T | None:
        """The result of the pending call of `choose`, or None if it is not there in time.

        If no call is pending, begin one.

        Args:
            timeout_s: None to wait until the result is there.
            choose: called in the other thread.

        Raises:
            Exception: the error of `choose`.
        """
        if self._pending is None:
            self._pending = self._executor.submit(choose)
        pending: Future[T] = self._pending
        wait([pending], timeout_s)
        if not pending.done():
            return None
        self._pending = None
        return pending.result(0)

    def __enter__(self) -> Chooser:
        return self

    def __exit__(self, *error: object) -> None:
        self._executor.shutdown()
