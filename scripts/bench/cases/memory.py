"""Case *memory*: the memory of workers and trainer, with the pool and with SB3's `SubprocVecEnv`.

Each side (compared program) has its own trainer, which imports only the modules that it needs. The
trainer is `python -m bench.cases.memory SIDE N ROOT`; it prints its processes' memory as JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing
from functools import partial
from statistics import median
from typing import Any

from bench import child
from bench.report import Row, value_row
from bench.settings import Settings
from bench.sides import (
    POOL,
    POOL_BOT,
    POOL_ENV,
    POOL_TASK,
    RECIPE,
    SB3,
    SB3_ENV,
    empty_side,
    game_side,
)
from sc2pool.cli.bench.measuring import GAME, TRAINER, WORKER, memory_by_role, tell

CASE = "memory"
N = 8
STEPS = 50
MAP = "MoveToBeacon"
OBSERVATION_BYTES = 1024
PER_ENV = {RECIPE: 2}
"""The number of processes per env besides the game; sides that are not listed have one process."""
LIMIT_S = 300.0


def memory(settings: Settings) -> list[Row]:
    """Measure USS and PSS of each role (trainer, worker, game)."""
    rows = []
    for n in settings.ns or (N,):
        found = {
            side: probe(settings, side, n)
            for side in (SB3_ENV, POOL_ENV, POOL_TASK, POOL_BOT, RECIPE)
            if settings.wants(side)
        }
        for role in (WORKER, TRAINER, GAME):
            for measure in ("uss_bytes", "pss_bytes"):
                rows += role_rows(found, n, role, measure)
    return rows


def role_rows(found: dict[str, Any], n: int, role: str, measure: str) -> list[Row]:
    """The memory of one role per env, by one measure (USS or PSS), in MB."""
    by_side = {}
    for side, by_role in found.items():
        per_env = PER_ENV.get(side, 1) if role == WORKER else 1
        expected = 1 if role == TRAINER else n * per_env
        # Take the largest processes, because multiprocessing also has small helper processes.
        sizes = sorted((one[measure] for one in by_role[role]), reverse=True)[:expected]
        if sizes:
            envs = len(sizes) // per_env
            by_side[side] = [sum(sizes[env::envs]) / 1e6 for env in range(envs)]
    base = by_side.get(SB3_ENV)
    what = f"{role}, {measure.partition('_')[0].upper()}"
    return [
        value_row(
            CASE,
            f"n={n}, {what}",
            side,
            sizes,
            unit="MB",
            ratios={SB3_ENV: median(sizes) / median(base)} if base and side != SB3_ENV else {},
        )
        for side, sizes in by_side.items()
    ]


def probe(settings: Settings, side: str, n: int) -> dict[str, Any]:
    """Run one side under its own trainer; returns the memory of each process by role."""
    tell(f"{CASE}: {side}")
    with child.start(
        "bench.cases.memory", side, n, settings.root, stdout=subprocess.PIPE
    ) as trainer:
        try:
            printed, _ = trainer.communicate(timeout=LIMIT_S)
        finally:
            trainer.kill()
    if trainer.returncode != 0:
        raise RuntimeError(f"{CASE}: {side} ended with {trainer.returncode}")
    found: dict[str, Any] = json.loads(printed)
    return found


def main(side: str, n: int, root: str) -> None:
    """Make one side, step it, and print its memory."""
    make = {
        SB3_ENV: partial(empty_side, SB3, n, OBSERVATION_BYTES),
        POOL_ENV: partial(empty_side, POOL, n, OBSERVATION_BYTES),
    }.get(side, partial(game_side, side, MAP, n, root))
    with closing(make()) as made:
        made.prepare()
        for _ in range(STEPS):
            made.run(0.01)
        found = memory_by_role()
    print(json.dumps({role: [vars(one) for one in sizes] for role, sizes in found.items()}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
