"""Case *resets*: the time of each kind of reset, and the delay of the batch that waits for it.

`restart_game` begins an episode without a seed, in the same game. `create_game` begins a seeded
episode, in the same game process. After a game is killed, a "new pair" of a worker and a game
process replaces the old pair.

The envs' episodes end one after the other. Batches in which an episode ends are compared with all
other batches. With a spare instance, a batch should not take longer if an episode ends in it.
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bench.kills import lenient, step_until_spares_are_ready
from bench.report import Row, value_row
from bench.settings import Settings
from bench.tasks import task_on
from sc2pool.cli.bench.measuring import tell
from sc2pool.cli.bench.own_game import RESET_KINDS, ShortEpisodes, short
from sc2pool.config import PoolConfig

CASE = "resets"
MAP = "MoveToBeacon"
N = 8
SPARES = (0, 1, 2)
NEW_PAIR = "new pair"
BATCH_WITH = "batch with"


def resets(settings: Settings) -> list[Row]:
    """Measure all kinds of resets, in pools with 0, 1 and 2 spares."""
    rows: list[Row] = []
    for n in settings.ns or (N,):
        found = [row for kind in RESET_KINDS for row in reset_rows(settings, n, kind)]
        rows += with_ratios(found + new_pair_rows(settings, n))
    return rows


def with_ratios(found: list[Row]) -> list[Row]:
    """Add to each reset's row the ratio of its time to a new pair's time with as many spares."""
    new_pair_ms = {row.setting: row.figure for row in found if row.side == NEW_PAIR}
    return [
        replace(row, ratios={NEW_PAIR: row.figure / new_pair_ms[row.setting]})
        if row.side in RESET_KINDS
        else row
        for row in found
    ]


def reset_rows(settings: Settings, n: int, kind: str) -> list[Row]:
    """Measure one kind of reset in pools with different numbers of spares, in turn."""
    taken_ms: dict[int, list[float]] = {}
    with ExitStack() as running:
        pools = {}
        for spares in settings.spares or SPARES:
            tell(f"{CASE}: {kind}, {spares} spares")
            env = make_pool(settings, n, spares)
            running.callback(env.close)
            pools[spares] = ShortEpisodes(env, kind)
        for _ in range(settings.rounds):
            for spares, episodes in pools.items():
                episodes.play(settings.seconds)
                median_ms = episodes.reset_ms()
                if median_ms is not None:
                    taken_ms.setdefault(spares, []).append(median_ms)
    rows = []
    for spares, episodes in pools.items():
        setting = f"n={n}, spares={spares}"
        rows.append(value_row(CASE, setting, kind, taken_ms[spares], unit="ms"))
        cost = episodes.cost_percent()
        side = f"{BATCH_WITH} {kind}"
        rows.append(value_row(CASE, setting, side, cost, unit="% above a median one"))
    return rows


def new_pair_rows(settings: Settings, n: int) -> list[Row]:
    """Kill games one after the other, and measure the new pairs that replace them."""
    rows = []
    for spares in settings.spares or SPARES:
        tell(f"{CASE}: {NEW_PAIR}, {spares} spares")
        with tempfile.TemporaryDirectory(prefix="faults-") as reports, ExitStack() as running:
            env = make_pool(settings, n, spares, lenient(Path(reports)))
            running.callback(env.close)
            env.reset()
            batch_ms = [kill_and_step(env, kill % n) for kill in range(settings.rounds)]
            # The statistics also include new pairs that replace a spare in the background.
            pair_ms = 1000 * env.stats().recovery_s.p50
        setting = f"n={n}, spares={spares}"
        rows.append(value_row(CASE, setting, NEW_PAIR, [pair_ms], unit="ms"))
        rows.append(value_row(CASE, setting, f"{BATCH_WITH} {NEW_PAIR}", batch_ms, unit="ms"))
    return rows


def make_pool(settings: Settings, n: int, spares: int, config: PoolConfig | None = None) -> Any:
    """A pool whose episodes are short."""
    from sc2pool import SubprocSC2VecEnv  # noqa: PLC0415

    task = short(task_on(MAP))
    return SubprocSC2VecEnv(n=n, task=task, game=settings.root, spares=spares, config=config)


def kill_and_step(env: Any, victim: int) -> float:
    """Kill a game while every spare is ready; returns how long the next batch takes, in ms."""
    n = env.num_envs
    step_until_spares_are_ready(env)
    os.kill(env.stats().instances[victim].pid, signal.SIGKILL)
    while True:
        began_s = time.perf_counter()
        infos = env.step(np.zeros(n, np.int64))[3]
        if any("sc2pool.fault" in info for info in infos):
            return 1000 * (time.perf_counter() - began_s)
