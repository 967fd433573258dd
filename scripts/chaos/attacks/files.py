"""Delete folders and locks, as a cleaner of temporary files or a user may do."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from functools import partial
from pathlib import Path
from random import Random

from chaos.arena import May
from chaos.attacks.attack import Attack, needs
from chaos.attacks.signals import missed_by_a_worker

LONG_AGO_S = 100_000.0


def a_run(rng: Random) -> Path | None:
    """The folder of a run of this trainer or of another one, or None."""
    runs = sorted(Path(tempfile.gettempdir()).glob("sc2pool-run-*"))
    return rng.choice(runs) if runs else None


def run_folder(rng: Random) -> None:
    """Delete the folder of a run with its contents."""
    if (run := a_run(rng)) is not None:
        shutil.rmtree(run, ignore_errors=True)


def run_files(rng: Random) -> None:
    """Delete a run's files, and make its folder look old, so that a sweep takes it for dead."""
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
    """Delete all temporary files, and for a moment their folder."""
    temp = Path(tempfile.gettempdir())
    for path in temp.iterdir():
        if path.is_symlink():
            path.unlink()
        shutil.rmtree(path, ignore_errors=True)
    temp.rmdir()
    time.sleep(rng.random())
    temp.mkdir(exist_ok=True)


ATTACKS = {
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
