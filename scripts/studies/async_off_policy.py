"""Compares SAC, TD3 and DQN with AsyncSAC, AsyncTD3 and AsyncDQN: returns and steps per second.

Usage:
    python scripts/studies/async_off_policy.py DQN --seeds 1 --steps 5000
    python scripts/studies/async_off_policy.py    # Trains with three seeds in half an hour.

The tasks are Pendulum-v1 (SAC, TD3) and CartPole-v1 (DQN). `--game-ms` makes each step longer
without using a core, like a game with a core of its own. Each async class learns twice: with
`game_waits=True`, and with an actor that never waits, as in real time. For each async class, two
ratios to SB3's class are printed, from means over all seeds. The ratios compare the final return
minus the return of random actions, and the env steps per second. Run the script on an idle machine.
"""

from __future__ import annotations

import argparse
import copy
import time
from statistics import mean, stdev
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import torch as th
from stable_baselines3 import DQN, SAC, TD3
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

from sc2pool import AsyncDQN, AsyncSAC, AsyncTD3

EPISODES = 20
"""The number of episodes of an evaluation."""


class Study(NamedTuple):
    """An algorithm and its task."""

    plain: type[OffPolicyAlgorithm]
    asynchronous: type[OffPolicyAlgorithm]
    env_id: str
    steps: int
    arguments: dict[str, Any]


CONTINUOUS = {"learning_rate": 1e-3, "learning_starts": 500, "batch_size": 128}
SMALL = {"net_arch": [64, 64]}
STUDIES = {
    "SAC": Study(SAC, AsyncSAC, "Pendulum-v1", 6_000, {**CONTINUOUS, "policy_kwargs": SMALL}),
    "TD3": Study(
        TD3,
        AsyncTD3,
        "Pendulum-v1",
        6_000,
        {
            **CONTINUOUS,
            "policy_kwargs": SMALL,
            "action_noise": NormalActionNoise(np.zeros(1), np.full(1, 0.1)),
        },
    ),
    "DQN": Study(  # with the hyperparameters of RL Baselines3 Zoo
        DQN,
        AsyncDQN,
        "CartPole-v1",
        50_000,
        {
            "learning_rate": 2.3e-3,
            "batch_size": 64,
            "buffer_size": 100_000,
            "learning_starts": 1_000,
            "target_update_interval": 10,
            "train_freq": 256,
            "gradient_steps": 128,
            "exploration_fraction": 0.16,
            "exploration_final_eps": 0.04,
            "policy_kwargs": {"net_arch": [256, 256]},
        },
    ),
}
WAYS: dict[str, dict[str, Any]] = {
    "plain": {},
    "game waits": {"game_waits": True},
    "actor never waits": {"game_waits": False},
}


class Unhurried(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Lets each step take longer, without using CPU time."""

    def __init__(self, env: gymnasium.Env[Any, Any], game_s: float) -> None:
        super().__init__(env)
        self._game_s = game_s

    def step(self, action: Any) -> Any:
        time.sleep(self._game_s)
        return self.env.step(action)


class Run(NamedTuple):
    """One training."""

    final_return: float
    steps_per_s: float


def train(study: Study, way: str, seed: int, game_s: float) -> Run:
    """Train once and evaluate the final policy."""
    kind = study.plain if way == "plain" else study.asynchronous
    env = VecMonitor(DummyVecEnv([lambda: Unhurried(gymnasium.make(study.env_id), game_s)]))
    arguments = {**copy.deepcopy(study.arguments), **WAYS[way]}  # SB3 changes its arguments
    model = kind("MlpPolicy", env, seed=seed, device="cpu", **arguments)
    began_s = time.monotonic()
    model.learn(study.steps, log_interval=10**9)
    wall_s = time.monotonic() - began_s
    final = float(np.mean(evaluate_policy(model, fresh(study, seed), EPISODES)[0]))
    wanted = study.arguments.get("gradient_steps", 1) / study.arguments.get("train_freq", 1)
    learned = model.num_timesteps - model.learning_starts
    print(
        f"{kind.__name__}, {way}, seed {seed}: return {final:.1f}, {wall_s:.1f} s, "
        f"{model._n_updates / learned / wanted:.2f} of the updates",
        flush=True,
    )
    return Run(final, model.num_timesteps / wall_s)


def fresh(study: Study, seed: int) -> VecMonitor:
    """An env for evaluations; its episodes are the same for each way of training."""
    env = VecMonitor(DummyVecEnv([lambda: gymnasium.make(study.env_id)]))
    env.seed(1_000 + seed)
    return env


def random_return(study: Study) -> float:
    """The mean return of random actions."""
    env = gymnasium.make(study.env_id)
    env.action_space.seed(0)
    returns = []
    for episode in range(EPISODES):
        env.reset(seed=episode)
        total, over = 0.0, False
        while not over:
            _, reward, terminated, truncated, _ = env.step(env.action_space.sample())
            total, over = total + float(reward), terminated or truncated
        returns.append(total)
    return mean(returns)


def compare(name: str, seeds: int, game_s: float) -> None:
    """Train SB3's class, and train the async class in both modes; print the ratios."""
    study = STUDIES[name]
    at_random = random_return(study)
    runs: dict[str, list[Run]] = {way: [] for way in WAYS}
    for seed in range(seeds):
        for way in WAYS:  # the ways of training take turns, so a slow phase slows all ways
            runs[way].append(train(study, way, seed, game_s))
    plain_gain = mean(run.final_return for run in runs["plain"]) - at_random
    plain_speed = mean(run.steps_per_s for run in runs["plain"])
    for way, found in runs.items():
        returns = [run.final_return for run in found]
        spread = stdev(returns) if seeds > 1 else 0.0
        share = f"{(mean(returns) - at_random) / plain_gain:.3f} of SB3's"
        if plain_gain <= 0:
            share = "SB3's class has not learned"
        print(
            f"{name}, {way}: return {mean(returns):.1f} ± {spread:.1f} (random {at_random:.1f}), "
            f"{share}, "
            f"{mean(run.steps_per_s for run in found) / plain_speed:.2f} times as fast",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("algorithms", nargs="*", default=list(STUDIES), metavar="SAC|TD3|DQN")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, help="env steps of a training")
    parser.add_argument("--game-ms", type=float, default=5.0, help="extra time of a step")
    options = parser.parse_args()
    th.set_num_threads(1)
    for name in options.algorithms:
        if name not in STUDIES:
            parser.error(f"expected {', '.join(STUDIES)}, got {name}")
        if options.steps:
            STUDIES[name] = STUDIES[name]._replace(steps=options.steps)
        compare(name, options.seeds, options.game_ms / 1000.0)


if __name__ == "__main__":
    main()
