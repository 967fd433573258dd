"""The pause gate: pauses and resumes any process tree, for example a game during an update.

    with PauseGate(game.pid) as gate:
        gate.pause()        returns when all processes are verified to be stopped
        …                   the learner updates the policy
        gate.resume()

The gate is for programs that no pool has started. Pause the games of a pool with `env.pause()`.

Rules: pauses are counted, and the last `resume` resumes the tree. Before a pause, receive the
replies to all requests, because a stopped program does not reply. When the program that paused a
tree ends, `guard` kills the tree. Otherwise a stopped process would stay for ever, because it
handles no SIGTERM.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from sc2pool.deadline import Deadline
from sc2pool.errors import ClosedError, PauseError
from sc2pool.processes.guard import Guard
from sc2pool.processes.tree import STOPS_WITHIN_S, ProcessTree, created_at_s


class PauseGate:
    """Pauses the tree of one process; safe to use from several threads.

    Args:
        pid: the pid of the tree's root.

    Raises:
        PauseError: the process does not exist.
    """

    def __init__(self, pid: int) -> None:
        self._tree = ProcessTree(pid)
        created_s = created_at_s(pid)
        if created_s is None:
            raise PauseError(f"process {pid} has ended")
        self._root = (pid, created_s)
        self._pauses = 0
        self._closed = False
        self._lock = threading.Lock()
        self._guard = Guard()

    @property
    def paused(self) -> bool:
        """True while the tree is paused."""
        return self._pauses > 0

    def pause(self) -> None:
        """Pause the tree, or count one more pause if it is paused already.

        Raises:
            PauseError: not all processes could be stopped; all of them are resumed.
            ClosedError: the gate is closed.
        """
        with self._lock:
            if self._closed:
                raise ClosedError("the pause gate is closed")
            if self._pauses == 0:
                # Inform the guard before the stop, because this program may end at any moment.
                self._guard.note(self._root)
                try:
                    self._tree.stop(Deadline.after(STOPS_WITHIN_S))
                except BaseException:
                    self._guard.note(None)
                    raise
            self._pauses += 1

    def resume(self) -> None:
        """Undo one pause; the last one resumes the tree. No effect without a pause."""
        with self._lock:
            if self._pauses == 0:
                return
            self._pauses -= 1
            if self._pauses == 0:
                self._tree.resume()
                self._guard.note(None)

    @contextmanager
    def pausing(self) -> Iterator[None]:
        """Pause the tree in the block."""
        self.pause()
        try:
            yield
        finally:
            self.resume()

    def close(self) -> None:
        """Resume the tree, regardless of the number of pauses; may be called again."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._pauses = 0
            self._tree.resume()
            self._guard.dismiss()

    def __enter__(self) -> PauseGate:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
