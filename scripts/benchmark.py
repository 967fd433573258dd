"""How many env steps a second: the pool against SB3's own SubprocVecEnv, same task, same games.

    .venv/bin/python scripts/benchmark.py --task MoveToBeacon --n 8 --rounds 5

Both sides play the same task on the same installation, with the same actions. They are measured
alternately in one process tree, so that a machine that is busy with something else slows both;
the median of the rounds and the ratio round by round are printed. SubprocVecEnv holds one
`SC2GymEnv` a worker, and that is a pool of one with a worker of its own: two hops where the pool
has one.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import psutil
from stable_baselines3.common.vec_env import SubprocVecEnv, VecEnv

from sc2pool import SC2GymEnv, SubprocSC2VecEnv


@dataclass(frozen=True)
class Round:
    """One measurement."""

    steps_per_s: float
    cpu_us_per_step: float
    """CPU time of the whole process tree, games included."""


def measure(env: VecEnv, seconds: float) -> Round:
    """Step with random actions for about this long; the warm-up is left out."""
    rng = np.random.default_rng(0)
    n = env.num_envs
    for _ in range(20):
        env.step(actions(env, rng))
    cpu_s, began_s, steps = tree_cpu_s(), time.perf_counter(), 0
    while time.perf_counter() - began_s < seconds:
        env.step(actions(env, rng))
        steps += n
    elapsed_s = time.perf_counter() - began_s
    return Round(steps / elapsed_s, (tree_cpu_s() - cpu_s) / steps * 1e6)


def actions(env: VecEnv, rng: np.random.Generator) -> np.ndarray:
    """A uniform action for each env of a Discrete space."""
    return rng.integers(0, env.action_space.n, env.num_envs)


def tree_cpu_s() -> float:
    """CPU seconds of this process and all it has started."""
    me = psutil.Process()
    total = 0.0
    for process in [me, *me.children(recursive=True)]:
        times = process.cpu_times()
        total += times.user + times.system
    return total


def main() -> None:
    """Measure both sides alternately and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--task", default="MoveToBeacon")
    parser.add_argument("--game", default="auto")
    parser.add_argument("--n", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0)
    options = parser.parse_args()

    sides: dict[str, Callable[[], VecEnv]] = {
        "SubprocSC2VecEnv": lambda: SubprocSC2VecEnv(
            n=options.n, task=options.task, game=options.game
        ),
        "SubprocVecEnv over SC2GymEnv": lambda: SubprocVecEnv(
            [lambda: SC2GymEnv(options.task, game=options.game)] * options.n, "spawn"
        ),
    }
    envs = {name: make() for name, make in sides.items()}
    rounds: dict[str, list[Round]] = {name: [] for name in sides}
    try:
        for env in envs.values():
            env.reset()
        for _ in range(options.rounds):
            for name, env in envs.items():
                rounds[name].append(measure(env, options.seconds))
    finally:
        for env in envs.values():
            env.close()

    print(f"| {options.task}, n={options.n} | steps/s (median) | min–max | CPU µs/step |")
    print("|---|---|---|---|")
    for name, measured in rounds.items():
        rates = [r.steps_per_s for r in measured]
        cpu = statistics.median(r.cpu_us_per_step for r in measured)
        spread = f"{min(rates):,.0f}–{max(rates):,.0f}"
        print(f"| {name} | {statistics.median(rates):,.0f} | {spread} | {cpu:,.0f} |")
    pool, peer = rounds.values()
    ratios = [
        ours.steps_per_s / theirs.steps_per_s for ours, theirs in zip(pool, peer, strict=True)
    ]
    print(f"\nratio, round by round: median {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main()
