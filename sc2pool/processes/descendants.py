"""The processes below one, found as cheaply as the system allows.

Rule: whoever ends or begins meanwhile may be missing or gone; those of a tree in which all are
stopped are told whole.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil


def descendants(process: psutil.Process) -> list[psutil.Process]:
    """All processes below this one."""
    if not _KERNEL_TELLS_CHILDREN:
        return process.children(recursive=True)
    # psutil would read the parent of every process on the machine: on a busy one that takes a
    # pause as long as a game loop, and costs the watchdog more than all else it does.
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
    """Pids of a process's children; a process or thread that ends meanwhile has none."""
    children: list[int] = []
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                children += map(int, (thread / "children").read_text().split())
    return children


_KERNEL_TELLS_CHILDREN: Final = Path(f"/proc/self/task/{os.getpid()}/children").exists()
