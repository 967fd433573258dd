"""What this process may have of its machine: memory, and descriptors to hold and to pass on.

Each worker takes descriptors of the trainer's: a control socket, a lifeline, two doorbells, what
waits for them, and at most one that it shares (`doorbell`). Each of its instances takes one more: a
channel. Rule: a pool that cannot work raises before its first process, not at whichever call
happens to fail.
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
    """Memory that is free for new processes."""
    return available_and_total_bytes()[0]


def available_and_total_bytes() -> tuple[int, int]:
    """Memory that is free for new processes, and all there is, within the container's limit."""
    system = psutil.virtual_memory()
    available, total = system.available, system.total
    with suppress(OSError, ValueError, KeyError):  # no limit ("max"), or no such container
        limit = int((_CGROUP / "memory.max").read_text())
        kinds = dict(map(str.split, (_CGROUP / "memory.stat").read_text().splitlines()))
        # Files that are cached count as used, and give way to processes.
        used = int((_CGROUP / "memory.current").read_text()) - int(kinds["inactive_file"])
        available, total = min(available, max(0, limit - used)), min(total, limit)
    return available, total


PER_WORKER = 6
PER_INSTANCE = 1
PER_POOL = 16
"""Its own, and those it needs for a moment: a spawn, the inspection of a process."""

_MOST_SOCKETS = 512
"""`FD_SETSIZE` of Python on Windows."""
_OTHER_SOCKETS = 8
"""The watchdog's doorbell, and room for the system's own."""


def require_descriptors(instances: int, per_worker: int) -> None:
    """Check that this process can hold this many instances.

    Raises:
        ConfigError: the process's limit on open files is too low; on Windows, more sockets than
            one wait there takes.
    """
    if WINDOWS:  # it has no limit on them, but `select` waits for 512 sockets at most
        waited_for = -(-instances // per_worker) + instances + _OTHER_SOCKETS
        if waited_for > _MOST_SOCKETS:
            raise ConfigError(
                f"{instances} envs and spares need {waited_for} sockets to be waited for together, "
                f"and Windows allows {_MOST_SOCKETS}: take fewer, or more processes"
            )
        return
    import resource  # noqa: PLC0415 - which Windows lacks

    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return
    problem = shortage(instances, per_worker, psutil.Process().num_fds(), limit)
    if problem is not None:
        raise ConfigError(problem)


def shortage(instances: int, per_worker: int, open_now: int, limit: int) -> str | None:
    """The message for a limit too low for this many instances; None if it suffices."""
    workers = -(-instances // per_worker)
    needed = open_now + PER_POOL + PER_WORKER * workers + PER_INSTANCE * instances
    if needed <= limit:
        return None
    return (
        f"{instances} envs and spares need about {needed} open files, and this process may have "
        f"{limit}: raise the limit (ulimit -n {needed}) or take fewer"
    )
