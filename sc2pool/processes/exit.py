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
from io import FileIO

from sc2pool.platform import LINUX, WINDOWS
from sc2pool.processes.shortage import start_thread


def watch_exit(child: subprocess.Popen[bytes]) -> FileIO | socket.socket:
    """The descriptor that is readable once the child has ended, in an object that closes it.

    Raises:
        OSError: the system refuses a descriptor or a thread.
    """
    if LINUX:
        return FileIO(os.pidfd_open(child.pid))
    return watch_in_thread(child)


def watch_in_thread(child: subprocess.Popen[bytes]) -> socket.socket:
    """As `watch_exit`, on every system; the thread ends with the child."""
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
