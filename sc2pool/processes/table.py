"""State and resource use of the processes below this one, read in one pass.

    read ─► Processes: at(pid), below(pid) ─► rows: stopped, resident memory, CPU time

Linux has all values in one small file per process (`/proc/PID/stat`, proc(5)). psutil would open
five files per process, and a walk down from each worker reads a file per thread. On other systems
psutil is used.

Rules: a process that is not below this one is read only once. It stays a stranger until it ends,
because the new parent of an orphan is always a process of the system. A process that starts or ends
during the pass may be missing. Ended processes are missing, including zombies.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import psutil

from sc2pool.platform import LINUX

_STOPPED: Final = frozenset({psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP})


class ProcessRow(NamedTuple):
    """The state of one process at one moment."""

    parent_pid: int
    stopped: bool
    rss_bytes: int
    cpu_s: float


class Processes:
    """The processes below one process, at one moment, by pid."""

    def __init__(self, rows: Mapping[int, ProcessRow]) -> None:
        self._rows = rows
        self._children: dict[int, list[int]] = {}
        for pid, row in rows.items():
            self._children.setdefault(row.parent_pid, []).append(pid)

    def at(self, pid: int) -> ProcessRow | None:
        """The process of this pid; None if it has ended."""
        return self._rows.get(pid)

    def below(self, pid: int) -> list[ProcessRow]:
        """All processes below this one."""
        return [self._rows[child] for child in self._pids_below(pid)]

    def tree(self, pid: int) -> list[ProcessRow]:
        """This process, if it has not ended, and all below it."""
        root = self.at(pid)
        return [*([root] if root else []), *self.below(pid)]

    def _pids_below(self, pid: int) -> Iterator[int]:
        for child in self._children.get(pid, ()):
            yield child
            yield from self._pids_below(child)


class PsutilTable:
    """The processes below `root_pid`, on every system."""

    def __init__(self, root_pid: int) -> None:
        self._root_pid = root_pid

    def read(self) -> Processes:
        """The processes now.

        Raises:
            OSError: the system cannot be queried, because no descriptor is free.
        """
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
                continue  # it has ended, or belongs to another user
            if status != psutil.STATUS_ZOMBIE:
                rows[process.pid] = row
        return Processes(rows)


if LINUX:
    _TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
    _PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
    _STAT_BYTES: Final = 2048

    class ProcTable(PsutilTable):
        """The same table, read from /proc."""

        def __init__(self, root_pid: int) -> None:
            super().__init__(root_pid)
            self._strangers: set[int] = set()

        def read(self) -> Processes:
            pids = {int(name) for name in os.listdir("/proc") if name.isdecimal()}  # noqa: PTH208
            self._strangers &= pids  # pids of ended processes may be reused
            rows = {}
            for pid in pids - self._strangers:
                row = _read_stat(pid)
                if row is not None:
                    rows[pid] = row
            belongs = {self._root_pid: True, 0: False} | dict.fromkeys(self._strangers, False)
            for pid in rows:
                self._settle(pid, rows, belongs)
            self._strangers |= {pid for pid in rows if belongs.get(pid) is False}
            return Processes({pid: row for pid, row in rows.items() if belongs.get(pid)})

        @staticmethod
        def _settle(pid: int, rows: Mapping[int, ProcessRow], belongs: dict[int, bool]) -> None:
            """Note in `belongs` if it is below the root; nothing if an ancestor is missing."""
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
        # The name, in brackets, may contain anything. After it: state, parent, …
        state, parent_pid, *fields = line[line.rindex(b")") + 2 :].split()
        if state in b"ZX":
            return None
        ticks = int(fields[9]) + int(fields[10])
        rss_bytes = int(fields[19]) * _PAGE_BYTES
        return ProcessRow(int(parent_pid), state in b"Tt", rss_bytes, ticks / _TICKS_PER_S)


def process_table(root_pid: int) -> PsutilTable:
    """The fastest table for this system."""
    if LINUX:
        return ProcTable(root_pid)
    return PsutilTable(root_pid)


def waited_s(pid: int) -> float:
    """The total time for which a process's threads were ready to run and waited for a CPU.

    0 if the process has ended, or if the system does not report it. This reads a file per thread,
    so call it for a process whose answer is late, not in each sample.
    """
    waited_ns = 0
    if LINUX:
        with suppress(OSError):
            for thread in Path(f"/proc/{pid}/task").iterdir():
                with suppress(OSError, ValueError, IndexError):
                    waited_ns += int((thread / "schedstat").read_text().split()[1])
    return waited_ns / 1e9


def usable_cores() -> int:
    """The number of cores that this process and its children may use."""
    if LINUX:
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
