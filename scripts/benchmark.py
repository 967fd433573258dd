"""How fast the pool is, against what else there is and against what the games allow.

    .venv/bin/python scripts/benchmark.py                        # everything, one table
    .venv/bin/python scripts/benchmark.py --case pool-only --n 8 --sizes 1 --rounds 5
    .venv/bin/python scripts/benchmark.py --out DIR              # and JSON, all rounds, and a PNG

What is compared is measured in turn in one process tree; each figure is the median of its rounds,
each ratio the median of the ratios round by round; warm-up is left out. CPU time of an env step is
given apart for trainer, workers and games. Every goal is told with its figure at the end.
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
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
from bench.goals import goals_as_dicts, goals_table
from bench.report import Row, table
from bench.settings import Settings
from bench.standin import install

from sc2pool.cli.bench.machine import machine_facts
from sc2pool.cli.stop import Stop

CASES = {
    "pool-only": ("pool_only:pool_only",),
    "waiting": ("pool_only:waiting",),
    "whole-stack": ("whole_stack:whole_stack",),
    "game-cost": ("game_cost:burning", "game_cost:sleeping", "game_cost:scaling"),
    "resets": ("resets:resets",),
    "memory": ("memory:memory",),
    "training": ("training:training",),
}
"""Where each case's parts are, in the package `bench`; imported when their turn comes."""

QUICK = {
    "rounds": 2,
    "seconds": 0.1,
    "ns": (1,),
    "sizes_kb": (1,),
    "maps": ("Canned",),
    "costs": ("sleep 5 ms",),
    "spares": (0, 1),
}
"""The shortest form, which only shows that everything runs."""

_PR_SET_CHILD_SUBREAPER = 36


def numbers(text: str) -> tuple[int, ...]:
    """`1,8,32`, for argparse."""
    return tuple(int(part) for part in text.split(","))


def names(text: str) -> tuple[str, ...]:
    """`a,b`, for argparse."""
    return tuple(text.split(","))


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--case", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--n", type=numbers, help="numbers of envs, such as 1,8,32")
    parser.add_argument("--sizes", type=numbers, help="observations in KB (pool-only)")
    parser.add_argument("--maps", type=names, help="(whole-stack)")
    parser.add_argument("--costs", type=names, help="such as 'nothing,burn 2 ms' (game-cost)")
    parser.add_argument("--spares", type=numbers, help="such as 0,1,2 (resets)")
    parser.add_argument("--sides", type=names, help="only those with this in their names")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of a round")
    parser.add_argument("--out", type=Path, help="folder for benchmark.json and benchmark.png")
    parser.add_argument("--quick", action="store_true", help="only that everything runs")
    return parser


def main() -> int:
    """Run the cases, print the table, and leave nothing running."""
    options = make_parser().parse_args()
    logging.getLogger("sc2pool").setLevel(logging.ERROR)  # which game is played stands in the head
    adopt_orphans()
    began_s = time.monotonic()

    def tell(line: str) -> None:
        print(f"[{time.monotonic() - began_s:6.1f} s] {line}", file=sys.stderr, flush=True)

    rows: list[Row] = []
    interrupted = False
    with (
        Stop().handling(),
        tempfile.TemporaryDirectory(
            prefix="sc2pool-benchmark-", ignore_cleanup_errors=True
        ) as folder,
    ):
        # What is killed leaves its temporary files in there, and they go with the folder.
        os.environ["TMPDIR"] = folder
        settings = Settings(
            installation=install(Path(folder) / "StarCraftII"),
            rounds=options.rounds,
            seconds=options.seconds,
            tell=tell,
            ns=options.n,
            sizes_kb=options.sizes,
            maps=options.maps,
            costs=options.costs,
            spares=options.spares,
            sides=options.sides,
        )
        if options.quick:
            settings = replace(settings, **QUICK)
        try:
            for case in options.case:
                for part in CASES[case]:
                    module, _, function = part.partition(":")
                    rows += getattr(importlib.import_module(f"bench.{module}"), function)(settings)
        except KeyboardInterrupt:
            interrupted = True
            tell("interrupted; what was measured so far:")
        finally:
            end_all_below()
    print(table(rows))
    if goals := goals_table(rows):
        print(f"\n{goals}")
    if options.out and rows:
        write(options.out, rows)
    return 130 if interrupted else 0


def write(folder: Path, rows: list[Row]) -> None:
    """All that was measured."""
    folder.mkdir(parents=True, exist_ok=True)
    result = {
        "machine": machine_facts(),
        "rows": [row.as_dict() for row in rows],
        "goals": goals_as_dicts(rows),
    }
    (folder / "benchmark.json").write_text(json.dumps(result, indent=1))
    from bench.picture import draw  # noqa: PLC0415 - heavy, and only needed here

    draw(folder / "benchmark.png", rows, result["machine"])


def adopt_orphans() -> None:
    """Make what our children leave behind our own, so that it can be ended."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_all_below() -> None:
    """The baselines end their games only when asked nicely; nothing of theirs may stay."""
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            # This one ends with us, and takes away what the others have left in /dev/shm.
            if "resource_tracker" not in " ".join(process.cmdline()):
                process.kill()


if __name__ == "__main__":
    sys.exit(main())
