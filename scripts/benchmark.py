"""Measures how fast the pool is, compared with its peers and with the limit that the games set.

Usage:
    .venv/bin/python scripts/benchmark.py                # Measures everything.
    .venv/bin/python scripts/benchmark.py --case pool-only --n 8 --sizes 1 --rounds 5
    .venv/bin/python scripts/benchmark.py --out DIR      # Also writes all rounds as JSON.
    .venv/bin/python scripts/benchmark.py --against HEAD~1 --case whole-stack --maps Canned
    .venv/bin/python scripts/benchmark.py --against HEAD~1 --equal  # Compares the commits' bytes.

A *side* is the pool or a peer. All sides are measured in turn in one process tree. Each figure is
the median of its rounds, without the warm-up. Each ratio is the median of the ratios of single
rounds, with an interval of 90 % certainty. Rounds are repeated, at most `--most-rounds` times,
until the interval of each ratio to the first side is at most a tenth of the ratio.

`--against` adds the pool of an earlier commit, on that commit's stand-in. The table shows the CPU
time of an env step for trainer, workers and games. Below the table come the goals with their
figures. If other programs used the machine, a line below the table says so.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import json
import logging
import os
import sys
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
from bench.equality import all_runs, differing
from bench.report import Row, goals_table, noise, table
from bench.revision import NoSuchRevisionError, install_revision
from bench.settings import Settings
from bench.standin import install

from sc2pool.cli.bench.measuring import machine_facts, tell
from sc2pool.cli.stop import Stop
from sc2pool.processes.tree import kill_tree

CASES = ("pool-only", "whole-stack", "game-cost", "resets", "recovery", "memory", "training")
"""A case is a function in a module of `bench.cases`; both have the case's name with underscores."""

QUICK = {
    "rounds": 2,
    "most_rounds": 2,
    "seconds": 0.1,
    "ns": (1,),
    "sizes_kb": (1,),
    "maps": ("Canned",),
    "costs": ("sleep 5 ms",),
    "spares": (0, 1),
}
"""The options of the shortest run, which only proves that everything works."""

_PR_SET_CHILD_SUBREAPER = 36


def numbers(text: str) -> tuple[int, ...]:
    """The numbers in a text such as `1,8,32`."""
    return tuple(int(part) for part in text.split(","))


def names(text: str) -> tuple[str, ...]:
    """The names in a text such as `a,b`."""
    return tuple(text.split(","))


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--case", nargs="+", choices=CASES, default=CASES)
    parser.add_argument("--n", type=numbers, help="numbers of envs, such as 1,8,32")
    parser.add_argument("--sizes", type=numbers, help="observations in KB (pool-only)")
    parser.add_argument("--maps", type=names, help="(whole-stack)")
    parser.add_argument("--sides", type=names, help="parts of the names of the sides to measure")
    parser.add_argument("--rounds", type=int, default=5, help="at least so many")
    parser.add_argument("--most-rounds", type=int, default=15, help="while figures are uncertain")
    parser.add_argument("--against", metavar="COMMIT", help="compare with its pool, too")
    parser.add_argument(
        "--equal",
        nargs="*",
        metavar="TASK",
        help="measure nothing: compare seeded runs of these tasks, or all, with those of --against",
    )
    parser.add_argument("--seconds", type=float, default=2.0, help="of a round")
    parser.add_argument("--out", type=Path, help="folder for benchmark.json")
    parser.add_argument("--quick", action="store_true", help="prove only that everything runs")
    return parser


def main() -> int:
    """Run the cases, print the table, and leave nothing running."""
    options = make_parser().parse_args()
    logging.getLogger("sc2pool").setLevel(logging.ERROR)  # hides a warning about the stand-in
    adopt_orphans()
    rows: list[Row] = []
    interrupted = False
    with (
        Stop().handling(),
        tempfile.TemporaryDirectory(
            prefix="sc2pool-benchmark-", ignore_cleanup_errors=True
        ) as folder,
    ):
        # Temporary files of killed processes are removed with the folder.
        os.environ["TMPDIR"] = folder
        revision = None if options.against is None else Path(folder) / "before"
        if revision is not None:
            try:
                install_revision(options.against, revision)
            except NoSuchRevisionError as error:
                sys.exit(f"benchmark: {error}")
        if options.equal is not None:
            if revision is None:
                sys.exit("benchmark: --equal needs --against COMMIT")
            return equal(revision, options.equal)
        settings = Settings(
            installation=install(Path(folder) / "StarCraftII"),
            rounds=options.rounds,
            most_rounds=options.most_rounds,
            revision=revision,
            seconds=options.seconds,
            ns=options.n,
            sizes_kb=options.sizes,
            maps=options.maps,
            sides=options.sides,
        )
        if options.quick:
            settings = replace(settings, **QUICK)
        try:
            for case in options.case:
                name = case.replace("-", "_")
                module = importlib.import_module(f"bench.cases.{name}")
                rows += getattr(module, name)(settings)
        except KeyboardInterrupt:
            interrupted = True
            tell("interrupted; what was measured so far:")
        finally:
            end_all_below()
    print(table(rows))
    if goals := goals_table(rows):
        print(f"\n{goals}")
    if said := noise(rows):
        print(f"\n{said}")
    if options.out and rows:
        write(options.out, rows)
    return 130 if interrupted else 0


def equal(revision: Path, tasks: list[str]) -> int:
    """Print for each seeded run whether both commits play it equally; returns 1 if one differs."""
    runs = [run for run in all_runs() if not tasks or run[1] in tasks]
    found = 0
    for (play, task), difference in differing(revision, runs):
        found += bool(difference)
        tell(f"{play:18} {task:32} {difference or 'equal'}")
    print(f"{len(runs)} runs, {found} differ")
    return int(found > 0)


def write(folder: Path, rows: list[Row]) -> None:
    """Write all measurements as JSON."""
    result = {"machine": machine_facts(), "rows": [row.as_dict() for row in rows]}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "benchmark.json").write_text(json.dumps(result, indent=1) + "\n")


def adopt_orphans() -> None:
    """Become the parent of processes that child processes leave behind, to be able to end them."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_all_below() -> None:
    """End all child processes, because baselines end their games only in an orderly close."""
    for process in psutil.Process().children():
        with suppress(psutil.Error):
            # The resource tracker must live, because it removes other processes' files in /dev/shm.
            # The resource tracker ends with this process.
            if "resource_tracker" not in " ".join(process.cmdline()):
                kill_tree(process)


if __name__ == "__main__":
    sys.exit(main())
