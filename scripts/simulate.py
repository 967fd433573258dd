"""Plays many schedules on a simulated machine, and shows the shortest ones that break the pool.

Usage:
    python scripts/simulate.py --replay "Schedule(events=(('reset',), ('die', 0), ('step',)))"
    python scripts/simulate.py --schedules 100000 --seed 1    # Draws and plays 100,000 schedules.

`tests/support/simulation` describes the simulation. The same seed gives the same schedules. For
each kind of violation one shortened schedule is shown, in the form that `--replay` and
`tests/scripts/test_simulation.py` take. The exit status is 1 if there was any violation.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
import time
import traceback
from functools import partial
from pathlib import Path

from sc2pool.processes.spawn import uninterrupted
from tests.support.simulation.play import play
from tests.support.simulation.schedule import Schedule, draw
from tests.support.simulation.shrink import failure, kind, shortest

SHOWN_EVERY_S = 30.0
GC_THRESHOLDS = (20_000, 20, 100)
"""With Python's defaults, garbage collection of a pool's many objects takes a third of the time."""


def main() -> int:
    """Play the schedules; shorten and show the failing ones; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--schedules", type=int, default=10_000, help="how many to play")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the number of the first one")
    parser.add_argument("--replay", metavar="SCHEDULE", help="play this one, and say what breaks")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        reports = Path(folder)
        if options.replay is not None:
            return uninterrupted(partial(replay, options.replay, reports))
        indices = range(options.first, options.first + options.schedules)
        return uninterrupted(partial(search, options.seed, indices, reports))


def replay(written: str, reports: Path) -> int:
    """Play one schedule; returns the exit status."""
    violation = play(eval(written, {"Schedule": Schedule}), reports)
    if violation is None:
        print("no rule is broken")
        return 0
    traceback.print_exception(violation)
    return 1


def search(seed: int, indices: range, reports: Path) -> int:
    """Play the schedules of a seed with these indices; returns True if one fails."""
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    found: dict[str, int] = {}
    began_s = shown_s = time.monotonic()
    began_cpu_s = time.process_time()
    for played, index in enumerate(indices, 1):
        schedule = draw(seed, index)
        violation = play(schedule, reports)
        if violation is not None:
            name = kind(violation)
            found[name] = found.get(name, 0) + 1
            if found[name] == 1:
                show(seed, index, schedule, reports)
        if time.monotonic() - shown_s > SHOWN_EVERY_S or played == len(indices):
            shown_s = time.monotonic()
            per_s = played / (shown_s - began_s), played / (time.process_time() - began_cpu_s)
            print(
                f"{played} schedules, {per_s[0]:.0f} per second ({per_s[1]:.0f} per second of CPU "
                f"time), {sum(found.values())} with a violation, of {len(found)} kinds",
                flush=True,
            )
    for name, times in sorted(found.items(), key=lambda one: -one[1]):
        print(f"{times:8d}  {name}")
    return bool(found)


def show(seed: int, index: int, schedule: Schedule, reports: Path) -> None:
    """Shorten a schedule that fails, and print it."""
    words = failure(shortest(schedule, reports), reports)
    print(f"\n{words}\n  from --seed {seed} --first {index}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
