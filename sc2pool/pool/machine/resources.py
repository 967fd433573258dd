"""The memory and the descriptors that this process may use.

Each worker takes descriptors of the trainer: a control socket, a lifeline, two doorbells, an epoll,
and at most one common doorbell (`doorbell`). Each of its instances takes one more, its channel.
Rule: if the resources do not suffice, the pool raises before it starts its first process.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

from sc2pool.errors import ConfigError
from sc2pool.platform import WINDOWS

_CGROUP: Final = Path("/sys/fs/cgroup")


def available_bytes() -> int:
    """Memory that is available to new processes."""
    return available_and_total_bytes()[0]


def available_and_total_bytes() -> tuple[int, int]:
    """Memory that is available to new processes, and the total, within the container's limit."""
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
"""The pool's own, and temporary ones: for a spawn, for the inspection of a process."""

_MOST_SOCKETS = 512
"""`FD_SETSIZE` of Python on Windows."""
_OTHER_SOCKETS = 8
"""The watchdog's doorbell, and a reserve."""


def require_descriptors(instances: int, per_worker: int) -> None:
    """Check that this process may open the descriptors for this many instances.

    Raises:
        ConfigError: the process's limit of open files is too low. On Windows, the pool needs more
            sockets than `select` accepts.
    """
    if WINDOWS:  # no limit of open sockets, but `select` waits for at most 512
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
    """The error message if the limit is too low for this many instances; None if it suffices."""
    workers = -(-instances // per_worker)
    needed = open_now + PER_POOL + PER_WORKER * workers + PER_INSTANCE * instances
    if needed <= limit:
        return None
    return (
        f"{instances} envs and spares need about {needed} open files, and this process may have "
        f"{limit}: raise the limit (ulimit -n {needed}) or take fewer"
    )
