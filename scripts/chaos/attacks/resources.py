"""What runs out for a while: descriptors, processes, disk and inodes.

A worker is killed meanwhile, so that its replacement needs what has run out. A game that takes too
much memory is among the games. Root is not bound by RLIMIT_NPROC, so processes are counted by a
control group of the run's own.
"""

from __future__ import annotations

import errno
import os
import resource
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from random import Random

from chaos.arena import Arena, May
from chaos.attacks.attack import Attack, needs, soon
from chaos.attacks.signals import kill_a_worker

CGROUP = "SC2POOL_CHAOS_CGROUP"
"""Names the environment variable with the folder of the run's own control group."""
DISK = "SC2POOL_CHAOS_DISK"
"""Set if the folder for temporary files is a file system of its own."""
LONGEST_S = 2.0
FILLER_BYTES = 1 << 20


def few_descriptors(arena: Arena, rng: Random) -> None:
    """No more than a few files can be opened."""
    arena.beside(_few_descriptors, soon(rng), rng.randrange(12), LONGEST_S * rng.random())
    kill_a_worker(arena, rng)


def _few_descriptors(delay_s: float, free: int, hold_s: float) -> None:
    time.sleep(delay_s)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    newest = max(map(int, os.listdir("/proc/self/fd")))  # noqa: PTH208 - takes one descriptor
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, newest + free), hard))
    try:
        time.sleep(hold_s)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def few_processes(arena: Arena, rng: Random) -> None:
    """No more than a few processes and threads can be started."""
    group = Path(os.environ[CGROUP])
    arena.beside(_few_processes, group, soon(rng), rng.randrange(4), LONGEST_S * rng.random())
    kill_a_worker(arena, rng)


def _few_processes(group: Path, delay_s: float, free: int, hold_s: float) -> None:
    time.sleep(delay_s)
    most = group / "pids.max"
    most.write_text(str(int((group / "pids.current").read_text()) + free))
    try:
        time.sleep(hold_s)
    finally:
        while not _write(most, "max"):  # descriptors may have run out as well
            time.sleep(0.05)


def _write(path: Path, text: str) -> bool:
    with suppress(OSError):
        path.write_text(text)
        return True
    return False


def full_disk(arena: Arena, rng: Random) -> None:
    """Nothing can be written."""
    arena.beside(_full_disk, soon(rng), LONGEST_S * rng.random())
    kill_a_worker(arena, rng)


def _full_disk(delay_s: float, hold_s: float) -> None:
    time.sleep(delay_s)
    filler = Path(tempfile.gettempdir()) / "filler"
    try:
        with suppress(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(FILLER_BYTES))
        time.sleep(hold_s)
    finally:
        filler.unlink(missing_ok=True)


def no_inodes(arena: Arena, rng: Random) -> None:
    """No file can be made."""
    arena.beside(_no_inodes, soon(rng), LONGEST_S * rng.random())
    kill_a_worker(arena, rng)


def _no_inodes(delay_s: float, hold_s: float) -> None:
    time.sleep(delay_s)
    made = []
    try:
        for number in range(1_000_000):
            path = Path(tempfile.gettempdir()) / f"inode{number}"
            try:
                path.touch()
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                break
            made.append(path)
        time.sleep(hold_s)
    finally:
        for path in made:
            path.unlink(missing_ok=True)


ATTACKS = {
    "few descriptors": Attack("resources", few_descriptors, May.ENDED),
    "few processes": Attack("resources", few_processes, May.ENDED, needs("pids")),
    "full disk": Attack("resources", full_disk, May.ENDED, needs("mount")),
    "no inodes": Attack("resources", no_inodes, May.ENDED, needs("mount")),
}
