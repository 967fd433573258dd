"""TorchRL's asynchronous env pool and collector beside sc2pool's pool, on sleeping envs.

    .venv/torchrl/bin/python scripts/studies/torchrl_async.py
    .venv/torchrl/bin/python scripts/studies/torchrl_async.py --n 8 --rounds 1 --seconds 1

A step of each env sleeps 1 ms, and every 200 steps a reset sleeps 200 ms, so n envs give at most
n × 500 steps a second. It is the workload for which an asynchronous pool is made: nothing to
compute, and resets that are long. All sides take a constant action. They are measured in turn, in
each round, after a warm-up of half the time; a figure is the median of its rounds, a ratio the
median of the ratios round by round.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Generator
from contextlib import closing
from functools import partial
from statistics import median
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from tensordict.nn import TensorDictModule
from torchrl.collectors import AsyncBatchedCollector
from torchrl.envs import AsyncEnvPool, GymWrapper

from sc2pool import SC2VectorEnv, SubprocSC2VecEnv
from sc2pool.cli.bench.output import markdown, tell

STEP_S = 0.001
RESET_S = 0.2
LENGTH = 200
Steps = Generator[int, None, None]
"""Yields how many transitions have come since the last time."""


class Sleeping(gymnasium.Env[Any, Any]):
    """Sleeps in each step, and longer in a reset."""

    observation_space = spaces.Box(0, 1, (4,), np.float32)
    action_space = spaces.Box(-1, 1, (1,), np.float32)
    count = 0

    def reset(self, **_: Any) -> tuple[Any, dict[str, Any]]:
        time.sleep(RESET_S)
        self.count = 0
        return np.zeros(4, np.float32), {}

    def step(self, _action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        time.sleep(STEP_S)
        self.count += 1
        return np.zeros(4, np.float32), 0.0, False, self.count == LENGTH, {}


def make_torchrls() -> GymWrapper:
    return GymWrapper(Sleeping())


def no_action(observation: torch.Tensor) -> torch.Tensor:
    return torch.zeros((*observation.shape[:-1], 1))


def make_policy() -> TensorDictModule:
    return TensorDictModule(no_action, in_keys=["observation"], out_keys=["action"])


def ours_in_lockstep(n: int) -> Steps:
    with closing(SC2VectorEnv([Sleeping] * n, autoreset_mode="SameStep")) as envs:
        envs.reset()
        actions = np.zeros((n, 1), np.float32)
        while True:
            envs.step(actions)
            yield n


def ours_first_ready(n: int) -> Steps:
    with closing(SubprocSC2VecEnv([Sleeping] * n)) as env:
        env.reset()
        env.pool.send(np.zeros((n, 1), np.float32))
        while True:
            batch = env.pool.recv(n // 4)
            env.pool.send(np.zeros((len(batch.envs), 1), np.float32), batch.envs)
            yield len(batch.envs)


def torchrls_pool(n: int) -> Steps:
    policy = make_policy()
    pool = AsyncEnvPool([make_torchrls] * n, backend="multiprocessing", exchange="shm")
    with closing(pool):
        pool.async_step_and_maybe_reset_send(policy(pool.reset()))
        while True:
            _, following = pool.async_step_and_maybe_reset_recv(min_get=n // 4)
            pool.async_step_and_maybe_reset_send(policy(following))
            yield len(following)


def torchrls_collector(n: int, env_backend: str) -> Steps:
    """With processes it is TorchRL's fast configuration: they ask a policy's process themselves."""
    collector = AsyncBatchedCollector(
        [make_torchrls] * n,
        policy_factory=make_policy,
        frames_per_batch=64 * n,
        env_backend=env_backend,
        transport="auto",
    )
    playing: set[int] = set()
    try:
        for batch in collector:
            playing.update(int(env) for env in batch["env_index"])
            if len(playing) == n:  # some may still start while the first play
                yield batch.numel()
    finally:
        collector.shutdown()


SIDES: dict[str, Callable[[int], Steps]] = {
    "sc2pool, all in lockstep": ours_in_lockstep,
    "sc2pool, the first n/4": ours_first_ready,
    "TorchRL `AsyncEnvPool`, the first n/4": torchrls_pool,
    "TorchRL `AsyncBatchedCollector`, threads": partial(
        torchrls_collector, env_backend="threading"
    ),
    "TorchRL `AsyncBatchedCollector`, processes": partial(
        torchrls_collector, env_backend="multiprocessing"
    ),
}


def steps_per_s(side: Callable[[int], Steps], n: int, seconds: float) -> float:
    """The rate of a side, after a warm-up."""
    with closing(side(n)) as steps:
        next(steps)
        warm_s = time.monotonic() + seconds / 2
        while time.monotonic() < warm_s:
            next(steps)
        began_s, count = time.monotonic(), 0
        while time.monotonic() < began_s + seconds:
            count += next(steps)
        return count / (time.monotonic() - began_s)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--n", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0, help="of a side in a round")
    options = parser.parse_args()
    warnings.simplefilter("ignore", FutureWarning)  # of defaults of TorchRL's next version
    torch.set_num_threads(1)
    rates: dict[str, list[float]] = {name: [] for name in SIDES}
    for number in range(options.rounds):
        for name, side in SIDES.items():
            rates[name].append(steps_per_s(side, options.n, options.seconds))
            tell(f"round {number}, {name}: {rates[name][-1]:,.0f} steps/s")
    ceiling = options.n * LENGTH / (LENGTH * STEP_S + RESET_S)
    ours = next(iter(rates.values()))
    rows = [
        [
            name,
            f"{median(of_side):,.0f}",
            f"{median(of_side) / ceiling:.2f}",
            f"{median(mine / one for mine, one in zip(ours, of_side, strict=True)):.2f}",
            ", ".join(f"{rate:,.0f}" for rate in of_side),
        ]
        for name, of_side in rates.items()
    ]
    head = ["side", "steps/s", f"of {ceiling:,.0f}", "lockstep ÷ it", "rounds"]
    print(markdown(head, rows))


if __name__ == "__main__":
    main()
