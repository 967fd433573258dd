"""One thread of the process that no interrupt reaches: what must not stop half-way is done there.

Python runs signal handlers in the main thread, so Ctrl-C raises KeyboardInterrupt there, between
any two instructions: descriptors just opened would be lost, and a process just started would have
no owner. Work that is done in this thread always comes to its end; an interrupt ends only the wait
for it.

All children of a pool are started here for a second reason: the parent-death signal of a worker
follows the *thread* that spawned it (prctl(2)). A worker spawned from a short-lived thread would be
killed at the end of that thread, and not at the end of the trainer.

Rules: pieces of work are done one after the other, in the order in which they were asked for, so
what ends a thing may be asked for while the thing is still being made. At the interpreter's end, in
a `__del__` for instance, no thread but the caller's runs any more, so the caller does the work.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from sc2pool.processes.shortage import start_thread

_T = TypeVar("_T")


class _Thread:
    """The thread of one process."""

    def __init__(self) -> None:
        self._work: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = queue.SimpleQueue()
        self._pid = os.getpid()
        self._thread = start_thread(self._run, "sc2pool-uninterrupted")

    @property
    def is_of_this_process(self) -> bool:
        """A forked child has no thread but the one that forked."""
        return self._pid == os.getpid()

    def submit(self, work: Callable[[], _T]) -> Future[_T]:
        result: Future[_T] = Future()
        if threading.current_thread() is self._thread:
            _do(work, result)
        else:
            self._work.put((work, result))
        return result

    def _run(self) -> None:
        while True:
            _do(*self._work.get())


def _do(work: Callable[[], _T], result: Future[_T]) -> None:
    try:
        result.set_result(work())
    except BaseException as error:
        result.set_exception(error)


_thread: _Thread | None = None


def submit(work: Callable[[], _T]) -> Future[_T]:
    """Have `work` done in the thread, without waiting for it; at once if this is the thread.

    Raises:
        OSError: the system refuses the thread.
    """
    if sys.is_finalizing():
        done: Future[_T] = Future()
        _do(work, done)
        return done
    global _thread  # noqa: PLW0603 - one thread per process is the point
    if _thread is None or not _thread.is_of_this_process:
        _thread = _Thread()
    return _thread.submit(work)


def uninterrupted(work: Callable[[], _T]) -> _T:
    """Do `work` in the thread, and return what it returns; an interrupt ends only the wait.

    Raises:
        Exception: what `work` raised.
    """
    return submit(work).result()
