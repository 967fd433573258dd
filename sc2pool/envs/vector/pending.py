"""The pending call of `SC2VectorEnv`, in gymnasium's words.

    check_idle ─► state = WAITING_… ─► receive(state, timeout) ─► DEFAULT
                                       └─ timed out, interrupted: received later, or dropped by
                                          the next call

Where each env's step is, the pool knows; this is gymnasium's state of the whole env. Rules: one
call is pending at a time; a batch that came too late is never taken for the answer to a later call;
errors are `gymnasium.error`'s, and what an env of the user raised is raised as it is.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager

from gymnasium import logger
from gymnasium.error import AlreadyPendingCallError, ClosedEnvironmentError, NoAsyncCallError
from gymnasium.vector.async_vector_env import AsyncState

from sc2pool.errors import ClosedError, SC2PoolError, UserCodeError
from sc2pool.pool.ipc.remote_errors import RemoteTraceback
from sc2pool.pool.pool import Pool
from sc2pool.pool.stepping.batch import Batch


class Pending:
    """The one call that a vector env waits for.

    Args:
        pool: what it is asked of.
        users_errors: whether the envs are the user's, whose errors are raised as they are.

    Attributes:
        state: which call; DEFAULT for none.
        late: its answer was waited for and has not been received: the wait has timed out, or an
            interrupt has ended it.
    """

    def __init__(self, pool: Pool, *, users_errors: bool) -> None:
        self._pool = pool
        self._users_errors = users_errors
        self.state = AsyncState.DEFAULT
        self.late = False

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
            self.late = False
            self.state = AsyncState.DEFAULT
            if self._pool.pending:
                with self.gymnasiums_errors():
                    self._pool.recv()
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

    def receive(self, state: AsyncState, timeout_s: float | None) -> Batch:
        """Wait for all that is pending.

        Raises:
            multiprocessing.TimeoutError: not all was there in time; nothing was received.
            ClosedEnvironmentError, NoAsyncCallError: see `check_waiting`.
        """
        self.check_waiting(state)
        self.late = True
        with self.gymnasiums_errors():
            if timeout_s is not None and not self._pool.wait(timeout_s):
                raise multiprocessing.TimeoutError(
                    f"The call to `{state.value}_wait` has timed out after {timeout_s} second(s)."
                )
            batch = self._pool.recv()
        self.late = False
        self.state = AsyncState.DEFAULT
        return batch

    @contextmanager
    def both_parts(self) -> Iterator[None]:
        """A block that begins a call and waits for it: if it is interrupted, the call is late."""
        try:
            yield
        except AlreadyPendingCallError:
            raise
        except BaseException:
            self.late = self.state is not AsyncState.DEFAULT
            raise

    @contextmanager
    def gymnasiums_errors(self) -> Iterator[None]:
        """Errors of the pool as gymnasium's users know them."""
        try:
            yield
        except ClosedError as error:
            raise ClosedEnvironmentError(str(error)) from error
        except SC2PoolError as error:
            self.state = AsyncState.DEFAULT
            self.late = False
            if not (self._users_errors and isinstance(error, UserCodeError)):
                raise
            for env, raised in self._pool.raised():
                logger.error(f"Received the following error from Worker-{env} - Shutting it down")
                logger.error(raised.evidence.traceback)
            logger.error("Raising the last exception back to the main process.")
            raise of_the_env(error) from RemoteTraceback(str(error))


def of_the_env(error: UserCodeError) -> Exception:
    """The exception of the user's env itself, if it could be pickled."""
    cause = error.__cause__
    if not isinstance(cause, Exception):
        return error
    for note in getattr(error, "__notes__", ()):
        cause.add_note(note)
    return cause
