"""What gymnasium's vector face has asked of its pool and not yet received.

    begin(state, envs, send) ─► WAITING_… ─► receive(state, timeout) ─► DEFAULT
                                    └─ timed out: still owed; received later, or dropped

Rules: one thing is pending at a time; a batch that came too late is never taken for the answer to
what was asked after it; errors are `gymnasium.error`'s, and what an env of the user raised is
raised as it is.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from gymnasium import logger
from gymnasium.error import AlreadyPendingCallError, ClosedEnvironmentError, NoAsyncCallError
from gymnasium.vector.async_vector_env import AsyncState

from sc2pool.deadline import Deadline
from sc2pool.errors import ClosedError, SC2PoolError, UserCodeError
from sc2pool.pool.batch import Batch
from sc2pool.pool.ipc.remote_errors import RemoteTraceback
from sc2pool.pool.selective import SelectivePool

SendTo = Callable[[list[int]], None]
"""Sends something to these envs."""


class Pending:
    """The one call that a vector env waits for.

    Args:
        pool: what it is asked of.
        users_errors: whether the envs are the user's, whose errors are raised as they are.
        max_concurrency: no more envs than this are sent something before one has answered.

    Attributes:
        state: which call; DEFAULT for none.
        late: it has timed out, and is still owed.
        over: bool (n,): the envs that are over and whose reset has not been received.
    """

    def __init__(
        self, pool: SelectivePool, *, users_errors: bool, max_concurrency: int | None
    ) -> None:
        self._pool = pool
        self._users_errors = users_errors
        self._at_once = max_concurrency or pool.n
        self._held: list[int] = []
        self._send_to: SendTo = pool.send_next
        self.state = AsyncState.DEFAULT
        self.late = False
        self.over = np.zeros(pool.n, np.bool_)

    def check_open(self) -> None:
        """Raise `ClosedEnvironmentError` once the env was closed."""
        if self._pool.closed:
            raise ClosedEnvironmentError(
                "Trying to operate on `SC2VectorEnv`, after a call to `close()`."
            )

    def check_idle(self, name: str) -> None:
        """Raise unless the call `name` may begin now; drop what is late.

        Raises:
            ClosedEnvironmentError: the env is closed.
            AlreadyPendingCallError: another call is pending.
        """
        self.check_open()
        if self.late:
            self.receive(self.state, None)
        if self.state is not AsyncState.DEFAULT:
            raise AlreadyPendingCallError(
                f"Calling `{name}` while waiting for a pending call to `{self.state.value}` to "
                "complete.",
                self.state.value,
            )

    def check_waiting(self, state: AsyncState) -> None:
        """Raise unless this call is pending.

        Raises:
            ClosedEnvironmentError: the env is closed.
            NoAsyncCallError: it was not begun.
        """
        self.check_open()
        if self.state is not state:
            raise NoAsyncCallError(
                f"Calling `{state.value}_wait` without any prior call to `{state.value}_async`.",
                state.value,
            )

    def begin(self, state: AsyncState, envs: Sequence[int], send_to: SendTo) -> None:
        """Send to these envs, at first to no more than may run at one time."""
        with self.gymnasiums_errors():
            send_to(list(envs[: self._at_once]))
        self._send_to, self._held = send_to, list(envs[self._at_once :])
        self.state = state

    def receive(self, state: AsyncState, timeout_s: float | None) -> Batch:
        """Wait for all that is pending.

        Raises:
            multiprocessing.TimeoutError: not all was there in time; nothing was received.
            ClosedEnvironmentError, NoAsyncCallError: see `check_waiting`.
        """
        self.check_waiting(state)
        with self.gymnasiums_errors():
            if not self._all_ready(timeout_s):
                self.late = True
                raise multiprocessing.TimeoutError(
                    f"The call to `{state.value}_wait` has timed out after {timeout_s} second(s)."
                )
            batch = self._pool.recv()
        self.late = False
        self.state = AsyncState.DEFAULT
        over = batch.terminated | batch.truncated
        for row in np.flatnonzero(over):
            over[row] = batch.reset_infos[row] is None
        self.over[batch.envs] = over
        return batch

    def _all_ready(self, timeout_s: float | None) -> bool:
        """Whether all answer in time; those held back get their turns meanwhile."""
        deadline = Deadline.after(timeout_s)
        while self._held:
            if not self._pool.wait_for_one_more(deadline):
                return False
            self._send_to([self._held.pop(0)])
        return timeout_s is None or self._pool.wait(deadline)

    @contextmanager
    def gymnasiums_errors(self) -> Iterator[None]:
        """Errors of the pool as gymnasium's users know them."""
        try:
            yield
        except ClosedError as error:
            raise ClosedEnvironmentError(str(error)) from error
        except SC2PoolError as error:
            self.state = AsyncState.DEFAULT
            if not (self._users_errors and isinstance(error, UserCodeError)):
                raise
            for env, raised in self._pool.raised():
                logger.error(f"Received the following error from Worker-{env} - Shutting it down")
                logger.error(raised.evidence.traceback)
            logger.error("Raising the last exception back to the main process.")
            raise of_the_env(error) from RemoteTraceback(str(error))


def of_the_env(error: UserCodeError) -> Exception:
    """What the user's env raised, itself, where it could travel."""
    cause = error.__cause__
    if not isinstance(cause, Exception):
        return error
    for note in getattr(error, "__notes__", ()):
        cause.add_note(note)
    return cause
