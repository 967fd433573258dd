"""Measures a task on the user's own installation, for several numbers of games.

One pool at a time, because real games fill the memory; each is measured in several rounds. The
figures are those of a training: episodes end as usual, and the rates include their resets.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from sc2pool.cli.bench.actions import Actions
from sc2pool.cli.bench.figures import Measured, Resets
from sc2pool.cli.bench.output import tell
from sc2pool.cli.bench.processes import GAME, WORKER, memory_by_role
from sc2pool.cli.bench.resets import RESET_KINDS, ShortEpisodes, short
from sc2pool.cli.bench.rounds import Rounds, measure, step_for
from sc2pool.envs.sb3 import SubprocSC2VecEnv
from sc2pool.pool.machine.memory import available_bytes
from sc2pool.tasks.definition import TaskDefinition

ROUNDS = 3
WARM_UP_STEPS = 10


class PoolSide:
    """A pool that is stepped with random actions."""

    def __init__(self, env: SubprocSC2VecEnv) -> None:
        self._env = env
        env.reset()
        self._actions = Actions(env)

    def prepare(self) -> None:
        for _ in range(WARM_UP_STEPS):
            self._step()

    def run(self, seconds: float) -> tuple[int, float]:
        return step_for(self._step, seconds)

    def _step(self) -> int:
        self._env.step(self._actions.next())
        return self._env.num_envs


def measure_sizes(
    task: type[TaskDefinition], game: Path, ns: Sequence[int], *, seconds: float
) -> tuple[list[Measured], str]:
    """Pools of several sizes, the smallest first; those that do not fit into memory are left out.

    Returns:
        What was measured, and the game's version.
    """
    found: list[Measured] = []
    version = ""
    for n in sorted(set(ns)):
        if found and n * found[-1].env_bytes > available_bytes():
            tell(f"n={n}: left out, these games do not fit into the memory")
            continue
        tell(f"n={n}: starting")
        began_s = time.perf_counter()
        env = SubprocSC2VecEnv(n=n, task=task, game=game)
        try:
            side = PoolSide(env)
            started_s = time.perf_counter() - began_s
            rounds = []
            for _ in range(ROUNDS):
                rounds.append(measure(side, seconds / ROUNDS))
                tell(f"n={n}: {rounds[-1].steps_per_s:,.0f} steps/s")
            memory = memory_by_role()
            version = env.stats().game_version or ""
        finally:
            env.close()
        game_bytes, worker_bytes = (
            # The n largest: a game may come with small helpers of its own.
            int(median([one.pss_bytes for one in memory[role]][:n] or [0]))
            for role in (GAME, WORKER)
        )
        found.append(Measured(n, Rounds(rounds), started_s, game_bytes, worker_bytes))
    return found, version


def measure_resets(
    task: type[TaskDefinition], game: Path, n: int, spares: int, *, seconds: float
) -> Resets:
    """Short episodes in a pool with spares, half of the time with seeds."""
    tell(f"resets with {spares} spares: starting")
    taken_ms: dict[str, float] = {}
    cost_percent: dict[str, float] = {}
    env = SubprocSC2VecEnv(n=n, task=short(task), game=game, spares=spares)
    try:
        for kind in RESET_KINDS:
            episodes = ShortEpisodes(env, kind)
            episodes.play(seconds / len(RESET_KINDS))
            median_ms = episodes.reset_ms()
            if median_ms is not None:
                taken_ms[kind] = median_ms
            if cost := episodes.cost_percent():
                cost_percent[kind] = median(cost)
    finally:
        env.close()
    return Resets(n, spares, taken_ms, cost_percent)
