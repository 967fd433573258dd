"""Process trees: identifies, lists, measures, pauses and kills a process and its descendants.

A stop walks the tree and stops new processes, until all are stopped and a walk finds nothing new.

A process is identified by its pid and its creation time, because the system may reuse a pid. On
Linux the creation time is relative to the system's start, so a change of the wall clock does not
affect it. On other systems the creation time is wall clock time.

Rules: A process is signalled only if its pid and creation time are the expected ones. If the system
has no free descriptor for the query, the process counts as alive, and is not signalled. `stop`
returns when the system reports every process as stopped. A process is stopped once and continued
once, because on Windows the system counts these calls. If another program stopped a process
earlier, the process stays stopped after `resume`. A process that has left its parent (a daemon) is
not in the tree.

`process_table` reads, in one pass, the state and resource use of all processes below a root. The
table's `read` returns `Processes`, which finds a process by its pid, or lists the processes below
it.

On Linux, this module reads one small file per process (`/proc/PID/stat`, proc(5)), which has all
values. On other systems it uses psutil, which on Linux would open five files per process. A walk
down from each worker would read one file per thread.

Rules: a process that is not below the root (a stranger) is read only once. A stranger remains a
stranger, because the new parent of an orphan is always a process of the system. A process that
starts or ends during the reading may be missing. Ended processes, including zombies, are left out.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import psutil

from sc2pool.deadline import Deadline
from sc2pool.errors import PauseError
from sc2pool.platform import LINUX, WINDOWS

STOPS_WITHIN_S: Final = 2.0
"""Time limit of a stop. A stop takes 0.3 to 4 ms, or longer if a system call is slow."""
_POLL_S: Final = 0.0005
UNREADABLE: Final = (psutil.Error, OSError)
"""The errors of psutil about a process, and of a system that has no free descriptor."""
_STOPPED: Final = frozenset({psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP})


def descendants(process: psutil.Process) -> list[psutil.Process]:
    """The descendants of this process.

    The list may lack a process that starts during the call, and may have a process that has ended.
    If the whole tree is stopped, the list is complete.

    Raises:
        psutil.Error, OSError: the system cannot be queried.
    """
    if not _KERNEL_LISTS_CHILDREN:
        return process.children(recursive=True)
    # On Linux, do not use psutil, which would read the parent of every process on the machine.
    # On a busy machine, these reads take as long as a game loop.
    # These reads also take longer than all other work of the watchdog.
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
    """The pids of a process's children; empty for a process that has ended."""
    children: list[int] = []
    with suppress(*_ENDED):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(*_ENDED):
                children += map(int, (thread / "children").read_text().split())
    return children


_ENDED: Final = (FileNotFoundError, ProcessLookupError)
_KERNEL_LISTS_CHILDREN: Final = Path(f"/proc/self/task/{os.getpid()}/children").exists()


def kill_tree(root: psutil.Process) -> None:
    """Send SIGKILL to a process and to all processes below it that can be listed."""
    with suppress(*UNREADABLE):
        root.suspend()  # a running process might start unlisted children
    tree = [root]
    with suppress(*UNREADABLE):
        tree += descendants(root)
    for process in tree:
        with suppress(*UNREADABLE):
            process.kill()  # psutil checks that the pid was not reused


