"""Children that end when their parent ends, even if it is killed.

    a program of others (a game)    die_with_parent    the kernel: SIGKILL, asked for before exec
                                    end_with_this_process    a job on Windows, else a `guard`
    a worker, the update process,
    with its whole group            the lifeline       kill_group_at_end_of, called by the trainer,
                                                       and end_group_with, by the worker
    a paused tree, not a child      `guard`            a process that waits for the end of a pipe

    trainer ── pipe, never written ──► the kernel: SIGKILL to the group when no process holds the
                                       writing end any more

Linux can send a signal to a process when its parent ends (`PR_SET_PDEATHSIG`). Other systems
cannot; there the lifeline's thread ends workers, and a guard the games of other programs. Windows
has Job Objects (`windows`) in place of all of it.

Rules:
- libc is loaded before any fork, because between fork and exec nothing may be imported;
- the parent-death signal follows the *thread* that forks, so games are started from a worker's
  main thread, and workers from a thread that lives on (see `uninterrupted`);
- `die_with_parent` makes `subprocess` fork, which is slow in a large process and unsafe beside
  other threads: only the lean, single-threaded worker uses it.
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
from sc2pool.processes.shortage import start_thread

if not WINDOWS:
    import fcntl

_PR_SET_PDEATHSIG: Final = 1
_SIGKILL: Final = 9
"""`signal.SIGKILL`, which Windows does not define."""
_prctl = ctypes.CDLL(None, use_errno=True).prctl if LINUX else None


def die_with_parent() -> Callable[[], None] | None:
    """The `preexec_fn` of a child that must not outlive its parent; None if the system has none."""
    if _prctl is None:
        return None
    parent_pid = os.getpid()
    return lambda: follow_parent(parent_pid)


def end_with_this_process(child: subprocess.Popen[bytes]) -> Callable[[], None]:
    """Have a child, just started, end with this process, where `die_with_parent` cannot do it.

    Returns:
        To be called after the child's end.

    Raises:
        OSError: the system refuses it.
    """
    if WINDOWS:
        return windows.Job(child).close
    if LINUX:
        return lambda: None
    from sc2pool.processes.guard import Guard  # noqa: PLC0415 - a lean worker needs none
    from sc2pool.processes.tree import created_at_s  # noqa: PLC0415

    created_s = created_at_s(child.pid)
    if created_s is None:  # it has ended already
        return lambda: None
    guard = Guard()
    guard.note((child.pid, created_s))
    return guard.dismiss


def follow_parent(parent_pid: int, number: int = _SIGKILL) -> None:
    """Get this signal when the parent ends; if it has ended already, exit at once.

    Args:
        parent_pid: the parent; another one by now means that it has ended.
        number: of the signal.
    """
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
        if os.getppid() != parent_pid:
            os._exit(1)


def kill_group_at_end_of(lifeline: int, leader_pid: int) -> None:
    """Have the kernel kill a child's group when the writing end of its lifeline closes.

    Called by the parent right after the start, so that it holds while the child is still starting,
    is stopped, or hangs with the interpreter's lock (`F_SETSIG`, fcntl(2)). Only Linux can do it.

    Args:
        lifeline: the reading end of a pipe, which the child has inherited.
        leader_pid: the child, which leads a process group.
    """
    if LINUX:
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, -leader_pid)
        fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)


def end_group_with(parent_pid: int, lifeline: int) -> None:
    """Have this process's group killed when the parent ends.

    The group and not this process alone: an env of the user's may have started processes, which
    only this process knows.

    On Linux the kernel sends the signal (`kill_group_at_end_of`). The process must not be killed
    alone before that, because the pipe's signal ends with its reader; so its own parent-death
    signal is SIGCONT, which only lets the thread below run if the process was stopped. The thread
    does the same on other systems, and if a forked child of the parent still holds the pipe.

    Args:
        parent_pid: this process's parent; another one by now means that it has ended.
        lifeline: the reading end of a pipe whose writing end the parent holds.
    """
    if WINDOWS:
        raise NotImplementedError("a job ends it there")
    ends = [lifeline]
    if LINUX:
        follow_parent(parent_pid, signal.SIGCONT)
        ends.append(os.pidfd_open(parent_pid))

    def wait() -> NoReturn:
        poll = select.poll()  # `select` takes no descriptor above 1023, and a large pool has more
        for end in ends:
            poll.register(end, select.POLLIN)
        poll.poll()
        os.killpg(os.getpgrp(), signal.SIGKILL)
        os._exit(1)

    start_thread(wait, "sc2pool-lifeline")
