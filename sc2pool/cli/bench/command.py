"""`sc2pool bench`: how fast is this task here, and with how many games.

    one pool after the other ─► rates, CPU time, memory ─► the best n ─► its resets ─► advice

Rules: progress goes to stderr, the result to stdout; Ctrl-C ends every process.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from sc2pool.cli.bench.advice import advice, best
from sc2pool.cli.bench.figures import Measured, Resets
from sc2pool.cli.bench.machine import machine_facts
from sc2pool.cli.bench.processes import GAME, TRAINER, WORKER
from sc2pool.cli.options import check_writable, find_game
from sc2pool.cli.stop import Stop
from sc2pool.errors import ConfigError
from sc2pool.tasks.registry import resolve


@dataclass(frozen=True)
class BenchOptions:
    """A checked run of the command."""

    task: str
    game: str
    ns: tuple[int, ...]
    spares: int
    """0 to leave the resets with spares out."""
    seconds: float
    """Of each pool, start and end not included."""
    json: Path | None = None
    png: Path | None = None

    def check(self) -> Path:
        """The installation to play; `ConfigError` for what cannot work, before any game runs."""
        installation = find_game(self.game, self.task)
        for option, path in (("--json", self.json), ("--png", self.png)):
            if path is not None:
                if path.is_dir():
                    raise ConfigError(f"{option} {path} is a folder, expected a file's name")
                check_writable(path.parent, option)
        if self.png is not None and importlib.util.find_spec("matplotlib") is None:
            raise ConfigError("--png needs matplotlib: pip install 'sc2pool[train]'")
        return installation


def run(options: BenchOptions) -> int:
    """Measure, and tell; the exit code."""
    installation = options.check()
    with Stop().handling():
        return _run(options, installation)


def _run(options: BenchOptions, game: Path) -> int:
    # SB3 and with it torch take seconds to import: only now, when all arguments are good.
    from sc2pool.cli.bench.own_game import measure_resets, measure_sizes  # noqa: PLC0415

    machine = machine_facts()
    free_bytes = psutil.virtual_memory().available
    task = resolve(options.task)

    measured, version = measure_sizes(task, game, options.ns, seconds=options.seconds, tell=_tell)
    chosen = best(measured)
    resets = [
        measure_resets(task, game, chosen.n, spares, seconds=options.seconds, tell=_tell)
        for spares in sorted({0, options.spares})
    ]
    said = advice(measured, resets, machine["cores"], free_bytes)

    print(f"{options.task} on game version {version}; {machine['cpu']}, {machine['cores']} cores")
    print("\n" + sizes_table(measured))
    print("\n" + resets_table(resets))
    print(f"\nA new game with its worker, to its first observation: {measured[0].started_s:.1f} s.")
    print("\n" + "\n".join(said))
    result = {
        "task": options.task,
        "game_version": version,
        "machine": machine,
        "free_bytes": free_bytes,
        "sizes": [one.as_dict() for one in measured],
        "resets": [one.as_dict() for one in resets],
        "advice": said,
    }
    _write(options, result, measured, f"{options.task}, game version {version}")
    return 0


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _write(
    options: BenchOptions, result: dict[str, Any], measured: Sequence[Measured], title: str
) -> None:
    if options.json is not None:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(result, indent=1) + "\n")
    if options.png is not None:
        from sc2pool.cli.bench.picture import draw_sizes  # noqa: PLC0415 - slow to import

        options.png.parent.mkdir(parents=True, exist_ok=True)
        draw_sizes(options.png, measured, result["machine"]["cores"], title)


def sizes_table(measured: Sequence[Measured]) -> str:
    """Rates, CPU time and memory by the number of games, in Markdown."""
    lines = [
        "| n | steps/s | min–max | times one game | CPU µs a step: trainer | worker | game "
        "| cores busy | MB a worker | a game |",
        "|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    one_game = measured[0].steps_per_s / measured[0].n
    for one in measured:
        rates = [round_.steps_per_s for round_ in one.rounds]
        cells = [
            f"{one.n}",
            f"{one.steps_per_s:,.0f}",
            f"{min(rates):,.0f}–{max(rates):,.0f}",
            f"{one.steps_per_s / one_game:.2f}",
            *(f"{one.cpu_us_per_step(role):,.0f}" for role in (TRAINER, WORKER, GAME)),
            f"{one.cores_busy:.2f}",
            f"{one.worker_bytes / 1e6:,.0f}",
            f"{one.game_bytes / 1e6:,.0f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def resets_table(resets: Sequence[Resets]) -> str:
    """Times of the rungs, and what they cost a batch, in Markdown."""
    lines = ["| resets | takes | a batch with one takes |", "|---|--:|--:|"]
    for one in resets:
        for rung, taken_ms in one.rung_ms.items():
            cost = one.cost_percent.get(rung)
            lines.append(
                f"| {rung}, n={one.n}, spares={one.spares} | {taken_ms:,.1f} ms | "
                f"{'' if cost is None else f'{cost:+.0f} %'} |"
            )
    return "\n".join(lines)
