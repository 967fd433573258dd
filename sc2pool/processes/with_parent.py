"""Children that end when their parent ends, even if the parent is killed.

A foreign program, such as a game, uses `die_with_parent`: the kernel sends it SIGKILL when its
parent ends. On systems without a parent-death signal, `end_with_this_process` uses a job (Windows)
or a `guard`.

A follower is a worker or the update process, with its whole process group. The trainer holds the
writing end of a pipe, the lifeline, to which nothing is ever written. The kernel sends SIGKILL to
the group when no process holds the writing end any more. The trainer prepares the kill of the group
with `kill_group_at_end_of`, and the follower with `end_group_with`.

Linux can send a signal to a process when its parent ends (`PR_SET_PDEATHSIG`). On other systems,
followers watch the lifeline in a thread and end themselves, and a guard ends the games. On Windows,
Job Objects (`windows`) replace signals, lifelines and guards.

A follower also gets descriptors from `start_follower`, and takes them with `become_follower`. On
POSIX the child inherits the descriptors, and finds their numbers in its command line. On Windows
the parent puts the child into a Job Object, and the child reads descriptions of the copied
descriptors from its standard input. The child reads them before it does anything else, so all
processes that it starts are in the job.

Rules: libc is loaded before any fork, because nothing may be imported between fork and exec. The
parent-death signal is sent when the *thread* that forked ends (prctl(2)). So a worker starts games
in its main thread, and workers are started in a thread that does not end (`uninterrupted`).
`die_with_parent` makes `subprocess` fork, which is slow in a large process and unsafe beside other
threads. So only the lean, single-threaded worker uses `die_with_parent`.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from io import FileIO
from pathlib import Path
from typing import Final, NoReturn

from sc2pool.platform import LINUX, WINDOWS
from sc2pool.processes import windows
from sc2pool.processes.spawn import Child, start_python, start_thread

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
    """Make a new child end with this process, on systems on which `die_with_parent` returns None.

    Returns a function to call after the child's end; raises OSError if a job or guard is refused.
    """
    if WINDOWS:
        return windows.Job(child).close
    if LINUX:
        return lambda: None
    from sc2pool.processes.guard import Guard  # noqa: PLC0415 - most workers need no guard
    from sc2pool.processes.tree import created_at_s  # noqa: PLC0415

    created_s = created_at_s(child.pid)
    if created_s is None:  # the process has ended already
        return lambda: None
    guard = Guard()
    guard.note((child.pid, created_s))
    return guard.dismiss


def follow_parent(parent_pid: int, number: int = _SIGKILL) -> None:
    """Ask the kernel for signal `number` at the parent's end; if the parent has ended, exit now."""
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
        if os.getppid() != parent_pid:
            os._exit(1)


def kill_group_at_end_of(lifeline: int, leader_pid: int) -> None:
    """Make the kernel kill a child's group when the writing end of its lifeline closes.

    The parent calls this right after the start, with the reading end that the child has inherited.
    So the kill works even if the child is still starting, is stopped, or hangs and holds the
    interpreter's lock. It needs Linux (`F_SETSIG`, fcntl(2)).
    """
    if LINUX:
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, -leader_pid)
        fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)


