"""A live game's process, seen from outside: whether it has ended, how, and for how long it ran.

`RunningClock` counts the time for which a process was not stopped. A pool that pauses an env stops
the processes below the env's worker, and a `PauseGate` stops the game's tree. In both cases the
system reports the game's process as stopped, so the clock needs no message about pauses. No system
counts the time of a stop. So a thread looks at the state many times per decision period. The clock
is wrong by at most one such interval at the beginning and at the end of a pause.

Rule: the exit code is only read, not collected, so the `Popen` of the game's owner still gets it.
"""

from __future__ import annotations

import os
import threading
import time
from typing import Final

import psutil

from sc2pool.errors import FaultKind, GameFault
from sc2pool.platform import WINDOWS
from sc2pool.processes.spawn import describe_exit, start_thread
from sc2pool.processes.tree import UNREADABLE, created_at_s, is_alive

_STOPPED: Final = frozenset({psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP})
_REST: Final = 20
"""The thread rests this many times as long as a look takes, because Windows takes milliseconds."""
_ENDS_WITHIN_S: Final = 5.0


class GameProcess:
    """The process of a game, which this program need not have started.

    Args:
        pid: the pid of the process.

    Raises:
        GameFault: the process does not exist.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        created_s = created_at_s(pid)
        try:
            self._process = psutil.Process(pid)
        except (psutil.NoSuchProcess, ValueError, TypeError):
            created_s = None
        if created_s is None:
            raise GameFault(FaultKind.GAME_EXITED, f"the game is gone: there is no process {pid!r}")
        self._created_s = created_s

    def end(self) -> str | None:
        """How the process has ended, for example `exit code 3`; None if it has not ended."""
        if not WINDOWS and hasattr(os, "waitid"):  # macOS has it since Python 3.13
            try:
                ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:  # not a child of this process, or collected already
                pass
            else:
                if ended is None:
                    return None
                killed = ended.si_code in (os.CLD_KILLED, os.CLD_DUMPED)
                return describe_exit(-ended.si_status if killed else ended.si_status)
        if is_alive(self.pid, self._created_s):
            return None
        code = None
        if WINDOWS:
            try:
                code = self._process.wait(0)
            except (psutil.Error, OSError):
                code = None
        return "exit code unknown" if code is None else describe_exit(code)

    def is_stopped(self) -> bool:
        """True if the process is suspended; False if it has ended."""
        try:
            return self._process.status() in _STOPPED
        except UNREADABLE:
            return False


class RunningClock:
    """A clock that stands still while a process is stopped.

    Args:
        process: the process.
        interval_s: time between two looks at the process, which is the clock's accuracy. On Windows
            a look takes long, so the time between two looks may be longer.

    Attributes:
        stopped_s: seconds for which the process was stopped, at the last look.
    """

    def __init__(self, process: GameProcess, interval_s: float) -> None:
        self._process = process
        self._interval_s = self._rest_s = interval_s
        self._lock = threading.Lock()
        self.stopped_s = self._shown_s = 0.0
        self._is_stopped = process.is_stopped()
        self._looked_s = time.monotonic()
        self._closing = threading.Event()
        self._thread = start_thread(self._run, f"sc2pool-running-{process.pid}")

    def now_s(self) -> float:
        """Seconds of `time.monotonic()`, without the time for which the process was stopped."""
        with self._lock:
            if time.monotonic() - self._looked_s >= self._rest_s:  # the thread is late
                self._look()
            since_s = 0.0 if self._is_stopped else time.monotonic() - self._looked_s
            # A look may find that the process was stopped some time ago.
            self._shown_s = max(self._shown_s, self._looked_s - self.stopped_s + since_s)
            return self._shown_s

    def look(self) -> None:
        """Look at the process now, for an exact `stopped_s`."""
        with self._lock:
            self._look()

    def _look(self) -> None:
        before_s, was_stopped = self._looked_s, self._is_stopped
        self._is_stopped = self._process.is_stopped()
        self._looked_s = time.monotonic()
        # If the state has changed between two looks, count half of the time between them.
        share = (was_stopped + self._is_stopped) / 2
        self.stopped_s += share * (self._looked_s - before_s)

    def _run(self) -> None:
        while not self._closing.wait(self._rest_s) and self._process.end() is None:
            began_s = time.monotonic()
            self.look()
            self._rest_s = max(self._interval_s, _REST * (time.monotonic() - began_s))

    def close(self) -> None:
        """End the thread; may be called again. Without it, the thread ends with the process."""
        self._closing.set()
        self._thread.join(_ENDS_WITHIN_S)
