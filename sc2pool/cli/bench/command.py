"""`sc2pool bench`: measures a task's rate on this machine for several numbers of games.

    The command measures several pools, then the resets of the best pool, and prints advice.

Rules: progress is printed to stderr, and the result to stdout. Ctrl-C ends every process.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from sc2pool.cli.arguments import check_file, find_game, task_of
from sc2pool.cli.bench.measuring import Measured, Resets, advice, best, machine_facts, markdown
from sc2pool.cli.stop import Stop
from sc2pool.integration import DEFAULT_TASK, resolve_task
from sc2pool.utilities import available_bytes, require


def run(args: argparse.Namespace) -> int:
    task = task_of(args) or DEFAULT_TASK
    game = find_game(args.game, task, says=False)  # the results will say which game is played
    if args.png is not None:
        check_file(args.png, "--png", [".png"])
        require("--png", "matplotlib")
    with Stop().handling():
        return _run(args, task, game)


def _run(args: argparse.Namespace, task: str, game: Path) -> int:
    # This import comes after the checks of the arguments, because SB3 and torch take seconds.
    from sc2pool.cli.bench.own_game import measure_resets, measure_sizes  # noqa: PLC0415

    machine = machine_facts()
    import torch  # noqa: PLC0415 - after SB3: if both are missing, the error must name SB3

    torch.set_num_threads(1)  # compute in one thread, as `train` does
    free_bytes = available_bytes()
    definition = resolve_task(task)

    measured, version = measure_sizes(definition, game, args.n, seconds=args.seconds)
    chosen = best(measured)
    resets = [
        measure_resets(definition, game, chosen.n, spares, seconds=args.seconds)
        for spares in sorted({0, args.spares})
    ]
    said = advice(measured, resets, machine["cores"], free_bytes)

    if args.json:
        result = {
            "task": task,
            "game_version": version,
            "machine": machine,
            "free_bytes": free_bytes,
            "sizes": [one.as_dict() for one in measured],
            "resets": [asdict(one) for one in resets],
            "advice": said,
        }
        print(json.dumps(result, indent=2))
    else:
        print(f"{task} on game version {version}; {machine['cpu']}, {machine['cores']} cores")
        print(f"\n{as_text(measured, resets)}\n")
        print("\n".join(said))
    if args.png is not None:
        from sc2pool.cli.drawing import draw_sizes  # noqa: PLC0415 - slow to import

        draw_sizes(args.png, measured, machine["cores"], f"{task}, game version {version}")
    return 0


def as_text(measured: Sequence[Measured], resets: Sequence[Resets]) -> str:
    started = (
        f"A new game with its worker, to its first observation: {measured[0].started_s:.1f} s."
    )
    return "\n\n".join((sizes_table(measured), resets_table(resets), started))


def sizes_table(measured: Sequence[Measured]) -> str:
    """A table with rates, CPU time and memory for each number of games."""
    rows = [
        (
            f"{one.n}",
            f"{one.steps_per_s:,.0f}",
            f"{min(one.rounds.rates):,.0f}–{max(one.rounds.rates):,.0f}",
            f"{one.times(measured[0]):.2f}",
            *(f"{cpu_us:,.0f}" for cpu_us in one.rounds.cpu_us_by_role().values()),
            f"{one.cores_busy:.2f}",
            f"{one.worker_bytes / 1e6:,.0f}",
            f"{one.game_bytes / 1e6:,.0f}",
        )
        for one in measured
    ]
    cpu = "CPU µs a step: trainer | worker | game"
    head = ("n", "steps/s", "min–max", "times one game", cpu, "cores busy", "MB a worker | a game")
    return markdown(head, rows, align="r" * 10)


def resets_table(resets: Sequence[Resets]) -> str:
    """A table with the time of each kind of reset, and by how much resets lengthen a batch."""
    rows = [
        (
            f"{kind}, n={one.n}, spares={one.spares}",
            f"{taken_ms:,.1f} ms",
            f"{one.cost_percent[kind]:+.0f} %" if kind in one.cost_percent else "",
        )
        for one in resets
        for kind, taken_ms in one.reset_ms.items()
    ]
    return markdown(("resets", "takes", "a batch with one takes"), rows, align="lrr")
