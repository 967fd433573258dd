"""Followers: children that inherit descriptors, and end with this process and all they started.

    start_follower ── descriptors ──► become_follower, the child's first call

On POSIX the child inherits the descriptors, whose numbers are in its command line, and a lifeline
ends it (`with_parent`). On Windows it is put into a Job Object, and reads descriptions of the
copied descriptors from its standard input. It reads them before it does anything else, so all
processes that it starts are in the job.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from io import FileIO
from pathlib import Path

from sc2pool.platform import WINDOWS
from sc2pool.processes import windows, with_parent
from sc2pool.processes.spawn import Child, start_python


class Follower:
    """The parent's handle of a child.

    Attributes:
        process: the child, which leads a process group.
        lifeline: a context manager that ends the child and all that it has started. On Linux the
            kernel kills them when this file closes. The end of a `with` block closes it in a single
            step of the interpreter, which no interrupt can cut short. The end of this object closes
            it too. On Windows it does nothing.
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
            """Send SIGKILL to the child's group; no effect after the child is reaped.

            Until the leader is reaped, the system does not reuse the group's number.
            """
            if self.process.returncode is None:
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
    """Start `python -m module`, which calls `become_follower`.

    Call this in the thread of `uninterrupted`.

    Args:
        sockets: descriptors of sockets for the child. This process keeps them too.
        environment: variables to add to this process's environment.
        file: the descriptor of a file for the child, kept too.
        own_session: see `start_python`.

    Raises:
        OSError: the system refuses a process or descriptors. Everything is cleaned up.
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
        with_parent.kill_group_at_end_of(ours, process.pid)
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
    """True if this process and all that it starts end with its parent, as in a worker."""
    return _follows


def become_follower(arguments: Sequence[str]) -> list[int]:
    """End this process with its parent; called by the child before its slow imports.

    Args:
        arguments: the command line, without the program.

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
    with_parent.end_group_with(parent_pid, lifeline)
    return descriptors
