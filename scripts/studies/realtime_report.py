"""What happens during an update in games that do not wait, for three ways to learn.

    python scripts/studies/realtime_report.py --out DIR        # table, JSON and PNG
    python scripts/studies/realtime_report.py --n 1 --after-stop catch-up

Plain PPO, the pause gate and AsyncPPO train on the same game, with updates of the same length; each
step reports the time from its observation to its action (`sc2pool.game.clock`). A tick is one game
loop; a lost tick belongs to a decision period that got no new action. A death is "unattended" if an
action was late by at least a whole period, otherwise "in play"; wounds may be older. "Playing only"
has no updates and shows the shortest gaps that are possible on the machine.
"""

from __future__ import annotations

import argparse
import logging
import sys
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[1]))  # where `examples` is

import torch
from lateness.learners import LEARNERS, PLAY
from lateness.measure import Row, measure
from lateness.worlds import World, standin, supertux, supertux_is_there

from sc2pool.cli.bench.machine import machine_facts
from sc2pool.cli.bench.output import markdown, tell, write_json
from sc2pool.cli.stop import Stop
from sc2standin.process.stops import AfterStop

WORLDS = ("stand-in", "supertux")
N_STEPS = 16
"""Of each env in a rollout: 2.9 s of StarCraft II."""
UPDATES = 5
"""Of each training."""


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--world", nargs="+", choices=WORLDS, default=list(WORLDS))
    parser.add_argument("--n", nargs="+", type=int, default=[1, 8], help="games (stand-in)")
    parser.add_argument("--update-s", nargs="+", type=float, default=[0.2, 2.0])
    names = [learner.name for learner in LEARNERS]
    parser.add_argument("--learner", nargs="+", choices=names, default=names)
    parser.add_argument(
        "--after-stop",
        type=AfterStop,
        choices=list(AfterStop),
        default=AfterStop.FREEZE,
        help="what the stand-in's games do after a pause",
    )
    parser.add_argument("--out", type=Path, help="folder for realtime.json and realtime.png")
    parser.add_argument("--quick", action="store_true", help="prove only that everything runs")
    return parser


def main() -> int:
    """Measure, print the table, and leave nothing running."""
    options = make_parser().parse_args()
    if options.quick:
        options.world, options.n, options.update_s = ["stand-in"], [1], [0.5]
    logging.getLogger("sc2pool").setLevel(logging.ERROR)  # it warns of the stand-in
    torch.set_num_threads(1)  # the games need the other cores
    rows: list[Row] = []
    interrupted = False
    try:
        with Stop().handling(), ExitStack() as worlds:
            for world, ns in _worlds(options, worlds):
                for n in ns:
                    rows += _measure_all(world, n, options)
    except KeyboardInterrupt:
        interrupted = True
        tell("interrupted; what was measured so far:")
    print(table(rows))
    if options.out and rows:
        machine = machine_facts()
        result = {"machine": machine, "rows": [row.as_dict() for row in rows]}
        write_json(options.out / "realtime.json", result)
        from lateness.picture import draw  # noqa: PLC0415 - heavy, and only needed here

        draw(options.out / "realtime.png", rows, machine)
    return 130 if interrupted else 0


def _worlds(options: argparse.Namespace, stack: ExitStack) -> list[tuple[World, list[int]]]:
    worlds: list[tuple[World, list[int]]] = []
    if "stand-in" in options.world:
        worlds.append((stack.enter_context(standin(options.after_stop)), options.n))
    if "supertux" in options.world:
        if supertux_is_there():
            worlds.append((stack.enter_context(supertux()), [1]))
        else:
            tell("SuperTux is left out: it is not installed here")
    return worlds


def _measure_all(world: World, n: int, options: argparse.Namespace) -> list[Row]:
    n_steps, updates = (6, 2) if options.quick else (N_STEPS, UPDATES)
    rows = []
    for learner in LEARNERS:
        if learner.name not in options.learner:
            continue
        # Playing only has no updates, so their length does not matter.
        for update_s in options.update_s[:1] if learner is PLAY else options.update_s:
            tell(f"{world.name}, {n} games, {learner.name}, updates of {update_s} s")
            rows.append(measure(world, learner, n, update_s, n_steps=n_steps, updates=updates))
    return rows


def table(rows: list[Row]) -> str:
    """The rows in Markdown."""
    head = [
        *("world", "games", "learner", "update s"),
        *("gap p50 ms", "p99", "max", "ticks lost/update"),
        *("loops while paused", "deaths unattended", "in play"),
    ]
    return markdown(head, map(_cells, rows), align="lrl".ljust(len(head), "r"))


def _cells(row: Row) -> list[str]:
    updated = f"{row.updated_s / row.updates:.2f}" if row.updates else "-"
    lost = "-" if row.lost_per_update is None else f"{row.lost_per_update / row.n:.1f}"
    paused = str(row.passed_paused) if row.paused_s else "-"
    return [
        *(row.world, str(row.n), row.learner, updated),
        *(f"{row.gap_ms[name]:.0f}" for name in ("p50", "p99", "max")),
        *(lost, paused, str(row.deaths_unattended), str(row.deaths_in_play)),
    ]


if __name__ == "__main__":
    sys.exit(main())
