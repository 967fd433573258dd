"""A thread that no interrupt reaches, for work that must not stop half-way.

Python runs signal handlers in the main thread. So Ctrl-C raises KeyboardInterrupt there, between
any two instructions: new descriptors would be lost, and a new process would have no owner. Work in
this thread always completes, and an interrupt ends only the wait for it.

All children of a pool are started here for a second reason. The parent-death signal of a worker
follows the *thread* that spawned it (prctl(2)). A worker spawned from a short-lived thread would be
killed at the end of that thread, not at the end of the trainer.

Rules: pieces of work are done one after the other, in the order of their submission. So the end of
a resource may be submitted while the resource is still being made. While the interpreter exits (in
a `__del__`, for instance), only the caller's thread runs, so the caller does the work.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from sc2pool.processes.spawn import start_thread

_T = TypeVar("_T")


class _Thread:
    """The uninterrupted thread of one process."""

    def __init__(self) -> None:
        self._work: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = queue.SimpleQueue()
        self._pid = os.getpid()
        self._thread = start_thread(self._run, "sc2pool-uninterrupted")

    @property
    def is_of_this_process(self) -> bool:
        """False in a forked child, which has only the thread that forked."""
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
    """Do `work` in the thread, without waiting; in the thread itself, do it immediately.

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
    """Do `work` in the thread and return its result; an interrupt ends only the wait.

    Raises:
        Exception: the error of `work`.
    """
    return submit(work).result()