def end_group_with(parent_pid: int, lifeline: int) -> None:
    """Called in a child: make the parent's end kill this process and its group.

    The whole group is killed, because an env of the user may have started processes that only this
    process knows. `lifeline` is the reading end of a pipe whose writing end the parent holds.

    On Linux the kernel kills the group (`kill_group_at_end_of`), but only while this process, the
    pipe's reader, is alive. So the parent-death signal of this process is SIGCONT, not SIGKILL. If
    this process is stopped, SIGCONT resumes it and the thread that this function starts. On other
    systems, or if a forked child still holds the pipe, this thread kills the group.
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


class Follower:
    """The parent's handle of a child that leads a process group.

    On Linux the kernel kills the child and all that it has started when `lifeline` closes. The
    lifeline closes together with this object, or when its `with` block ends. The interpreter closes
    the lifeline in one step, which no interrupt can cut short. On Windows `lifeline` does nothing.
    """

    lifeline: AbstractContextManager[object]

    if WINDOWS:

        def __init__(self, process: Child, job: windows.Job) -> None:
            self.process = process
            self.lifeline = nullcontext()
            self._job = job

        def kill(self) -> None:
            """End the child and all that it has started."""
            self._job.kill()

        def close(self) -> None:
            """Release the job, after the child's end; may be called again."""
            self._job.close()

    else:

        def __init__(self, process: Child, lifeline: int) -> None:
            self.process = process
            self.lifeline = self._lifeline = FileIO(lifeline, "w")

        def kill(self) -> None:
            """Send SIGKILL to the child's group and tree; has no effect after the child was reaped.

            The tree may have processes outside the group, such as a game behind a script that calls
            setsid. The group may have processes outside the tree, whose parents have ended. The
            system does not reuse the group's number before the leader is reaped.
            """
            if self.process.returncode is None:
                import psutil  # noqa: PLC0415 - a follower imports this module first

                from sc2pool.processes.tree import UNREADABLE, kill_tree  # noqa: PLC0415

                with suppress(*UNREADABLE):
                    kill_tree(psutil.Process(self.process.pid))
                with suppress(ProcessLookupError):
                    os.killpg(self.process.pid, signal.SIGKILL)

        def close(self) -> None:
            """Release the lifeline, after the child's end; may be called again."""
            self._lifeline.close()


def start_follower(
    module: str,
    sockets: Sequence[int],
    environment: Mapping[str, str],
    *,
    file: int | None = None,
    own_session: bool = False,
) -> Follower:
    """Start `python -m module`, which must call `become_follower`. Call this in `uninterrupted`.

    The child gets copies of the descriptors `sockets` and `file`; this process keeps the originals.
    The other arguments are those of `start_python`. If the system refuses a process or descriptors,
    this function cleans up and raises OSError.
    """
    if WINDOWS:
        return _start_in_job(module, sockets, environment, file)
    descriptors = [*sockets] if file is None else [*sockets, file]
    ours, theirs = os.pipe()
    try:
        process = start_python(
            module,
            *map(str, (os.getpid(), ours, *descriptors)),
            descriptors=(ours, *descriptors),
            environment=environment,
            own_session=own_session,
        )
        kill_group_at_end_of(ours, process.pid)
    except BaseException:
        os.close(theirs)
        raise
    finally:
        os.close(ours)
    return Follower(process, theirs)


if WINDOWS:

    def _start_in_job(
        module: str, sockets: Sequence[int], environment: Mapping[str, str], file: int | None
    ) -> Follower:
        with ExitStack() as undo, windows.ending_with_us():
            process = start_python(module, environment=environment, stdin=subprocess.PIPE)
            undo.callback(process.wait)
            undo.callback(process.kill)
            assert process.stdin is not None
            with process.stdin as stdin:
                job = windows.Job(process)
                undo.callback(job.close)
                copies = (
                    [windows.copied_socket(one, process.pid) for one in sockets],
                    [windows.copied_file(one, process.pid) for one in (file,) if one is not None],
                )
                stdin.write(pickle.dumps(copies))
            undo.pop_all()
        return Follower(process, job)


_follows = False


def is_follower() -> bool:
    """True if this process, with all that it starts, ends with its parent, as a worker does."""
    return _follows


def become_follower(arguments: Sequence[str]) -> list[int]:
    """Make this process end with its parent. The child calls this before its slow imports.

    Args:
        arguments: the arguments of the command line, without the program.

    Returns:
        The descriptors for this process: the sockets, then the file if there is one.
    """
    global _follows  # noqa: PLW0603 - a property of the process
    _follows = True
    if WINDOWS:
        sockets, files = pickle.load(sys.stdin.buffer)
        with Path(os.devnull).open("rb") as nothing:
            os.dup2(nothing.fileno(), sys.stdin.fileno())
        return [*map(windows.socket_of, sockets), *map(windows.file_of, files)]
    parent_pid, lifeline, *descriptors = map(int, arguments)
    end_group_with(parent_pid, lifeline)
    return descriptors
