"""Make the folder for temporary files read-only, or `noexec`, for a while.

A worker is killed during this time, so that its replacement finds the changed folder. A file system
with open files cannot become read-only, so an empty read-only one is mounted over it.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from functools import partial
from pathlib import Path
from random import Random

from chaos.arena import Arena, May
from chaos.attacks.attack import Attack, needs, soon
from chaos.attacks.signals import kill_a_worker

LONGEST_S = 2.0


def change(arena: Arena, rng: Random, before: str, after: str) -> None:
    """Run the command `before` on the folder's mount, and later `after`, which reverts it."""
    arena.beside(soon(rng), _change, arena, before, after, LONGEST_S * rng.random())
    kill_a_worker(arena, rng)


def _change(arena: Arena, before: str, after: str, hold_s: float) -> None:
    if not _run(arena, before):
        return
    time.sleep(hold_s)
    while not _run(arena, after):  # processes or descriptors may have run out as well
        time.sleep(0.05)


def _run(arena: Arena, command: str) -> bool:
    temp = Path(tempfile.gettempdir())  # in the root of its file system
    try:
        helper = subprocess.Popen(command.format(temp=temp, disk=temp.parent).split())
    except OSError:
        return False
    arena.helpers.add(helper.pid)
    return helper.wait() == 0


ATTACKS = {
    "read-only folder": Attack(
        "mount",
        partial(change, before="mount -t tmpfs -o ro none {temp}", after="umount -l {temp}"),
        May.ENDED,
        needs("local", "mount"),
    ),
    "folder that executes nothing": Attack(
        "mount",
        partial(
            change,
            before="mount -o remount,noexec {disk}",
            after="mount -o remount,exec {disk}",
        ),
        May.TRUNCATION,
        needs("local", "mount"),
    ),
}
