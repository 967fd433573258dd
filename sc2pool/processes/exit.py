"""The end of a child process: a descriptor that becomes readable, and a description in words.

Linux gives such a descriptor for every process (a *pidfd*). Elsewhere a thread waits for the
child and then closes its end of a socket pair, which makes the other end readable.

Rule: the descriptor never becomes readable while the child lives.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from typing import Protocol

from sc2pool.platform import LINUX, WINDOWS
from sc2pool.processes.shortage import start_thread


class ExitWatch(Protocol):
    """Has a descriptor that is readable once the child has ended."""

    def fileno(self) -> int:
        """The descriptor; it belongs to the watch."""
        ...

    def duplicate(self) -> ExitWatch:
        """Another watch of the same child: an event loop takes one reader for a descriptor.

        Raises:
            OSError: the system refuses a descriptor.
        """
        ...

    def close(self) -> None:
        """Closes the descriptor; may be called again."""
        ...


if LINUX:

    class PidfdWatch:
        """The kernel's own notice of a process's end."""

        def __init__(self, fd: int) -> None:
            self._fd = fd

        @classmethod
        def of(cls, child: subprocess.Popen[bytes]) -> PidfdWatch:
            return cls(os.pidfd_open(child.pid))

        def fileno(self) -> int:
            """The pidfd."""
            return self._fd

        def duplicate(self) -> PidfdWatch:
            """As `ExitWatch.duplicate`."""
            return PidfdWatch(os.dup(self._fd))

        def close(self) -> None:
            """Closes the pidfd."""
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1


class ThreadWatch:
    """A thread that waits for the child; works on every system."""

    def __init__(self, mine: socket.socket) -> None:
        self._mine = mine

    @classmethod
    def of(cls, child: subprocess.Popen[bytes]) -> ThreadWatch:
        mine, theirs = socket.socketpair()

        def wait() -> None:
            child.wait()
            theirs.close()

        try:
            start_thread(wait, f"exit of {child.pid}")
        except OSError:
            theirs.close()
            mine.close()
            raise
        return cls(mine)

    def fileno(self) -> int:
        """The reading end of the pair."""
        return self._mine.fileno()

    def duplicate(self) -> ThreadWatch:
        """As `ExitWatch.duplicate`."""
        return ThreadWatch(self._mine.dup())

    def close(self) -> None:
        """Closes the reading end; the thread ends with the child."""
        self._mine.close()


def watch_exit(child: subprocess.Popen[bytes]) -> ExitWatch:
    """The best watch this system has."""
    if LINUX:
        return PidfdWatch.of(child)
    return ThreadWatch.of(child)


def notice_children() -> None:
    """Learn how this process's children end, also if its parent does not care for its own.

    A program that ignores SIGCHLD hands that down to those that it starts.
    """
    if not WINDOWS:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def notices_children() -> bool:
    """True if this process learns how its children end: it does not ignore SIGCHLD."""
    return WINDOWS or signal.getsignal(signal.SIGCHLD) != signal.SIG_IGN


def describe_exit(code: int) -> str:
    """An exit code in words: `exit code 3`, `signal SIGKILL`."""
    if code >= 0:
        return f"exit code {code}"
    return f"signal {signal_name(-code)}"


def signal_name(number: int) -> str:
    """`SIGKILL`; the number of a signal without a name, as most real-time signals are."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
