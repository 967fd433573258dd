"""Checks the memory and descriptors that a pool needs, and makes the folder for its run.

For each worker the trainer opens descriptors: a control socket, a lifeline, two doorbells, an
epoll, and at most one common doorbell (see `doorbell`). For each instance the trainer opens one
more descriptor, a channel. If the resources do not suffice, the pool raises an error before its
first process starts.

The folder of one pool's run has the temporary files of its workers and games, and their pids.

The folder's name is, for example, `<temp>/sc2pool-run-5f3a9c01-4711-1763800000.25-0-x1y2z3`. The
folder contains a temp folder for each worker (`worker-3`) and for each instance's game (`12`). A
file in an instance's folder (`12/processes`) has a line for the worker and a line for the game,
each with the pid and the time of creation. The module `live_files` describes the other files.

The folder's name identifies the owner. The name has a number for the machine and its pid namespace,
the trainer's pid, the trainer's time of creation, and the number of the trainer's earlier pools. So
the name is enough to see if the run is alive. If a cleaner of temporary files deletes folders,
they are made again on demand.

The folder is private to the user (0700) and is deleted with the pool. The next pool cleans up after
killed trainers (`sweep`). The pool ends the living processes that the dead trainers' folders
record, then deletes these folders. The cleanup never raises an error and follows no symbolic link.
The cleanup ignores the folders of other users, machines and containers.
"""

from __future__ import annotations

import errno
import itertools
import os
import shutil
import socket
import tempfile
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import psutil

from sc2pool.errors import ConfigError
from sc2pool.platform import WINDOWS
from sc2pool.pool.report import live_files
from sc2pool.processes.filelock import is_own
from sc2pool.processes.tree import created_at_s, end_orphan, is_alive

_CGROUP: Final = Path("/sys/fs/cgroup")


def available_bytes() -> int:
    """The memory that is available to new processes."""
    return available_and_total_bytes()[0]


def available_and_total_bytes() -> tuple[int, int]:
    """The memory for new processes and the total memory, within the container's limit."""
    system = psutil.virtual_memory()
    available, total = system.available, system.total
    with suppress(OSError, ValueError, KeyError):  # no limit ("max"), or no cgroup v2
        limit = int((_CGROUP / "memory.max").read_text())
        kinds = dict(map(str.split, (_CGROUP / "memory.stat").read_text().splitlines()))
        # Cached files count as used, but are dropped when processes need memory.
        used = int((_CGROUP / "memory.current").read_text()) - int(kinds["inactive_file"])
        available, total = min(available, max(0, limit - used)), min(total, limit)
    return available, total


PER_WORKER = 6
PER_INSTANCE = 1
PER_POOL = 16
"""How many descriptors the pool itself keeps, or needs briefly to start or inspect a process."""

_MOST_SOCKETS = 512
"""The most sockets for which `select` can wait in Python on Windows (its `FD_SETSIZE`)."""
_OTHER_SOCKETS = 8
"""How many sockets to add for the watchdog's doorbell and as a reserve."""