class ProcessTree:
    """Trees to pause together, with or without their roots; PauseError if a root does not exist."""

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
        """Stop all processes; if the deadline passes first, resume them and raise PauseError."""
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
            # On Windows, a stop has taken effect when the call returns.
            # On POSIX, a stop takes effect later, because it is a signal.
            moving = [] if WINDOWS else [one for one in self._held if not _rests(one)]
            # Stopped processes start no processes, so a walk that finds no new process is complete.
            new = [process for process in self._members() if process not in self._held]
            new = [process for process in new if not _rests(process)]
            if not moving and not new:
                return
            if deadline.expired():
                names = ", ".join(str(process.pid) for process in [*moving, *new])
                raise PauseError(f"processes below {self._names} did not stop in time: {names}")
            for process in new:
                with suppress(psutil.NoSuchProcess):
                    try:
                        process.suspend()
                    except psutil.AccessDenied as error:
                        what = f"process {process.pid} may not be stopped"
                        raise PauseError(f"{what}: {error}") from error
                    self._held.append(process)
            if moving and not new:
                time.sleep(_POLL_S)

    def _members(self) -> list[psutil.Process]:
        members = []
        for root in self._roots:
            with suppress(psutil.NoSuchProcess):
                if root.is_running():  # also False for a reused pid
                    below = descendants(root)
                    members += [root, *below] if self._with_root else below
        return members

    def resume(self) -> None:
        """Resume all processes that this object has stopped; may be called again."""
        held, self._held = self._held, []
        for process in held:
            with suppress(*UNREADABLE):
                process.resume()


def is_at_rest(pid: int) -> bool:
    """True if the process is stopped, has ended, or does not exist."""
    try:
        return _rests(psutil.Process(pid))
    except psutil.NoSuchProcess:
        return True


def _rests(process: psutil.Process) -> bool:
    """True if the process is stopped or has ended."""
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
        # This is field 22 (proc_pid_stat(5)); field 2 may contain spaces and brackets.
        return int(status.rpartition(b")")[2].split()[19]) / _TICKS_PER_S

else:
    _DRIFT_S: Final = 2.0
    """How much two readings of one creation time may differ after a wall clock correction."""

    def _read_created_at_s(pid: int) -> float:
        return psutil.Process(pid).create_time()


def created_at_s(pid: int) -> float | None:
    """A process's creation time, to be compared only for equality; None if it cannot be read."""
    try:
        return _read_created_at_s(pid)
    except UNREADABLE:
        return None


def is_alive(pid: int, created_s: float) -> bool:
    """True if the process with this pid and creation time is alive, or if this is unknown."""
    try:
        process = _find(pid, created_s)
        return process is not None and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
    except UNREADABLE:
        return True


def end_orphan(pid: int, created_s: float) -> bool:
    """Kill the tree whose root has this pid and creation time; False if the root has ended."""
    with suppress(*UNREADABLE):
        process = _find(pid, created_s)
        if process is not None:
            kill_tree(process)
            return True
    return False


def _find(pid: int, created_s: float) -> psutil.Process | None:
    process = psutil.Process(pid)
    return process if abs(_read_created_at_s(pid) - created_s) <= _DRIFT_S else None


class ProcessRow(NamedTuple):
    """One process's state and use of resources at one moment."""

    parent_pid: int
    stopped: bool
    rss_bytes: int
    cpu_s: float


class Processes:
    """The descendants of one process at one moment, by pid."""

    def __init__(self, rows: Mapping[int, ProcessRow]) -> None:
        self._rows = rows
        self._children: dict[int, list[int]] = {}
        for pid, row in rows.items():
            self._children.setdefault(row.parent_pid, []).append(pid)

    def at(self, pid: int) -> ProcessRow | None:
        """The process with this pid; None if it has ended."""
        return self._rows.get(pid)

    def below(self, pid: int) -> list[ProcessRow]:
        """The descendants of this process."""
        children = self._children.get(pid, ())
        return [row for child in children for row in (self._rows[child], *self.below(child))]

    def tree(self, pid: int) -> list[ProcessRow]:
        """This process, unless it has ended, and its descendants."""
        root = self.at(pid)
        return [*([root] if root else []), *self.below(pid)]


class PsutilTable:
    """Reads the descendants of `root_pid`; works on every system."""

    def __init__(self, root_pid: int) -> None:
        self._root_pid = root_pid

    def read(self) -> Processes:
        """The present processes; raises OSError if the system has no free descriptor."""
        rows = {}
        for process in psutil.Process(self._root_pid).children(recursive=True):
            try:
                with process.oneshot():
                    status = process.status()
                    used = process.cpu_times()
                    row = ProcessRow(
                        process.ppid(),
                        status in _STOPPED,
                        process.memory_info().rss,
                        used.user + used.system,
                    )
            except psutil.Error:
                continue  # the process has ended, or belongs to another user
            if status != psutil.STATUS_ZOMBIE:
                rows[process.pid] = row
        return Processes(rows)


