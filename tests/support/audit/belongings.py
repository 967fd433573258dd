"""Finds processes, descriptors and files of a test, which must not outlast the test.

Processes of this run have the run's temp folder in their environment, so the run must first set
`TMPDIR` to a folder of its own.
"""

from __future__ import annotations

import gc
import os
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import psutil

from sc2pool.platform import WINDOWS
from sc2pool.processes.tree import descendants, kill_tree

GONE_WITHIN_S = 5.0
"""The seconds that a killed process may take to end on a busy machine."""
_EARLIER = frozenset(psutil.pids())
"""The processes that ran before the tests; most of them are threads of the kernel."""


class Belongings:
    """Everything that this run holds on the machine at one moment."""

    def __init__(self, run_temp: Path) -> None:
        self._run_temp = run_temp
        self._processes = our_processes(run_temp)
        self._descriptors = descriptors(run_temp)
        self._leases = leases_held(self._processes)
        self._mappings = shared_mappings()
        self._folders = temp_folders(run_temp)

    def what_is_left(self) -> list[str]:
        """One line for each thing that the run holds now, but did not hold when `self` was made."""
        processes = our_processes(self._run_temp)
        return [
            *(f"process {describe(p)}" for p in processes - self._processes),
            *(
                f"descriptor to {d}"
                for d in (descriptors(self._run_temp) - self._descriptors).elements()
            ),
            *(f"port lease {lease}" for lease in leases_held(processes) - self._leases),
            *(f"shared memory {m}" for m in (shared_mappings() - self._mappings).elements()),
            *(f"folder {folder}" for folder in temp_folders(self._run_temp) - self._folders),
        ]

    def what_stays(self) -> list[str]:
        """The lines of `what_is_left` that remain after killed processes had time to end."""
        deadline_s = time.monotonic() + GONE_WITHIN_S
        while (left := self.what_is_left()) and time.monotonic() < deadline_s:
            gc.collect()  # garbage collection ends a pool that was dropped without `close`
            time.sleep(0.02)
        return left

    def end_new_processes(self) -> None:
        """Kill new processes, so that the next test does not report them again."""
        for process in our_processes(self._run_temp) - self._processes:
            kill_tree(process)
            with suppress(psutil.Error):
                process.wait(GONE_WITHIN_S)


def our_processes(run_temp: Path) -> set[psutil.Process]:
    """All descendants of this process, and all other processes that have this run's temp folder."""
    ours = set(descendants(psutil.Process()))
    mark = os.fsencode(run_temp)
    for pid in psutil.pids():
        if pid not in _EARLIER and is_marked(pid, mark):
            with suppress(psutil.Error):
                ours.add(psutil.Process(pid))
    return ours


def is_marked(pid: int, mark: bytes) -> bool:
    """True if the process's command line or environment contains the mark."""
    if WINDOWS:
        with suppress(psutil.Error, OSError):
            return any(os.fsdecode(mark) in part for part in psutil.Process(pid).cmdline())
        return False
    try:
        for name in ("cmdline", "environ"):
            # For speed, use no buffer and no Path: each test reads all processes' files twice.
            with open(f"/proc/{pid}/{name}", "rb", buffering=0) as file:  # noqa: PTH123
                if mark in file.readall():
                    return True
    except OSError:
        pass  # the process has ended, or is another user's
    return False


def describe(process: psutil.Process) -> str:
    with suppress(psutil.Error):
        return f"{process.pid} ({process.status()}): {' '.join(process.cmdline())}"
    return str(process.pid)


def descriptors(run_temp: Path) -> Counter[str]:
    """This process's open descriptors, counted by target, without the files of libraries."""
    targets: Counter[str] = Counter()
    if WINDOWS:  # Windows tells only the number of handles, and some are Python's
        return targets
    for link in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            target = str(link.readlink())
            if not target.startswith("/") or target.startswith(("/memfd:", str(run_temp))):
                # Pipes and sockets are only counted, because their names differ each time.
                targets[target.split(":[", maxsplit=1)[0]] += 1
    return targets


def leases_held(processes: set[psutil.Process]) -> set[str]:
    """The ports whose lock file this process or one of `processes` has open."""
    held: set[str] = set()
    if WINDOWS:  # on Windows locks end with their process
        return held
    for pid in [os.getpid(), *(process.pid for process in processes)]:
        with suppress(OSError):
            for link in Path(f"/proc/{pid}/fd").iterdir():
                target = str(link.readlink())
                if "/sc2pool-ports" in target:
                    held.add(Path(target.removesuffix(" (deleted)")).stem)
    return held


def shared_mappings() -> Counter[str]:
    """Queue pairs mapped into this process; on Windows, also those of the process's children."""
    temp = tempfile.gettempdir()
    if WINDOWS:  # Windows lists no mappings; a mapping's file exists until the last close
        return Counter(path.name for path in Path(temp).glob("sc2pool-????????"))
    lines = Path("/proc/self/maps").read_text().splitlines()
    mapped = (line.split(maxsplit=5)[5] for line in lines if "sc2pool" in line)
    return Counter(name for name in mapped if name.startswith(("/memfd:", "/dev/shm", temp)))


def temp_folders(run_temp: Path) -> set[str]:
    """The temp folders of runs and games."""
    return {
        str(path) for name in ("sc2pool-run-*", "sc2pool-game-*") for path in run_temp.rglob(name)
    }
