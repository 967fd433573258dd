"""Lets resources run out for a while: descriptors, processes, disk space and inodes.

A worker is killed while a resource is short, so the new worker lacks the resource. If the limit is
on a single worker or game, a game is killed instead. The module `games` has games that take memory.
RLIMIT_NPROC does not bind root, so the run's control group limits the number of processes.
"""

from __future__ import annotations

import errno
import os
import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from random import Random

import psutil

from chaos.arena import Arena, May
from chaos.attacks import signals
from chaos.attacks.attack import Attack, needs, soon
from chaos.attacks.signals import missed_by_a_worker

CGROUP = "SC2POOL_CHAOS_CGROUP"
"""The environment variable with the folder of the run's own control group."""
DISK = "SC2POOL_CHAOS_DISK"
"""The environment variable that is set if the folder for temporary files is a mount of its own."""
LONGEST_S = 2.0
FILLER_BYTES = 1 << 20


def hold(rng: Random) -> None:
    """Sleep for a random time."""
    time.sleep(LONGEST_S * rng.random())


def few_descriptors(rng: Random) -> None:
    """For a while only a few files can be opened."""
    free = rng.randrange(12)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    newest = max(map(int, os.listdir("/proc/self/fd")))  # noqa: PTH208 - takes one descriptor
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, newest + free), hard))
    try:
        hold(rng)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def few_processes(rng: Random) -> None:
    """For a while only a few processes and threads can be started."""
    group = Path(os.environ[CGROUP])
    most = group / "pids.max"
    most.write_text(str(int((group / "pids.current").read_text()) + rng.randrange(4)))
    try:
        hold(rng)
    finally:
        while not _write(most, "max"):  # descriptors may have run out as well
            time.sleep(0.05)


def _write(path: Path, text: str) -> bool:
    with suppress(OSError):
        path.write_text(text)
        return True
    return False


@contextmanager
def temp_folder() -> Iterator[int]:
    """A descriptor of the folder, because another attack may mount something over its path."""
    folder = os.open(tempfile.gettempdir(), os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield folder
    finally:
        os.close(folder)


def full_disk(rng: Random) -> None:
    """For a while nothing can be written."""
    with temp_folder() as folder:
        filler = os.open("filler", os.O_WRONLY | os.O_CREAT, dir_fd=folder)
        try:
            with suppress(OSError):
                while True:
                    os.write(filler, bytes(FILLER_BYTES))
            hold(rng)
        finally:
            os.close(filler)
            os.unlink("filler", dir_fd=folder)


def no_inodes(rng: Random) -> None:
    """For a while no file can be created."""
    made = []
    with temp_folder() as folder:
        try:
            for number in range(1_000_000):
                name = f"inode{number}"
                try:
                    os.close(os.open(name, os.O_WRONLY | os.O_CREAT, dir_fd=folder))
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    break
                made.append(name)
            hold(rng)
        finally:
            for name in made:
                os.unlink(name, dir_fd=folder)


def limits_of_a_process(arena: Arena, rng: Random, kind: int, target: str) -> None:
    """Limit a resource of a worker or a game to its present use, and kill a game."""
    delay_s, hold_s = soon(rng), LONGEST_S * rng.random()
    arena.beside(delay_s, _limits_of_a_process, arena, rng.random(), kind, target, hold_s)
    signals.strike(arena, rng, "game", "KILL")


def _limits_of_a_process(arena: Arena, which: float, kind: int, target: str, hold_s: float) -> None:
    pid = arena.pid(which, target)
    if pid is None:
        return
    process = psutil.Process(pid)
    has_now = {
        resource.RLIMIT_NOFILE: process.num_fds(),
        resource.RLIMIT_AS: process.memory_info().vms,
        resource.RLIMIT_FSIZE: 0,
    }
    soft, hard = resource.prlimit(pid, kind)
    resource.prlimit(pid, kind, (has_now[kind], hard))
    time.sleep(hold_s)
    if process.is_running():
        resource.prlimit(pid, kind, (soft, hard))


LIMITS = {
    "descriptors": resource.RLIMIT_NOFILE,
    "memory": resource.RLIMIT_AS,
    "file size": resource.RLIMIT_FSIZE,
}

ATTACKS = {
    **{
        act.__name__.replace("_", " "): Attack(
            "resources", partial(missed_by_a_worker, act=act), May.ENDED, needs("local", *more)
        )
        for act, *more in (
            (few_descriptors,),
            (few_processes, "pids"),
            (full_disk, "mount"),
            (no_inodes, "mount"),
        )
    },
    **{
        f"no more {name} for a {target}": Attack(
            "resources",
            partial(limits_of_a_process, kind=kind, target=target),
            May.ENDED if target == "worker" else May.TRUNCATION,
            needs("games"),
        )
        for name, kind in LIMITS.items()
        for target in ("worker", "game")
    },
}