def require_descriptors(instances: int, per_worker: int) -> None:
    """Raise ConfigError if this process cannot open enough descriptors for the instances."""
    if WINDOWS:  # open sockets have no limit, but `select` waits for at most 512
        waited_for = -(-instances // per_worker) + instances + _OTHER_SOCKETS
        if waited_for > _MOST_SOCKETS:
            raise ConfigError(
                f"{instances} envs and spares need {waited_for} sockets in one wait, and Windows "
                f"allows {_MOST_SOCKETS}: take fewer envs and spares, or more processes"
            )
        return
    import resource  # noqa: PLC0415 - Windows lacks it

    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return
    problem = shortage(instances, per_worker, psutil.Process().num_fds(), limit)
    if problem is not None:
        raise ConfigError(problem)


def shortage(instances: int, per_worker: int, open_now: int, limit: int) -> str | None:
    """The error message if the limit is too low for this many instances, or None."""
    workers = -(-instances // per_worker)
    needed = open_now + PER_POOL + PER_WORKER * workers + PER_INSTANCE * instances
    if needed <= limit:
        return None
    return (
        f"{instances} envs and spares need about {needed} open files, and this process may have "
        f"{limit}: raise the limit (ulimit -n {needed}) or take fewer"
    )


_PREFIX = "sc2pool-run-"
_PROCESSES = "processes"
_pools_made = itertools.count()


class Trainer(NamedTuple):
    """The owner of a run's folder, parsed from the folder's name."""

    system: str
    """Identifies the machine and the pid namespace in which the pid is valid."""
    pid: int
    created_s: float
    pools_before: int

    @property
    def is_here(self) -> bool:
        """True if the pid is valid on this machine and in this pid namespace."""
        return self.system == _system()

    @property
    def is_alive(self) -> bool:
        return self.is_here and is_alive(self.pid, self.created_s)


class RunDir:
    """The folder of a living run; ConfigError if it cannot be made."""

    def __init__(self) -> None:
        self._workers_made = 0
        temp = tempfile.gettempdir()
        sweep(Path(temp))
        try:
            pid = os.getpid()
            created_s = created_at_s(pid)
            if created_s is None:  # no descriptor is free
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            name = f"{_PREFIX}{_system()}-{pid}-{created_s!r}-{next(_pools_made)}-"
            self.path = Path(tempfile.mkdtemp(prefix=name))  # `mkdtemp` sets the mode 0700
        except OSError as error:
            raise ConfigError(
                f"cannot make a folder for temporary files in {temp}: {error.strerror}"
            ) from error
        live_files.prepare(self.path)

    def instance_dir(self, number: int) -> Path:
        """Make a folder for one instance, for its game's temporary files; OSError if that fails."""
        return self._folder(str(number))

    def _folder(self, name: str) -> Path:
        path = self.path / name
        if not self.path.exists():  # a cleaner of temporary files has deleted the run's folder
            self.path.mkdir(mode=0o700, parents=True)
            live_files.prepare(self.path)
        path.mkdir(mode=0o700)
        return path

    def worker_dir(self) -> Path:
        """Make a folder for one worker, for its temporary files; OSError if that fails."""
        self._workers_made += 1
        return self._folder(f"worker-{self._workers_made}")

    def note_process(self, number: int, pid: int | None) -> None:
        """Record a process of this instance, so that `sweep` ends it if the trainer is killed."""
        created_s = None if pid is None else created_at_s(pid)
        if created_s is None:
            return
        # A full disk does no harm here, because workers and games also end by themselves.
        with suppress(OSError), (self.path / str(number) / _PROCESSES).open("a") as notes:
            notes.write(f"{pid} {created_s!r}\n")

    def close(self) -> None:
        """Delete the folder; may be called again."""
        shutil.rmtree(self.path, ignore_errors=True)


def trainer_of(run: Path) -> int | None:
    """The pid of the run's trainer; None if the trainer has exited or the run is another user's."""
    trainer = _named(run)
    return trainer.pid if trainer is not None and trainer.is_alive and _is_ours(run) else None


def living_runs(temp: Path) -> dict[Path, int]:
    """This user's living runs in a folder: the folder of each run, with its trainer's pid.

    The runs of one process are in the order in which the process made them.
    """
    named = {run: _named(run) for run in _runs_below(temp)}
    known = {run: trainer for run, trainer in named.items() if trainer is not None}
    pids = {run: trainer_of(run) for run in sorted(known, key=lambda run: known[run])}
    return {run: pid for run, pid in pids.items() if pid is not None}


def sweep(temp: Path) -> None:
    """End the processes and delete the folders of this user's runs whose trainer has exited."""
    for run in _runs_below(temp):
        trainer = _named(run)
        if trainer is None or not trainer.is_here or trainer.is_alive or not _is_ours(run):
            continue
        with suppress(OSError):  # another trainer may sweep the folder at the same time
            _end_orphans(run)
        shutil.rmtree(run, ignore_errors=True)


def _runs_below(temp: Path) -> list[Path]:
    with suppress(OSError):  # for example, no descriptor is free
        return list(temp.glob(f"{_PREFIX}*"))
    return []


def _named(run: Path) -> Trainer | None:
    """The owner in the folder's name; None if the name does not follow the pattern."""
    parts = run.name.removeprefix(_PREFIX).split("-")
    with suppress(ValueError):
        system, pid, created_s, pools_before, _ = parts
        return Trainer(system, int(pid), float(created_s), int(pools_before))
    return None


def _is_ours(run: Path) -> bool:
    with suppress(OSError):
        return run.is_dir() and not run.is_symlink() and is_own(run)
    return False


def _system() -> str:
    """Eight digits that identify this machine and its pid namespace, in which a pid is valid."""
    try:
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:  # not Linux
        namespace = ""
    return f"{zlib.crc32(f'{socket.gethostname()} {namespace}'.encode()):08x}"


def _end_orphans(run: Path) -> None:
    for notes in run.glob(f"*/{_PROCESSES}"):
        if notes.is_symlink() or notes.parent.is_symlink():
            continue
        for line in notes.read_text(errors="replace").splitlines():
            with suppress(ValueError):  # an incomplete line: the trainer was killed while it wrote
                pid, created_s = line.split()
                end_orphan(int(pid), float(created_s))
