"""Trains on CartPole instead of games, as a program of its own: `train_cartpole.py OUT STEPS`."""

import sys
from pathlib import Path

import gymnasium
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

from sc2pool.cli.stop import Stop
from sc2pool.cli.training.run_folder import read_steps
from sc2pool.cli.training.settings.hyperparameters import read_hyperparameters
from sc2pool.cli.training.settings.options import TrainOptions
from sc2pool.cli.training.train import train


def make_env() -> VecEnv:
    return DummyVecEnv([lambda: gymnasium.make("CartPole-v1")] * 2)


def train_cartpole(
    out: Path, steps: int, resume: Path | None = None, stop: Stop | None = None
) -> None:
    options = TrainOptions(
        out=out,
        n=2,
        steps=steps,
        hyperparameters=read_hyperparameters("ppo", "MoveToBeacon"),
        seed=1,
        resume=resume,
        steps_done=0 if resume is None else read_steps(resume, "ppo"),
    )
    train(make_env(), options, game_version="CartPole", stop=stop or Stop())


if __name__ == "__main__":
    stop = Stop()
    with stop.handling():
        train_cartpole(Path(sys.argv[1]), int(sys.argv[2]), stop=stop)
    sys.exit(0 if stop.signal is None else 128 + stop.signal)
