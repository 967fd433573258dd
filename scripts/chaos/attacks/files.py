"""Deletes folders and locks; makes the temporary folder read-only, or not executable, for a while.

In practice, a user or a program that cleans temporary folders may delete folders and locks. While
the temporary folder is read-only or not executable, a worker is killed, so that its replacement
starts under this condition. A file system in use cannot become read-only, so an empty read-only
file system is mounted over it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from functools import partial
from pathlib import Path
from random import Random

from chaos.arena import Arena, May
from chaos.attacks.attack import Attack, needs, soon
from chaos.attacks.signals import kill_a_worker, missed_by_a_worker

LONG_AGO_S = 100_000.0


def a_run(rng: Random) -> Path | None:
    """The folder of a run of this or another trainer, drawn at random; None if there is no run."""
    runs = sorted(Path(tempfile.gettempdir()).glob("sc2pool-run-*"))
    return rng.choice(runs) if runs else None


def run_folder(rng: Random) -> None:
    """Delete the folder of a run with its contents."""
    if (run := a_run(rng)) is not None:
        shutil.rmtree(run, ignore_errors=True)


def run_files(rng: Random) -> None:
    """Delete a run's files, and make its folder look old, so that a clean-up deletes it, too."""
    if (run := a_run(rng)) is None:
        return
    for path in run.iterdir():
        if not path.is_dir():
            path.unlink(missing_ok=True)
    long_ago_s = time.time() - LONG_AGO_S
    os.utime(run, (long_ago_s, long_ago_s))


def instance_folder(rng: Random) -> None:
    """Delete the folder of an instance."""
    if (run := a_run(rng)) is not None:
        folders = sorted(path for path in run.iterdir() if path.is_dir())
        if folders:
            shutil.rmtree(rng.choice(folders), ignore_errors=True)


def port_locks(rng: Random) -> None:
    """Delete the lock files of this run's ports."""
    del rng
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        target = str(link.readlink())
        if (
            "/sc2pool-ports" in target
            and f"TMPDIR={tempfile.gettempdir()}".encode()
            in (link.parents[1] / "environ").read_bytes()
        ):
            Path(target).unlink(missing_ok=True)


def temp_folder(rng: Random) -> None:
    """Delete all temporary files and their folder, and make the folder again after a moment."""
    temp = Path(tempfile.gettempdir())
    for path in temp.iterdir():
        if path.is_symlink():
            path.unlink()
        shutil.rmtree(path, ignore_errors=True)
    temp.rmdir()
    time.sleep(rng.random())
    temp.mkdir(exist_ok=True)


DELETIONS = {
    f"deletes: {what.__name__}": Attack(
        "files", partial(missed_by_a_worker, act=what), may, needs("local")
    )
    for what, may in (
        (run_folder, May.TRUNCATION),
        (run_files, May.TRUNCATION),
        (instance_folder, May.TRUNCATION),
        (port_locks, May.TRUNCATION),
        (temp_folder, May.ENDED),
    )
}


LONGEST_S = 2.0


def change(arena: Arena, rng: Random, before: str, after: str) -> None:
    """Change the mount of the temporary folder by command `before`; restore it by `after`."""
    arena.beside(soon(rng), _change, arena, before, after, LONGEST_S * rng.random())
    kill_a_worker(arena, rng)


def _change(arena: Arena, before: str, after: str, hold_s: float) -> None:
    if not _run(arena, before):
        return
    time.sleep(hold_s)
    while not _run(arena, after):  # the command fails if processes or descriptors have run out
        time.sleep(0.05)


def _run(arena: Arena, command: str) -> bool:
    temp = Path(tempfile.gettempdir())  # this folder is directly below the root of its file system
    try:
        helper = subprocess.Popen(command.format(temp=temp, disk=temp.parent).split())
    except OSError:
        return False
    arena.helpers.add(helper.pid)
    return helper.wait() == 0


MOUNTS = {
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

ATTACKS = DELETIONS | MOUNTS
