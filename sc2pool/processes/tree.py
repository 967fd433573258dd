"""Process trees: a process and all below it, known again, found, paused, and killed.

    stop ─► walk the tree, stop what is new ─► all stopped, and none new? ─► done
                     ▲                                 │ no
                     └─────────────────────────────────┘

A process is known by its pid and its creation time (`Identity`), because a pid alone may belong to
another process by now. Linux tells the time of creation since the system was started, which no step
of the wall clock changes; elsewhere it is the wall clock's.

Rules:
- a process that does not match in both is left alone; one that the system does not let itself be
  asked for (no free descriptor) is taken to be alive, and left alone, too;
- `stop` returns when the system says that every process is stopped, or leaves none of them
  stopped and raises;
- a process gets one stop and one continue, because they nest on Windows and do not elsewhere;
- a process that another program stopped before stays stopped;
- a process that has disowned its parent (a daemon) is not in the tree.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

from sc2pool.deadline import Deadline
from sc2pool.errors import PauseError
from sc2pool.platform import LINUX, WINDOWS

STOPS_WITHIN_S: Final = 2.0
"""Time limit of a stop. Measured: 0.3 to 4 ms; longer in the middle of a slow system call."""
_POLL_S: Final = 0.0005
UNREADABLE: Final = (psutil.Error, OSError)
"""Errors that psutil raises about a process: its own, and the system's if no descriptor is free."""
_STOPPED = frozenset({psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP})


def descendants(process: psutil.Process) -> list[psutil.Process]:
    """All processes below this one.

    A process that begins or ends meanwhile may be missing or gone. If all of the tree are
    stopped, the list is complete.

    Raises:
        psutil.Error, OSError: the system does not let itself be asked.
    """
    if not _KERNEL_LISTS_CHILDREN:
        return process.children(recursive=True)
    # psutil would read the parent of every process on the machine: on a busy one that takes as
    # long as a game loop, and costs the watchdog more than all its other work.
    found: list[int] = []
    parents = [process.pid]
    while parents:
        parents = [child for parent in parents for child in _children(parent)]
        found += parents
    below = []
    for pid in found:
        with suppress(psutil.NoSuchProcess):
            below.append(psutil.Process(pid))
    return below


def _children(pid: int) -> list[int]:
    """Pids of a process's children; a process or thread that ends meanwhile has none."""
    children: list[int] = []
    with suppress(*_ENDED):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(*_ENDED):
                children += map(int, (thread / "children").read_text().split())
    return children


_ENDED: Final = (FileNotFoundError, ProcessLookupError)
_KERNEL_LISTS_CHILDREN: Final = Path(f"/proc/self/task/{os.getpid()}/children").exists()


def kill_tree(root: psutil.Process) -> None:
    """SIGKILL to a process and all below it; without effect if it is gone.

    What cannot be listed or found because no descriptor is free lives on.
    """
    with suppress(*UNREADABLE):
        root.suspend()  # else it might start another child after they are listed
    tree = [root]
    with suppress(*UNREADABLE):
        tree += descendants(root)
    for process in tree:
        with suppress(*UNREADABLE):
            process.kill()  # psutil checks first that the pid is still this process's


class ProcessTree:
    """A tree that can be paused, or several as one.

    Args:
        with_root: whether the roots are stopped too.

    Raises:
        PauseError: there is no such process.
    """

    def __init__(self, *pids: int, with_root: bool = True) -> None:
        self._roots = []
        for pid in pids:
            try:
                self._roots.append(psutil.Process(pid))
            except psutil.NoSuchProcess as error:
                raise PauseError(f"there is no process {pid} to be stopped") from error
        self._names = ", ".join(map(str, pids))
        self._with_root = with_root
        self._held: list[psutil.Process] = []
        """The processes that this object has stopped."""

    def stop(self, deadline: Deadline) -> None:
        """Stop them all; those that are stopped already stay so.

        Raises:
            PauseError: not all could be stopped by then; all go on.
        """
        try:
            self._stop(deadline)
        except OSError as error:
            self.resume()
            raise PauseError(f"processes below {self._names} cannot be listed: {error}") from error
        except BaseException:
            self.resume()
            raise

    def _stop(self, deadline: Deadline) -> None:
        while True:
            # On Windows all threads are suspended when the call returns; a signal takes its time.
            moving = [] if WINDOWS else [one for one in self._held if not _rests(one)]
            # Once all are stopped none can start another, so a walk that finds none is complete.
            new = [process for process in self._members() if process not in self._held]
            new = [process for process in new if not _rests(process)]
            if not moving and not new:
                return
            if deadline.expired():
                names = ", ".join(str(process.pid) for process in [*moving, *new])
                raise PauseError(f"processes below {self._names} did not stop in time: {names}")
            for process in new:
                self._suspend(process)
            if moving and not new:
                time.sleep(_POLL_S)

    def _suspend(self, process: psutil.Process) -> None:
        with suppress(psutil.NoSuchProcess):
            try:
                process.suspend()
            except psutil.AccessDenied as error:
                raise PauseError(f"process {process.pid} may not be stopped: {error}") from error
            self._held.append(process)

    def _members(self) -> list[psutil.Process]:
        members = []
        for root in self._roots:
            with suppress(psutil.NoSuchProcess):
                if root.is_running():  # else the pid may be another process's by now
                    below = descendants(root)
                    members += [root, *below] if self._with_root else below
        return members

    def resume(self) -> None:
        """Let all that this object has stopped go on; may be called again."""
        held, self._held = self._held, []
        for process in held:
            with suppress(*UNREADABLE):
                process.resume()


def _rests(process: psutil.Process) -> bool:
    """True if it does nothing: it is stopped, or has ended."""
    try:
        status = process.status()
    except psutil.NoSuchProcess:
        return True
    return status in _STOPPED or status == psutil.STATUS_ZOMBIE


if LINUX:
    _DRIFT_S: Final = 0.0
    _TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")

    def _read_created_at_s(pid: int) -> float:
        try:
            status = Path(f"/proc/{pid}/stat").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            raise psutil.NoSuchProcess(pid) from None
        # proc_pid_stat(5): the 22nd field; the second is a name that may hold anything.
        return int(status.rpartition(b")")[2].split()[19]) / _TICKS_PER_S

else:
    _DRIFT_S: Final = 2.0
    """How much two readings of one creation time may differ: the wall clock may be corrected."""

    def _read_created_at_s(pid: int) -> float:
        return psutil.Process(pid).create_time()


def created_at_s(pid: int) -> float | None:
    """When the process was created, to be compared with nothing else; None if gone or unknown."""
    try:
        return _read_created_at_s(pid)
    except UNREADABLE:
        return None


def is_alive(pid: int, created_s: float) -> bool:
    """True if the process of this pid and creation time still runs; True if that is unknown."""
    try:
        process = _find(pid, created_s)
        return process is not None and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
    except UNREADABLE:
        return True


def end_orphan(pid: int, created_s: float) -> bool:
    """Kill the tree of the process of this pid and creation time; False if it is gone."""
    with suppress(*UNREADABLE):
        process = _find(pid, created_s)
        if process is not None:
            kill_tree(process)
            return True
    return False


def _find(pid: int, created_s: float) -> psutil.Process | None:
    process = psutil.Process(pid)
    return process if abs(_read_created_at_s(pid) - created_s) <= _DRIFT_S else None
