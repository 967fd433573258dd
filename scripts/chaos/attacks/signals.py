"""Sends signals to games, to workers, to whole process trees, and to the trainer itself."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from random import Random

import psutil

from chaos.arena import Arena, May
from chaos.attacks.attack import Attack, needs, soon

NAMES = ("KILL", "STOP", "STOP+CONT", "TERM", "SEGV", "ABRT")
NEEDS = {"game": ("games",), "guest": ("guests",)}
"""A dict from signals' targets to attacks' requirements. In a match, `game` is the host's game."""
LONGEST_STOP_S = 6.0
"""The longest normal stop in seconds; it is longer than the time limit of a step."""
LONG_STOP_S = 60.0
STORM = 50


def strike(arena: Arena, rng: Random, target: str, name: str) -> None:
    """Send a signal, after a short delay, to a game, the worker or the tree of an instance."""
    which, delay_s, stopped_s = rng.random(), soon(rng), rng.uniform(0.0, 1.5)
    arena.beside(delay_s, _strike, arena, which, target, name.split("+"), stopped_s)


def _strike(arena: Arena, which: float, target: str, names: list[str], stopped_s: float) -> None:
    pid = arena.pid(which, "worker" if target == "tree" else target)
    if pid is None:
        return
    pids = [pid]
    if target == "tree":
        pids += [child.pid for child in psutil.Process(pid).children(recursive=True)]
    send([psutil.Process(one) for one in pids], names, stopped_s)


def send(processes: list[psutil.Process], names: list[str], stopped_s: float) -> None:
    """Send the signals to the processes, one after the other; wait `stopped_s` before a CONT."""
    for name in names:
        if name == "CONT":
            time.sleep(stopped_s)
        for process in processes:
            process.send_signal(signal.Signals[f"SIG{name}"])


def kill_a_worker(arena: Arena, rng: Random) -> None:
    """Kill a worker, for attacks that harm only the worker's replacement."""
    strike(arena, rng, "worker", "KILL")


def missed_by_a_worker(arena: Arena, rng: Random, act: Callable[[Random], None]) -> None:
    """Call `act` after a short delay, and kill a worker; `act` may harm the new worker."""
    arena.beside(soon(rng), act, Random(rng.random()))
    kill_a_worker(arena, rng)


def stop_trainer(arena: Arena, rng: Random, lengths_s: Sequence[float]) -> None:
    """Stop and continue the trainer from another process, as Ctrl-Z and `fg` do."""
    stopped_s = rng.choice(lengths_s) * rng.random()
    script = f"sleep {soon(rng):f}; kill -STOP $0; sleep {stopped_s:f}; kill -CONT $0"
    with suppress(OSError):  # another attack may have used up all processes or descriptors
        helper = subprocess.Popen(["sh", "-c", script, str(os.getpid())])
        arena.helpers.add(helper.pid)
        arena.beside(0.0, helper.wait)


def storm(arena: Arena, rng: Random) -> None:
    """Send the trainer signals that interrupt system calls and have no other effect."""
    signal.signal(signal.SIGUSR1, lambda *_: None)
    arena.beside(0.0, _storm, rng.uniform(0.0, 0.01))


def _storm(every_s: float) -> None:
    for _ in range(STORM):
        os.kill(os.getpid(), signal.SIGUSR1)
        time.sleep(every_s)


ATTACKS = {
    f"{target} {name}": Attack(
        "signal",
        partial(strike, target=target, name=name),
        needs=needs(*NEEDS.get(target, ())),
    )
    for target in ("game", "guest", "worker", "tree")
    for name in NAMES
} | {
    "trainer STOP+CONT": Attack(
        "signal", partial(stop_trainer, lengths_s=(0.05, 0.5, LONGEST_STOP_S)), May.NOTHING
    ),
    "trainer STOP+CONT, long": Attack(
        "signal", partial(stop_trainer, lengths_s=(LONG_STOP_S,)), May.NOTHING, weight=0.1
    ),
    "trainer USR1": Attack("signal", storm, May.NOTHING),
}
