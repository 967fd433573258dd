"""The program that plays the rounds; it reads orders as JSON from its standard input.

The script `chaos.py` starts this program with the argument ROOT, an empty folder for this run
alone. The program prints a line of JSON for each event. If the process ends without the line
"ended", the last round was stuck, or crashed the process.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import psutil

sys.path.insert(0, str(Path(__file__).parents[1]))

from chaos.arena import Arena, May
from chaos.attacks import ATTACKS
from chaos.attacks.clock import CLOCK
from chaos.attacks.interrupts import in_call, in_computation
from chaos.attacks.resources import CGROUP, DISK
from chaos.play import all_exceptions, attacks_by_adapter, play
from chaos.rounds import MOST_SPARES, Round, draw
from sc2standin.install import install
from tests.support.audit.faulty import Faulty

if TYPE_CHECKING:
    from chaos.nodes import Cluster

DISK_BYTES = 64_000_000
INODES = 4000
STEPS_BETWEEN = 3
"""The number of steps between two interrupts of one session."""
SHOWN_EVERY_S = 30.0
CALLS = ("step", "step", "step", "reset", "pause", "method")
"""The calls to interrupt; a call that is named three times is drawn three times as often."""


def say(event: str, **what: Any) -> None:
    """Print a line of JSON."""
    print(json.dumps({"event": event, **what}, default=str), flush=True)


def prepare(root: Path, temper: str) -> tuple[Faulty, Path, set[str]]:
    """Prepare the games, the folder of fault reports, and the list of requirements that are met."""
    available = set()
    disk = root / "disk"
    disk.mkdir()
    if DISK in os.environ:
        options = f"size={DISK_BYTES},nr_inodes={INODES}"
        mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(disk)]
        if subprocess.run(mount, capture_output=True, check=False).returncode == 0:
            available.add("mount")
    if CGROUP in os.environ:
        available.add("pids")
    if CLOCK in os.environ:
        available.add("clock")
    temp, reports = disk / "temp", disk / "faults"
    temp.mkdir()
    reports.mkdir()
    os.environ["TMPDIR"] = tempfile.tempdir = str(temp)
    install(root / "standin", ["--temper", temper] if temper else [])
    return Faulty.install(root / "standin", root), reports, available


def sample() -> dict[str, int]:
    """The figures of this process that must not grow from round to round."""
    gc.collect()
    process = psutil.Process()
    return {
        "rss_bytes": process.memory_info().rss,
        "descriptors": process.num_fds(),
        "threads": threading.active_count(),
    }


def play_rounds(
    orders: dict[str, Any],
    games: Faulty,
    reports: Path,
    available: set[str],
    cluster: Cluster | None,
) -> None:
    """Play the given rounds, or rounds drawn from the seed, up to a limit of time or of rounds."""
    weights = {name: attack.weight for name, attack in ATTACKS.items()}
    adapters = attacks_by_adapter(available, orders.get("only", ""))
    end_s = time.monotonic() + 60.0 * orders["minutes"]
    given = [Round.of(one) for one in orders.get("given", [])]
    number = orders["first"]
    last = orders["first"] + (len(given) or orders["rounds"])
    while number < last and time.monotonic() < end_s:
        if given:
            one = given[number - orders["first"]]
        else:
            one = draw(
                orders["seed"],
                number,
                orders["n"],
                adapters=adapters,
                weights=weights,
                mean_strikes=orders["strikes"],
            )
        say("begins", number=number, round=one.as_dict())
        say("played", number=number, result=play(one, games, reports, cluster), sample=sample())
        number += 1


def interrupt_often(
    *, count: int, adapter: str, n: int, spares: int, seed: int, games: Faulty, reports: Path
) -> dict[str, Any]:
    """Interrupt one session at this many random instants."""
    arena = Arena(adapter, n, spares, games, reports)
    arena.may = May.TRUNCATION
    rng = Random(seed)
    shown = 0
    began_s = time.monotonic()
    with all_exceptions(arena.problems):
        try:
            arena.open()
            while arena.counts["interrupts"] < count:
                if rng.random() < 0.5:
                    in_call(arena, rng, rng.choice(CALLS))
                else:
                    in_computation(arena, rng)
                for _ in range(STEPS_BETWEEN):
                    arena.step()
                for problem in arena.problems[shown:]:
                    print(f"PROBLEM after {arena.counts['interrupts']}: {problem}", flush=True)
                shown = len(arena.problems)
                if time.monotonic() > began_s + SHOWN_EVERY_S:
                    began_s += SHOWN_EVERY_S
                    print(dict(arena.counts), flush=True)
        finally:
            arena.close()
    return {
        "transitions": arena.transitions,
        "counts": dict(arena.counts),
        "problems": arena.problems,
    }


def main(root: str) -> None:
    logging.disable(logging.CRITICAL)  # the faults are intended, and are counted without logs
    orders = json.loads(sys.stdin.read())
    games, reports, available = prepare(Path(root), orders.get("temper", ""))
    cluster = None
    if orders.get("ray"):
        from chaos.nodes import Cluster  # noqa: PLC0415 - only if Ray is needed

        cluster = Cluster(Path(root), games.installation, orders["n"] + 2 * MOST_SPARES)
        available.add("nodes")
    missing = {"mount", "pids", "clock"} - available
    skipped = sorted(name for name, attack in ATTACKS.items() if attack.needs & missing)
    say("prepared", available=sorted(available), skipped=skipped)
    if "interrupts" in orders:
        result = interrupt_often(**orders["interrupts"], games=games, reports=reports)
        say("interrupted", result=result, sample=sample())
    else:
        play_rounds(orders, games, reports, available, cluster)
    if cluster is not None:
        cluster.shutdown()
    say("ended")


if __name__ == "__main__":
    main(*sys.argv[1:])
