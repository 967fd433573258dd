"""Case *resets*: what each rung of the ladder takes, and what it costs those who wait for it.

    restart_game     an episode without a seed, on the same game
    create_game      a seeded one, on the same process
    new pair         the game was killed: another worker, another process

Episodes end one after the other. A batch in which an env is over is compared with the others: with
a spare, none of this should show.
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from bench.report import Row, value_row
from bench.settings import Settings
from bench.tasks import task_on
from sc2pool.cli.bench.actions import Actions
from sc2pool.cli.bench.resets import RESET_KINDS, Batches, play, rung_ms, short
from sc2pool.config import PoolConfig, RestartPolicy

CASE = "resets"
MAP = "MoveToBeacon"
N = 8
SPARES = (0, 1, 2)
NEW_PAIR = "new pair"
BATCH_WITH = "batch with"
READY_WITHIN_S = 60.0


def resets(settings: Settings) -> list[Row]:
    """The rungs of pools with 0, 1 and 2 spares."""
    rows: list[Row] = []
    for n in settings.pick((N,), settings.ns):
        found = [row for name in RESET_KINDS for row in rung_rows(settings, n, name)]
        rows += with_ratios(found + new_pair_rows(settings, n))
    return rows


def with_ratios(found: list[Row]) -> list[Row]:
    """Each rung's time as a ratio to a new pair's, for the same number of spares."""
    new_pair: Mapping[str, float] = {r.setting: r.figure for r in found if r.side == NEW_PAIR}
    return [
        value_row(
            CASE,
            row.setting,
            row.side,
            row.values,
            unit=row.unit,
            ratios={NEW_PAIR: row.figure / new_pair[row.setting]}
            if row.side in RESET_KINDS
            else {},
        )
        for row in found
    ]


def rung_rows(settings: Settings, n: int, name: str) -> list[Row]:
    """The resets of unseeded or of seeded episodes, the three pools in turn."""
    rung, seed = RESET_KINDS[name]
    all_spares = settings.pick(SPARES, settings.spares)
    batches = {spares: Batches() for spares in all_spares}
    taken_ms: dict[int, list[float]] = {spares: [] for spares in all_spares}
    with ExitStack() as running:
        envs = {}
        for spares in all_spares:
            settings.tell(f"{CASE}: {name}, {spares} spares")
            envs[spares] = make_pool(settings, n, spares, seed=seed)
            running.callback(envs[spares].close)
        for _ in range(settings.rounds):
            for spares, env in envs.items():
                play(env, Actions(env), settings.seconds, batches[spares])
                median_ms = rung_ms(env, rung)
                if median_ms is not None:
                    taken_ms[spares].append(median_ms)
    rows = []
    for spares in all_spares:
        setting = f"n={n}, spares={spares}"
        rows.append(value_row(CASE, setting, name, taken_ms[spares], unit="ms"))
        cost = batches[spares].cost_percent()
        side = f"{BATCH_WITH} {name}"
        rows.append(value_row(CASE, setting, side, cost, unit="% above a median one"))
    return rows


def new_pair_rows(settings: Settings, n: int) -> list[Row]:
    """Games that are killed, one after the other."""
    rows = []
    for spares in settings.pick(SPARES, settings.spares):
        settings.tell(f"{CASE}: {NEW_PAIR}, {spares} spares")
        with tempfile.TemporaryDirectory(prefix="bundles-") as bundles, ExitStack() as running:
            lenient = PoolConfig(
                restart=RestartPolicy(per_env=10**6, per_env_window_s=0.1, per_pool_per_env=10**6),
                bundle_dir=Path(bundles),
            )
            env = make_pool(settings, n, spares, config=lenient)
            running.callback(env.close)
            batch_ms = [kill_and_step(env, kill % n) for kill in range(settings.rounds)]
            # Of every pair, also of one that takes a spare's place in the background.
            pair_ms = 1000 * env.stats()["recovery_s"]["p50"]
        setting = f"n={n}, spares={spares}"
        rows.append(value_row(CASE, setting, NEW_PAIR, [pair_ms], unit="ms"))
        rows.append(value_row(CASE, setting, f"{BATCH_WITH} {NEW_PAIR}", batch_ms, unit="ms"))
    return rows


def make_pool(
    settings: Settings,
    n: int,
    spares: int,
    *,
    config: PoolConfig | None = None,
    seed: int | None = None,
) -> Any:
    """A pool of short episodes, at its first observation."""
    from sc2pool import SubprocSC2VecEnv  # noqa: PLC0415

    root = settings.installation.root
    env = SubprocSC2VecEnv(
        n=n, task=short(task_on(MAP)), game=root, spares=spares, config=config, seed=seed
    )
    env.reset()
    return env


def kill_and_step(env: Any, victim: int) -> float:
    """Kill a game while every spare is ready; how long the batch that meets it takes, in ms."""
    n = env.num_envs
    until_s = time.monotonic() + READY_WITHIN_S
    while any(one["state"] != "ready" for one in env.stats()["instances"][n:]):
        if time.monotonic() > until_s:
            raise TimeoutError("the spares do not become ready")
        env.step(np.zeros(n, np.int64))  # the pool looks after its spares meanwhile
    os.kill(env.stats()["instances"][victim]["pid"], signal.SIGKILL)
    while True:
        began_s = time.perf_counter()
        infos = env.step(np.zeros(n, np.int64))[3]
        if any("sc2pool.fault" in info for info in infos):
            return 1000 * (time.perf_counter() - began_s)
