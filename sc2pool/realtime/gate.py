"""The pause gate: stops any process tree while nobody acts on it, and lets it go on.

    with PauseGate(game.pid) as gate:
        gate.pause()        stopped, proven, before it returns
        …                   the learner learns
        gate.resume()

The pool's own games need none: `pause` of the envs does the same from their workers. This is for a
program that was started in some other way. Rules: pauses are counted, and the tree goes on with
the last `resume`; whoever pauses has no request in flight, for a stopped program answers none; a
paused tree ends with the program that paused it, however that ends, because a stopped process
would stay for ever, and hears no SIGTERM: `guard` sees to it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType

from sc2pool.deadline import Deadline
from sc2pool.errors import ClosedError, PauseError
from sc2pool.processes.orphans import created_at_s
from sc2pool.processes.suspend import STOPS_WITHIN_S, ProcessTree


class PauseGate:
    """Pauses the tree of one process; may be used from several threads.

    Args:
        pid: the root of the tree.

    Raises:
        PauseError: there is no such process.
    """

    def __init__(self, pid: int) -> None:
        self._tree = ProcessTree(pid)
        created_s = created_at_s(pid)
        if created_s is None:
            raise PauseError(f"process {pid} has ended")
        self._root = [pid, created_s]
        self._pauses = 0
        self._closed = False
        self._lock = threading.Lock()
        self._guard = subprocess.Popen(
            [sys.executable, "-m", "sc2pool.realtime.guard"],
            stdin=subprocess.PIPE,
            start_new_session=True,  # what ends this program's group must not end the guard
        )

    @property
    def paused(self) -> bool:
        """Whether the tree is stopped."""
        return self._pauses > 0

    def pause(self) -> None:
        """Stop the tree; one that is stopped already stays so.

        Raises:
            PauseError: not all of it could be stopped; it goes on.
            ClosedError: the gate is closed.
        """
        with self._lock:
            if self._closed:
                raise ClosedError("the pause gate is closed")
            if self._pauses == 0:
                self._tell_guard(self._root)  # first: this program may end at any moment
                try:
                    self._tree.stop(Deadline.after(STOPS_WITHIN_S))
                except BaseException:
                    self._tell_guard(None)
                    raise
            self._pauses += 1

    def resume(self) -> None:
        """Let the tree go on, once it was called as often as `pause`; else without effect."""
        with self._lock:
            self._pauses = max(0, self._pauses - 1)
            if self._pauses == 0:
                self._let_go()

    @contextmanager
    def pausing(self) -> Iterator[None]:
        """In the block the tree is stopped."""
        self.pause()
        try:
            yield
        finally:
            self.resume()

    def close(self) -> None:
        """Let the tree go on, whoever has paused it; may be called again."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._pauses = 0
            self._let_go()
            assert self._guard.stdin is not None
            self._guard.stdin.close()
            self._guard.wait()

    def _let_go(self) -> None:
        self._tree.resume()
        self._tell_guard(None)

    def _tell_guard(self, held: list[float] | None) -> None:
        assert self._guard.stdin is not None
        with suppress(BrokenPipeError):  # someone has ended it: then the gate is without
            self._guard.stdin.write(json.dumps(held).encode() + b"\n")
            self._guard.stdin.flush()

    def __enter__(self) -> PauseGate:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
