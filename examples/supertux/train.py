"""Trains PPO on SuperTux, and reports what happened in the game during updates.

    pip install ".[screen]"
    python -m examples.supertux.train [--steps 4096] [--n 1] [--while-learning pause|act|run]

During an update the game is paused (`pause`), an actor keeps playing (`act`), or the game runs
without actions (`run`). Read this file from top to bottom.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecMonitor

from examples.supertux.env import SuperTuxEnv
from examples.supertux.timeliness import Timeliness
from sc2pool import AsyncPPO, PauseCallback, SubprocSC2VecEnv


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--steps", type=int, default=4096, help="env steps, all games together")
    parser.add_argument("--n", type=int, default=1, help="games played side by side")
    parser.add_argument("--while-learning", choices=("pause", "act", "run"), default="pause")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--out", type=Path, default=Path("runs/supertux"))
    arguments = parser.parse_args()

    torch.set_num_threads(1)  # because the games need the other cores

    # Each env has a worker, a game and a display of its own.
    games = SubprocSC2VecEnv([SuperTuxEnv] * arguments.n)
    try:
        timeliness = Timeliness(games)
        learner = AsyncPPO if arguments.while_learning == "act" else PPO
        model = learner(
            "MultiInputPolicy",
            VecMonitor(timeliness),
            n_steps=256 // arguments.n,
            batch_size=64,
            n_epochs=10,
            learning_rate=5e-4,
            ent_coef=0.01,
            gamma=0.98,  # this discount gives a horizon of five seconds
            seed=arguments.seed,
            device="cpu",
            verbose=1,
        )
        callback = PauseCallback() if arguments.while_learning == "pause" else None
        model.learn(arguments.steps, callback=callback)
        arguments.out.mkdir(parents=True, exist_ok=True)
        model.save(arguments.out / "model.zip")
        for name, value in timeliness.report().items():
            print(f"{name:>20}: {value}")
        pauses = games.stats().pauses
        print(f"{'paused':>20}: {pauses.count} times, {pauses.paused_s:.1f} s")
    finally:
        games.close()


if __name__ == "__main__":
    main()
