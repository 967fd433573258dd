"""Children that end when their parent ends, even if it is killed.

    a foreign program (a game)      die_with_parent    the kernel: SIGKILL, set up before exec
                                    end_with_this_process    a job on Windows, else a `guard`
    a worker, the update process,
    with its whole group            the lifeline       kill_group_at_end_of, called by the trainer,
                                                       and end_group_with, by the worker
    a paused tree, not a child      `guard`            a process that waits for the end of a pipe

    trainer ── pipe, never written ──► the kernel: SIGKILL to the group when no process holds the
                                       writing end any more

Linux can send a signal to a process when its parent ends (`PR_SET_PDEATHSIG`). Other systems
cannot. There the lifeline's thread ends workers, and a guard ends games. On Windows, Job Objects
(`windows`) replace all of this.

Rules:
- libc is loaded before any fork, because nothing may be imported between fork and exec.
- The parent-death signal follows the *thread* that forks. So games are started from a worker's main
  thread, and workers from a thread that does not end (see `uninterrupted`).
- `die_with_parent` makes `subprocess` fork, which is slow in a large process and unsafe with other
  threads. Only the lean, single-threaded worker uses it.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
from collections.abc import Callable
from typing import Final, NoReturn

from sc2pool.platform import LINUX, WINDOWS
from sc2pool.processes import windows
from sc2pool.processes.spawn import start_thread

if not WINDOWS:
    import fcntl

_PR_SET_PDEATHSIG: Final = 1
_SIGKILL: Final = 9
"""`signal.SIGKILL`, which Windows does not define."""
_prctl = ctypes.CDLL(None, use_errno=True).prctl if LINUX else None


def die_with_parent() -> Callable[[], None] | None:
    """A `preexec_fn` for a child that must not outlive its parent; None if not supported."""
    if _prctl is None:
        return None
    parent_pid = os.getpid()
    return lambda: follow_parent(parent_pid)


def end_with_this_process(child: subprocess.Popen[bytes]) -> Callable[[], None]:
    """Make a child that was just started end with this process, if `die_with_parent` cannot.

    Returns:
        A function to call after the child's end.

    Raises:
        OSError: the system refuses a job or a guard.
    """
    if WINDOWS:
        return windows.Job(child).close
    if LINUX:
        return lambda: None
    from sc2pool.processes.guard import Guard  # noqa: PLC0415 - most workers need no guard
    from sc2pool.processes.tree import created_at_s  # noqa: PLC0415

    created_s = created_at_s(child.pid)
    if created_s is None:  # it has ended already
        return lambda: None
    guard = Guard()
    guard.note((child.pid, created_s))
    return guard.dismiss


def follow_parent(parent_pid: int, number: int = _SIGKILL) -> None:
    """Get this signal when the parent ends; if it has ended already, exit now.

    Args:
        parent_pid: the parent's pid. If it differs from the current parent's, the parent has ended.
        number: the signal's number.
    """
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
        if os.getppid() != parent_pid:
            os._exit(1)


def kill_group_at_end_of(lifeline: int, leader_pid: int) -> None:
    """Make the kernel kill a child's group when the writing end of its lifeline closes.

    Called by the parent right after the start. So it works while the child is still starting, is
    stopped, or hangs with the interpreter's lock. Linux only (`F_SETSIG`, fcntl(2)).

    Args:
        lifeline: the reading end of a pipe, which the child has inherited.
        leader_pid: the child, which leads a process group.
    """
    if LINUX:
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, -leader_pid)
        fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)


def end_group_with(parent_pid: int, lifeline: int) -> None:
    """Make this process's group be killed when the parent ends.

    The whole group is killed, because an env of the user may have started processes that only this
    process knows.

    On Linux the kernel sends the signal (`kill_group_at_end_of`). It sends no signal if this
    process, the pipe's reader, has ended before. So the parent-death signal of this process is
    SIGCONT, not SIGKILL: it only resumes a stopped process, so that the thread below runs. The
    thread kills the group on other systems, and if a forked child of the parent still holds the
    pipe.

    Args:
        parent_pid: the parent's pid. If it differs from the current parent's, the parent has ended.
        lifeline: the reading end of a pipe whose writing end the parent holds.
    """
    if WINDOWS:
        raise NotImplementedError("on Windows a job ends the group")
    ends = [lifeline]
    if LINUX:
        follow_parent(parent_pid, signal.SIGCONT)
        ends.append(os.pidfd_open(parent_pid))

    def wait() -> NoReturn:
        poll = select.poll()  # `select` fails for descriptors above 1023, which a large pool has
        for end in ends:
            poll.register(end, select.POLLIN)
        poll.poll()
        os.killpg(os.getpgrp(), signal.SIGKILL)
        os._exit(1)

    start_thread(wait, "sc2pool-lifeline")
