"""The memory that this process and what it starts may have: the machine's, or its container's."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

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
