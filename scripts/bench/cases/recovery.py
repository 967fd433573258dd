"""Case *recovery*: how long the trainer waits when a game dies in a step, or resets slowly.

For a *death*, a game is killed while its step is pending. The case measures the times until the
pool detects the death and until the trainer has its batch, with one spare and without spares. For
*stalls*, resets take a second, and episodes end one after the other. The case measures the times of
batches with two spares, without spares, and with SB3's SubprocVecEnv over `SC2GymEnv`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.vec_env import SubprocVecEnv, VecEnv

from bench.kills import lenient, step_until_spares_are_ready
from bench.report import Row, value_row
from bench.settings import Settings
from sc2pool import SC2GymEnv, SubprocSC2VecEnv
from sc2pool.cli.bench.measuring import tell
from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon

CASE = "recovery"
N = 8
KILLS_PER_ROUND = 4
N_WALKS = 8
LINGER, LINGER_S = N_WALKS, 0.3
INTO_THE_STEP_S = 0.03
RESET_S = 1.0
STEP_S = 0.02
EPISODE_STEPS = 400


class Lingering(MoveToBeacon):
    """A task whose action with the highest number takes 0.3 s, so that a kill can hit a step."""

    action_space = spaces.Discrete(N_WALKS + 1)

    async def act(self, action: int) -> Any:  # type: ignore[override]
        if action == LINGER:
            await asyncio.sleep(LINGER_S)
        return super().act(action % N_WALKS)


class SlowToReset(MoveToBeacon):
    """A task whose resets and steps are slow, as in the real game."""

    async def on_start(self) -> None:  # type: ignore[override]
        super().on_start()
        self.max_loops = self.step_mul * self.options.get("steps", EPISODE_STEPS)
        await asyncio.sleep(RESET_S)

    async def act(self, action: int) -> Any:  # type: ignore[override]
        await asyncio.sleep(STEP_S)
        return super().act(action)


def recovery(settings: Settings) -> list[Row]:
    """Measure the deaths of games, and then the stalls by slow resets."""
    return [
        row for n in settings.ns or (N,) for row in (*deaths(settings, n), *stalls(settings, n))
    ]


def deaths(settings: Settings, n: int) -> list[Row]:
    """Milliseconds from a game's SIGKILL until its death is detected, and until the batch comes."""
    rows = []
    for spares in (1, 0):
        tell(f"{CASE}: deaths, {spares} spares")
        detected_ms, batch_ms = _kill_and_step(settings, n, spares)
        setting = f"n={n}, spares={spares}"
        rows.append(value_row(CASE, setting, "death detected", detected_ms, unit="ms"))
        rows.append(value_row(CASE, setting, "batch with a death", batch_ms, unit="ms"))
    return rows


def _kill_and_step(settings: Settings, n: int, spares: int) -> tuple[list[float], list[float]]:
    """For each kill: the times until the death was detected, and until the batch came."""
    detected_ms, batch_ms = [], []
    with tempfile.TemporaryDirectory(prefix="faults-") as reports:
        env = SubprocSC2VecEnv(
            n=n, task=Lingering, game=settings.root, spares=spares, config=lenient(Path(reports))
        )
        try:
            env.reset()
            for kill in range(KILLS_PER_ROUND * settings.rounds):
                step_until_spares_are_ready(env)
                victim = kill % n
                env.step_async([LINGER if index == victim else 0 for index in range(n)])
                time.sleep(INTO_THE_STEP_S)
                killed_s = time.monotonic()
                os.kill(env.stats().instances[victim].pid, signal.SIGKILL)
                _, _, dones, _ = env.step_wait()
                batch_ms.append(1000 * (time.monotonic() - killed_s))
                assert dones[victim]
                faults = [event for event in env.stats().events if event.event == "fault"]
                detected_ms.append(1000 * (faults[-1].at_s - killed_s))
        finally:
            env.close()
    return detected_ms, batch_ms


def stalls(settings: Settings, n: int) -> list[Row]:
    """The duration of a batch in milliseconds: the median, and the 99th percentile."""
    game = settings.root
    sides: dict[str, Callable[[], VecEnv]] = {
        "sc2pool, spares=2": lambda: SubprocSC2VecEnv(n=n, task=SlowToReset, game=game, spares=2),
        "sc2pool, spares=0": lambda: SubprocSC2VecEnv(n=n, task=SlowToReset, game=game),
        "SubprocVecEnv over SC2GymEnv": lambda: SubprocVecEnv(
            [lambda: SC2GymEnv(SlowToReset, game=game)] * n, "spawn"
        ),
    }
    rows = []
    for side, make in sides.items():
        tell(f"{CASE}: resets of {RESET_S:g} s, {side}")
        times_ms = [_batches_ms(make(), settings.seconds) for _ in range(settings.rounds)]
        for name, percent in (("median", 50), ("p99", 99)):
            values = [float(np.percentile(one, percent)) for one in times_ms]
            rows.append(value_row(CASE, f"n={n}, {name} batch", side, values, unit="ms"))
    return rows


def _batches_ms(env: VecEnv, seconds: float) -> list[float]:
    """The duration of each step in ms; the envs' first episodes end one after the other."""
    n = env.num_envs
    actions = np.zeros(n, np.int64)
    times_ms = []
    try:
        env.set_options([{"steps": EPISODE_STEPS * (index + 1) // n} for index in range(n)])
        env.reset()
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s:
            began_s = time.monotonic()
            env.step(actions)
            times_ms.append(1000 * (time.monotonic() - began_s))
    finally:
        env.close()
    return times_ms
