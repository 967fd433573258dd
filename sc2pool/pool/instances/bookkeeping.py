"""The state of the pool's records: whole, or torn by an interrupt.

An interrupt (Ctrl-C in a notebook) may strike between any two instructions of the trainer's thread.
While the trainer waits, and between its calls, the records are whole, and an interrupt does no
harm. Rule: all changes are made inside a `Bookkeeping` block; an interrupt there leaves the records
torn, and nothing may be done with them then but to begin anew with new instances.
"""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable

from gymnasium.error import AlreadyPendingCallError, NoAsyncCallError
from gymnasium.error import Error as GymnasiumError

from sc2pool.errors import ClosedError, InterruptedCallError, SC2PoolError


class Bookkeeping:
    """A block in which the pool's records change; see the module.

    Attributes:
        bring_up_to_date: called as the outermost block begins: a fast path may have left the
            records behind.
        torn: a block has begun and not come to its end, neither normally nor with an error of ours.
        closed: the pool is closed, and so are the things that its calls work with.
    """

    _OURS = (
        SC2PoolError,
        GymnasiumError,
        AlreadyPendingCallError,
        NoAsyncCallError,
        multiprocessing.TimeoutError,
    )
    """Errors that the pool raises itself while its records are whole."""

    def __init__(self) -> None:
        self.bring_up_to_date: Callable[[], None] = lambda: None
        self.torn = False
        self.closed = False
        self._depth = 0
        self._thread = 0

    def __enter__(self) -> None:
        if not self._depth:
            self.check_whole()
            self._thread = threading.get_ident()
            self.torn = True
            self.bring_up_to_date()
        self.torn = True
        self._depth += 1

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._depth -= 1
        if self._depth:
            return
        if kind is None or issubclass(kind, self._OURS):
            self.torn = False
        elif self.closed and issubclass(kind, Exception):
            raise ClosedError("a signal handler or another thread has closed the pool in this call")

    def check_whole(self) -> None:
        """Raise unless the records are whole.

        Raises:
            InterruptedCallError: they are torn.
        """
        if self.torn:
            raise InterruptedCallError(
                "another thread is in a call of this pool: one thread at a time"
                if self.in_another_thread()
                else "an interrupt has cut an earlier call short, or another thread is in one: "
                "reset all envs first"
            )

    def in_another_thread(self) -> bool:
        """True if a block is being run, and not by the calling thread."""
        return self._depth > 0 and self._thread != threading.get_ident()

    def begin_anew(self) -> None:
        """Everything is as in a new pool."""
        self._depth = 0
        self.torn = False
