"""Forks the trainer, and starts other trainers, whose new pools delete the files of dead runs."""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random

from chaos.adapters import Adapter
from chaos.arena import TYPED, Arena, May
from chaos.attacks import files
from chaos.attacks.attack import Attack, needs
from chaos.attacks.signals import kill_a_worker
from chaos.kills import STAGES, Trainee

CHILD_S = 30
"""How long a child may take for a call that the env should refuse."""
REFUSED, STEPPED, UNTYPED = 0, 1, 2
SAID = {STEPPED: "could step its parent's env", UNTYPED: "got an error that is not sc2pool's"}


def fork(
    arena: Arena, rng: Random, act: Callable[[Adapter], None], *, pending: bool = False
) -> None:
    """Let a forked child use the env, while the parent continues.

    Args:
        act: the child's call, which may raise one of sc2pool's errors.
        pending: whether to fork within a step, after the actions are sent.
    """
    del rng
    adapter = arena.adapter
    if adapter is None:
        return
    do = partial(_fork, arena, adapter, act)
    if pending:
        adapter.between = do
    else:
        do()


def _fork(arena: Arena, adapter: Adapter, act: Callable[[Adapter], None]) -> None:
    try:
        child = os.fork()
    except OSError:
        return  # fork fails at the limit of processes
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(CHILD_S)
        os._exit(_use(adapter, act))
    arena.helpers.add(child)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code != REFUSED:
        arena.report([f"a child that {act.__name__} {SAID.get(code, f'ended with {code}')}"])


def _use(adapter: Adapter, act: Callable[[Adapter], None]) -> int:
    try:
        act(adapter)
    except TYPED:
        return REFUSED
    except BaseException:
        return UNTYPED
    return STEPPED if act in (steps, receives) else REFUSED


def steps(adapter: Adapter) -> None:
    adapter.step()


def receives(adapter: Adapter) -> None:
    adapter.pool.recv()


def closes(adapter: Adapter) -> None:
    adapter.env.close()


def drops(adapter: Adapter) -> None:
    """Let the garbage collector delete the env."""
    adapter.env = adapter.pool = None
    gc.collect()


def exits(adapter: Adapter) -> None:
    """Run the exit handlers, as the interpreter does at its end."""
    del adapter
    atexit._run_exitfuncs()


def neighbour(arena: Arena, rng: Random, number: signal.Signals) -> None:
    """Start another trainer with the same folder for temporary files, and end it by a signal."""
    arena.beside(0.0, _neighbour, arena, rng.choice(STAGES), rng.random(), number)


def _neighbour(arena: Arena, stage: str, delay_s: float, number: signal.Signals) -> int:
    trainee = Trainee(arena.games.installation, 1)
    arena.helpers.add(trainee.process.pid)
    trainee.wait_for(stage)
    time.sleep(delay_s)
    _, left = trainee.end(number)
    arena.report(f"{line} lives after its trainer got {number.name} {stage}" for line in left)
    return trainee.process.pid


def cleaner(arena: Arena, rng: Random) -> None:
    """Delete a run's files, let a new pool clean up dead runs, and kill a worker."""
    arena.beside(0.0, _cleaner, arena, rng)


def _cleaner(arena: Arena, rng: Random) -> None:
    files.run_files(rng)
    _neighbour(arena, "playing", 0.0, signal.SIGKILL)
    kill_a_worker(arena, rng)


def bait(arena: Arena, rng: Random) -> None:
    """Put a link in place of a dead run's folder; a pool's clean-up must not follow it."""
    del rng
    arena.beside(0.0, _bait, arena)


def _bait(arena: Arena) -> None:
    temp = Path(tempfile.gettempdir())
    # The attack "read-only folder" may hide `temp` below a mount; this descriptor still reaches it.
    folder = os.open(temp, os.O_DIRECTORY)
    try:
        pid = _neighbour(arena, "playing", 0.0, signal.SIGKILL)
        for run in temp.glob(f"sc2pool-run-*-{pid}-*"):
            precious = temp / f"precious-{pid}"  # a copy, because a pool may delete the run
            with suppress(shutil.Error):  # a socket cannot be copied
                shutil.copytree(run, precious, symlinks=True)
            (precious / "file").touch()
            shutil.rmtree(run, ignore_errors=True)
            run.symlink_to(precious)
            _neighbour(arena, "playing", 0.0, signal.SIGKILL)
            if precious.is_dir() and not (precious / "file").exists():
                arena.report([f"a sweep followed the link {run.name}"])
            with suppress(FileNotFoundError):
                os.unlink(run.name, dir_fd=folder)
            shutil.rmtree(precious.name, ignore_errors=True, dir_fd=folder)
    finally:
        os.close(folder)


LOCAL = needs("local")

ATTACKS = {
    f"fork: {act.__name__}": Attack("fork", partial(fork, act=act), May.NOTHING, LOCAL)
    for act in (steps, closes, drops, exits)
} | {
    "fork: receives": Attack(
        "fork", partial(fork, act=receives, pending=True), May.NOTHING, needs("local", "pending")
    ),
    "neighbour, killed": Attack(
        "neighbour", partial(neighbour, number=signal.SIGKILL), May.NOTHING, LOCAL, 0.5
    ),
    "neighbour, terminated": Attack(
        "neighbour", partial(neighbour, number=signal.SIGTERM), May.NOTHING, LOCAL, 0.5
    ),
    "neighbour, after a cleaner": Attack("neighbour", cleaner, May.TRUNCATION, LOCAL, 0.5),
    "neighbour, a link as bait": Attack("neighbour", bait, May.NOTHING, LOCAL, 0.5),
}
