"""A pool's life: opened, used by the process that made it, and closed or failed for good.

Rules: a runtime is opened in a thread that no interrupt reaches, and its end is arranged with it,
so no game is left whatever comes in between; all is ended once the pool is closed or collected.
"""

from __future__ import annotations

import os
import warnings
import weakref
from collections.abc import Callable
from contextlib import suppress

from sc2pool.errors import ClosedError, ConfigError, ForkedPoolError
from sc2pool.pool.instances.bookkeeping import Bookkeeping
from sc2pool.pool.runtime import Runtime
from sc2pool.processes.uninterrupted import submit, uninterrupted

_REFUSED = "the system refuses what a pool needs: {}"


class Lifetime:
    """The life of one pool; it begins with the process that makes this."""

    _runtime: Runtime
    _records: Bookkeeping

    def __init__(self) -> None:
        self._owner_pid = os.getpid()
        self._end: weakref.finalize[..., object] | None = None

    def open(self, pool: object, make: Callable[[], Runtime]) -> Runtime:
        """Make the pool's runtime, which is ended with the pool.

        Raises:
            ConfigError: the system refuses something that it needs.
        """

        def opening() -> None:
            try:
                self._runtime = make()
            except OSError as error:
                raise ConfigError(_REFUSED.format(error)) from error
            self._records = self._runtime.loop.bookkeeping
            self._end = weakref.finalize(pool, self._runtime.close, ask_first=False)

        try:
            opened = submit(opening)
        except OSError as error:
            raise ConfigError(_REFUSED.format(error)) from error
        opened.result()  # an OSError would be one that a signal handler raises in the wait
        return self._runtime

    @property
    def closed(self) -> bool:
        """True once it is closed."""
        return self._records.closed

    def check_open(self) -> None:
        """Raise unless the pool is this process's, open, and has not failed.

        Raises:
            ForkedPoolError: it belongs to another process.
            ClosedError: it is closed, or has failed.
        """
        if os.getpid() != self._owner_pid:
            raise ForkedPoolError(
                f"this pool belongs to process {self._owner_pid}; process {os.getpid()} was forked "
                "from it and must make a pool of its own"
            )
        if self._records.closed:
            raise ClosedError("the pool is closed")
        failed = self._runtime.loop.supervisor.failed
        if failed:
            raise ClosedError(f"the pool has failed: {failed}")

    def check_closed_meanwhile(self) -> None:
        """Raise `ClosedError` if another thread has closed the pool in a call that has no block."""
        if self.closed:
            self.check_open()

    def check_usable(self) -> None:
        """Raise also if an interrupt has left the pool's records torn.

        Raises:
            InterruptedCallError: it has; see `Bookkeeping`.
        """
        self.check_open()
        if self._records.torn:  # asked here, because this is on the path of each step
            self._records.check_whole()

    def close(self, *, ask_first: bool, grace_s: float | None) -> None:
        """See `Pool.close`."""
        if self._end is not None and not self._end.alive:
            return  # closed; at the interpreter's end not even modules may be left to look further
        if os.getpid() != self._owner_pid:
            warn_of_owner(self._owner_pid)
            return
        with suppress(OSError):  # the system refuses the thread: nothing could be opened
            uninterrupted(lambda: None)  # if an interrupt came while it was opened, that goes on
        if self._end is None:
            return  # nothing could be opened
        if grace_s is None:
            self._runtime.close(ask_first=ask_first)
        else:
            self._runtime.close(ask_first=ask_first and grace_s > 0, grace_s=grace_s)
        self._end.detach()  # not if that was interrupted: it is called again then


def warn_of_owner(pid: int) -> None:
    """Warn the caller of `close` that it is not the process that has to call it."""
    words = f"this pool belongs to process {pid}, which must close it"
    warnings.warn(words, RuntimeWarning, stacklevel=4)