if LINUX:
    _PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
    _STAT_BYTES: Final = 2048

    class ProcTable(PsutilTable):
        """Reads the descendants of `root_pid` from /proc."""

        def __init__(self, root_pid: int) -> None:
            super().__init__(root_pid)
            self._strangers: set[int] = set()

        def read(self) -> Processes:
            pids = {int(name) for name in os.listdir("/proc") if name.isdecimal()}  # noqa: PTH208
            self._strangers &= pids  # pids of ended processes may be reused
            rows = {pid: row for pid in pids - self._strangers if (row := _read_stat(pid))}
            belongs = {self._root_pid: True, 0: False} | dict.fromkeys(self._strangers, False)
            for pid in rows:
                self._settle(pid, rows, belongs)
            self._strangers |= {pid for pid in rows if belongs.get(pid) is False}
            return Processes({pid: row for pid, row in rows.items() if belongs.get(pid)})

        @staticmethod
        def _settle(pid: int, rows: Mapping[int, ProcessRow], belongs: dict[int, bool]) -> None:
            """Record in `belongs` whether `pid` is below the root, if no ancestor is missing."""
            lineage = []
            while pid not in belongs and pid in rows:
                lineage.append(pid)
                pid = rows[pid].parent_pid
            if pid in belongs:
                belongs.update(dict.fromkeys(lineage, belongs[pid]))

    def _read_stat(pid: int) -> ProcessRow | None:
        try:
            stat = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
        except (FileNotFoundError, ProcessLookupError):
            return None
        try:
            line = os.read(stat, _STAT_BYTES)
        except ProcessLookupError:
            return None
        finally:
            os.close(stat)
        # The name is in brackets, and may contain any characters; state, parent, … follow.
        state, parent_pid, *fields = line[line.rindex(b")") + 2 :].split()
        if state in b"ZX":
            return None
        ticks = int(fields[9]) + int(fields[10])
        rss_bytes = int(fields[19]) * _PAGE_BYTES
        return ProcessRow(int(parent_pid), state in b"Tt", rss_bytes, ticks / _TICKS_PER_S)


def process_table(root_pid: int) -> PsutilTable:
    """The table that is fastest on this system, for the descendants of `root_pid`."""
    if LINUX:
        return ProcTable(root_pid)
    return PsutilTable(root_pid)


def waited_s(pid: int) -> float:
    """The total time in seconds for which a process's threads waited for a CPU.

    The system counts a wait when the wait ends, so unfinished waits are missing. The result is 0 if
    the process has ended, or if the system does not report waits. This reads a file per thread, so
    call it only for a process whose answer is late, not in each sample.
    """
    waited_ns = 0
    if LINUX:
        with suppress(OSError):
            for thread in Path(f"/proc/{pid}/task").iterdir():
                with suppress(OSError, ValueError, IndexError):
                    waited_ns += int((thread / "schedstat").read_text().split()[1])
    return waited_ns / 1e9


def is_ready(pid: int) -> bool:
    """True if a thread of the process is running or waiting for a CPU; False if this is unknown."""
    if LINUX:
        with suppress(OSError):
            for thread in Path(f"/proc/{pid}/task").iterdir():
                with suppress(OSError):
                    if (thread / "stat").read_bytes().rpartition(b") ")[2].startswith(b"R"):
                        return True
    return False


def active_s(pid: int) -> float:
    """How many seconds a process has used a CPU or waited for one; 0 if the process has ended."""
    with suppress(psutil.Error):
        times = psutil.Process(pid).cpu_times()
        return float(times.user + times.system + waited_s(pid))
    return 0.0


def usable_cores() -> int:
    """The number of cores that this process and its children may use."""
    if LINUX:
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
