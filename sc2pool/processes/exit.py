"""The end of a child process: a descriptor that becomes readable, and a description in words.

Linux has such a descriptor for every process (a *pidfd*). Elsewhere a thread waits for the child
and then closes its end of a socket pair, which makes the other end readable.

Rule: the descriptor never becomes readable while the child is alive.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from io import FileIO

from sc2pool.platform import LINUX, WINDOWS
from sc2pool.processes.shortage import start_thread


def watch_exit(child: subprocess.Popen[bytes]) -> FileIO | socket.socket:
    """An object with a descriptor that is readable after the child has ended; it closes it too.

    Raises:
        OSError: the system refuses a descriptor or a thread.
    """
    if LINUX:
        return FileIO(os.pidfd_open(child.pid))
    return watch_in_thread(child)


def watch_in_thread(child: subprocess.Popen[bytes]) -> socket.socket:
    """The version of `watch_exit` for every system; its thread ends with the child."""
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
    return mine


def notice_children() -> None:
    """Make the exit status of this process's children available, even if SIGCHLD was ignored.

    A program that ignores SIGCHLD passes that on to the processes that it starts.
    """
    if not WINDOWS:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def notices_children() -> bool:
    """True if this process gets the exit status of its children: it does not ignore SIGCHLD."""
    return WINDOWS or signal.getsignal(signal.SIGCHLD) != signal.SIG_IGN


def describe_exit(code: int) -> str:
    """An exit code in words: `exit code 3`, `signal SIGKILL`."""
    if code >= 0:
        return f"exit code {code}"
    return f"signal {signal_name(-code)}"


def signal_name(number: int) -> str:
    """A signal's name, `SIGKILL`; its number if it has no name, as most real-time signals."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
