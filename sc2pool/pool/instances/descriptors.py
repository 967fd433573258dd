"""Whether this process may open as many files as a pool needs.

Each instance takes descriptors of the trainer's: a channel, a lifeline, two doorbells and what they
are waited for with, the queue pair's memory. Rule: a pool that would run out of them is told so
before its first process, not at whichever call happens to be the last.
"""

from __future__ import annotations

import sys

from sc2pool.errors import ConfigError
from sc2pool.pool.instances.watchdog import open_descriptors

if sys.platform != "win32":
    import resource

PER_INSTANCE = 7
PER_POOL = 16
"""Its own, and those it needs for a moment: a spawn, a look at a process."""


def require_descriptors(instances: int) -> None:
    """Check that so many instances can be held.

    Raises:
        ConfigError: the process's limit on open files is too low.
    """
    if sys.platform == "win32":
        return  # has no such limit
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return
    problem = shortage(instances, open_descriptors(), limit)
    if problem is not None:
        raise ConfigError(problem)


def shortage(instances: int, open_now: int, limit: int) -> str | None:
    """What to tell of a pool of so many instances where the limit does not suffice."""
    needed = open_now + PER_POOL + PER_INSTANCE * instances
    if needed <= limit:
        return None
    return (
        f"{instances} envs and spares need about {needed} open files, and this process may have "
        f"{limit}: raise the limit (ulimit -n {needed}) or take fewer"
    )
