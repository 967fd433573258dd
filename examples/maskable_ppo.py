"""Trains MaskablePPO on DefeatRoaches, whose attacks are masked while no roach is in sight.

    pip install ".[contrib]"
    python examples/maskable_ppo.py [--steps 200000] [--n 8] [--game auto|real|PATH]

Read this file from top to bottom. The masks arrive with the observations, so `action_masks` needs
no additional request.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecMonitor

from sc2pool import PoolStatsCallback, SubprocSC2VecEnv


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--steps", type=int, default=200_000, help="env steps, all games together")
    parser.add_argument("--n", type=int, default=8, help="games played side by side")
    parser.add_argument("--game", default="auto", help="auto, real, or an installation's path")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--out", type=Path, default=Path("runs/maskable_ppo"))
    arguments = parser.parse_args()

    torch.set_num_threads(1)  # one thread, because the games need the other cores

    # The games. A spare game has the next episode ready, so steps do not wait for resets.
    games = SubprocSC2VecEnv(n=arguments.n, task="DefeatRoaches", game=arguments.game, spares=1)
    try:
        print(f"{arguments.n} games of {games.stats().game_version}")
        env = VecMonitor(games)

        # The learner, which calls `env.env_method("action_masks")` before each step.
        model = MaskablePPO(
            "MlpPolicy",
            env,
            n_steps=128,
            batch_size=32 * arguments.n,
            n_epochs=4,
            learning_rate=5e-4,
            ent_coef=0.01,
            seed=arguments.seed,
            device="cpu",
            verbose=1,
        )
        model.learn(arguments.steps, callback=PoolStatsCallback())
        arguments.out.mkdir(parents=True, exist_ok=True)
        model.save(arguments.out / "model.zip")

        # The evaluation, on the training's games, with deterministic actions.
        mean, deviation = evaluate_policy(model, env, n_eval_episodes=arguments.n)
        print(f"mean return {mean:.1f} ± {deviation:.1f} over {arguments.n} episodes")
    finally:
        games.close()


if __name__ == "__main__":
    main()
