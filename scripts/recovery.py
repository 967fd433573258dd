"""How long the trainer waits when a game dies or resets slowly, and what is left of dead games.

    python scripts/recovery.py                  # all three parts
    python scripts/recovery.py --part stall --seconds 60

recovery  A game is killed while its step is pending, again and again: the time until the pool has
          detected it, and until the trainer has its batch, with a spare and without.
leaks     A hundred instances are replaced: the resources of this process, before and after.
stall     Resets take a second, episodes end one after the other: the times of batches with two
          spares, without, and with SB3's SubprocVecEnv over `SC2GymEnv`.

The tables show the goals beside the figures. Run it on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from gymnasium import spaces
from lenient import lenient
from stable_baselines3.common.vec_env import SubprocVecEnv, VecEnv

from sc2pool import SC2GymEnv, SubprocSC2VecEnv
from sc2pool.cli.bench.output import markdown
from sc2pool.processes.tree import descendants
from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon
from tests.support.audit.belongings import shared_mappings

N_WALKS = 8
LINGER = N_WALKS
LINGER_S = 0.3
INTO_THE_STEP_S = 0.03

RESET_S = 1.0
STEP_S = 0.02
EPISODE_STEPS = 400

REPORTS = tempfile.TemporaryDirectory(prefix="recovery-")
LENIENT = lenient(Path(REPORTS.name))


class Lingering(MoveToBeacon):
    """Its last action takes 0.3 s, so that a game can be killed in the middle of a step."""

    action_space = spaces.Discrete(N_WALKS + 1)

    async def act(self, action: int) -> Any:  # type: ignore[override]
        if action == LINGER:
            await asyncio.sleep(LINGER_S)
        return super().act(action % N_WALKS)


class SlowToReset(MoveToBeacon):
    """As slow as the real game: to begin an episode, and in each step."""

    async def on_start(self) -> None:  # type: ignore[override]
        super().on_start()
        self.max_loops = self.step_mul * self.options.get("steps", EPISODE_STEPS)
        await asyncio.sleep(RESET_S)

    async def act(self, action: int) -> Any:  # type: ignore[override]
        await asyncio.sleep(STEP_S)
        return super().act(action)


def percentiles(seconds: list[float]) -> list[str]:
    """p50, p95 and maximum in milliseconds, as cells of a table."""
    return [f"{value_s * 1000.0:,.0f}" for value_s in np.percentile(seconds, [50, 95, 100])]


def measure_recovery(n: int, kills: int, spares: int) -> tuple[list[float], list[float]]:
    """Seconds from each SIGKILL until the pool detected it, and until the trainer had its batch."""
    env = SubprocSC2VecEnv(n=n, task=Lingering, spares=spares, config=LENIENT)
    seen_s, recovered_s = [], []
    try:
        env.reset()
        for kill in range(kills):
            while any(instance.state != "ready" for instance in env.stats().instances[n:]):
                env.step(np.zeros(n, np.int64))
            victim = kill % n
            env.step_async([LINGER if index == victim else 0 for index in range(n)])
            time.sleep(INTO_THE_STEP_S)
            killed_s = time.monotonic()
            os.kill(env.stats().instances[victim].pid, signal.SIGKILL)
            _, _, dones, _ = env.step_wait()
            recovered_s.append(time.monotonic() - killed_s)
            assert dones[victim]
            events = env.stats().events
            fault = next(event for event in reversed(events) if event.event == "fault")
            seen_s.append(fault.at_s - killed_s)
    finally:
        env.close()
    return seen_s, recovered_s


def recovery(n: int, kills: int) -> None:
    """The table of recovery times."""
    print(f"Recovery: n={n}, {kills} kills each; milliseconds from SIGKILL\n")
    rows: list[list[str]] = []
    seen_s: list[float] = []
    for name, spares, goal in (("with a spare", 1, "p95 ≤ 1,000"), ("cold", 0, "≤ 5,000")):
        seen, recovered = measure_recovery(n, kills, spares)
        seen_s += seen
        rows.append([f"batch, {name}", *percentiles(recovered), goal])
    rows.append(["death detected", *percentiles(seen_s), "≤ 50"])
    print(markdown(("", "p50", "p95", "max", "goal"), rows), end="\n\n")


def belongings() -> dict[str, int]:
    """Counts of what a pool in this process holds."""
    runs = list(Path(tempfile.gettempdir()).glob("sc2pool-run-*"))
    return {
        "descriptors": len(list(Path("/proc/self/fd").iterdir())),
        "shared mappings": shared_mappings().total(),
        "processes below": len(descendants(psutil.Process())),
        "temp folders": sum(len(list(run.rglob("*"))) for run in runs),
        "resident MB": psutil.Process().memory_info().rss // 1_000_000,
    }


def leaks(recycles: int) -> None:
    """What a pool of two holds before and after this number of recycles."""
    env = SubprocSC2VecEnv(n=2, task=MoveToBeacon, config=LENIENT)
    try:
        env.reset()
        rows = []
        for number in range(recycles + 2):
            if number in (2, 2 + recycles // 2):
                rows.append(belongings())
            victim = env.stats().instances[number % 2]
            pid = victim.pid if number % 4 < 2 else victim.worker_pid
            os.kill(pid, signal.SIGKILL)
            while not env.step(np.zeros(2, np.int64))[2].any():
                pass
        rows.append(belongings())
    finally:
        env.close()
    print(f"Leaks: {recycles} recycles, games and workers killed in turn\n")
    cells = [[name, *(str(row[name]) for row in rows)] for name in rows[0]]
    print(markdown(("", "before", "half way", "after"), cells), end="\n\n")


def batch_times(env: VecEnv, seconds: float) -> list[float]:
    """The time of each step; the first episodes end one after the other."""
    n = env.num_envs
    try:
        env.set_options([{"steps": EPISODE_STEPS * (index + 1) // n} for index in range(n)])
        env.reset()
        times = []
        actions = np.zeros(n, np.int64)
        began_s = time.monotonic()
        while time.monotonic() - began_s < seconds:
            before_s = time.monotonic()
            env.step(actions)
            times.append(time.monotonic() - before_s)
    finally:
        env.close()
    return times


def stall(n: int, seconds: float) -> None:
    """The table of batch times when resets are slow."""
    sides: dict[str, Callable[[], VecEnv]] = {
        "sc2pool, spares=2": lambda: SubprocSC2VecEnv(n=n, task=SlowToReset, spares=2),
        "sc2pool, spares=0": lambda: SubprocSC2VecEnv(n=n, task=SlowToReset),
        "SubprocVecEnv over SC2GymEnv": lambda: SubprocVecEnv(
            [lambda: SC2GymEnv(SlowToReset)] * n, "spawn"
        ),
    }
    print(
        f"Stall: n={n}, resets take {RESET_S:g} s, steps {STEP_S * 1000:g} ms, episodes "
        f"{EPISODE_STEPS} steps; {seconds:g} s each, milliseconds a batch\n"
    )
    rows = []
    for name, make in sides.items():
        times = batch_times(make(), seconds)
        p50, p99, top = np.percentile(times, [50, 99, 100]) * 1000.0
        goal = "≤ 2" if name.endswith("=2") else ""
        figures = (f"{p50:,.1f}", f"{p99:,.1f}", f"{top:,.0f}", f"{p99 / p50:.1f}")
        rows.append((name, str(len(times)), *figures, goal))
    head = ("", "batches", "p50", "p99", "max", "p99 / p50", "goal")
    print(markdown(head, rows), end="\n\n")


def main() -> None:
    """Run the chosen parts."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--part", choices=["recovery", "leaks", "stall", "all"], default="all")
    parser.add_argument("--n", type=int, default=8)
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--recycles", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=30.0)
    options = parser.parse_args()
    logging.getLogger("sc2pool").setLevel(logging.ERROR)  # a line for each kill is too much
    if options.part in ("recovery", "all"):
        recovery(options.n, options.kills)
    if options.part in ("leaks", "all"):
        leaks(options.recycles)
    if options.part in ("stall", "all"):
        stall(options.n, options.seconds)


if __name__ == "__main__":
    main()
