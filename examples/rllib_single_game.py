"""RLlib's PPO on one live game that cannot be stepped, paused while the policy is updated.

    apt-get install --no-install-recommends supertux xvfb libgl1-mesa-dri   # Windows: its installer
    pip install ".[ray,screen]"
    python -m examples.rllib_single_game [--iterations 20]

This file uses RLlib's new API stack without env runners: game and learner share this process. The
observation is a dict with a picture (for a CNN) and a vector, each from the last four steps. The
game is SuperTux. For your own game, replace the first two lines of `make_game`. Read this file from
top to bottom.
"""

from __future__ import annotations

import argparse
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.wrappers import FrameStackObservation
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.apis import ValueFunctionAPI
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.core.rl_module.torch import TorchRLModule
from ray.tune.registry import register_env
from torch import nn

from examples.supertux.env import SuperTuxEnv
from sc2pool import PausableEnv, PauseGate
from sc2pool.realtime.rllib import RLlibPauseCallback

STEPS_PER_UPDATE = 256
"""The number of steps between two updates, 27 seconds of play at ten steps a second."""


def make_game(_: Any) -> gymnasium.Env[Any, Any]:
    """The game, which can be paused. A wrapper stacks frames, because RLlib cannot stack a Dict."""
    game = SuperTuxEnv()
    gate = PauseGate(game.game_pid)  # or PauseGate(pause=press_p, resume=press_p, ticks=…)
    return PausableEnv(FrameStackObservation(game, stack_size=4), gate)


class PictureAndVector(TorchRLModule, ValueFunctionAPI):  # type: ignore[misc]
    """A CNN for `frame`, an MLP for `state`, and a layer that policy and value share."""

    def setup(self) -> None:
        frames = self.observation_space["frame"].shape  # 4 steps × 1 channel × rows × columns
        self.cnn = nn.Sequential(
            nn.Conv2d(frames[0] * frames[1], 16, 8, stride=4),
            nn.ReLU(),
            nn.Conv2d(16, 32, 4, stride=2),
            nn.ReLU(),
            nn.Flatten(),
        )
        with torch.no_grad():
            seen = self.cnn(torch.zeros(1, frames[0] * frames[1], *frames[2:])).shape[1]
        numbers = int(np.prod(self.observation_space["state"].shape))
        self.mlp = nn.Sequential(nn.Flatten(), nn.Linear(numbers, 64), nn.ReLU())
        self.common = nn.Sequential(nn.Linear(seen + 64, 128), nn.ReLU())
        self.policy = nn.Linear(128, self.action_space.n)
        self.value = nn.Linear(128, 1)

    def features(self, batch: dict[str, Any]) -> torch.Tensor:
        picture = batch[Columns.OBS]["frame"].float().flatten(1, 2) / 255
        vector = batch[Columns.OBS]["state"].float()
        features: torch.Tensor = self.common(torch.cat([self.cnn(picture), self.mlp(vector)], 1))
        return features

    def _forward(self, batch: dict[str, Any], **_: Any) -> dict[str, Any]:
        return {Columns.ACTION_DIST_INPUTS: self.policy(self.features(batch))}

    def _forward_train(self, batch: dict[str, Any], **_: Any) -> dict[str, Any]:
        features = self.features(batch)
        logits = self.policy(features)
        return {Columns.ACTION_DIST_INPUTS: logits, Columns.EMBEDDINGS: features}

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> torch.Tensor:
        features = self.features(batch) if embeddings is None else embeddings
        values: torch.Tensor = self.value(features).squeeze(-1)
        return values


class PauseAndCount(RLlibPauseCallback):
    """Pauses the game during updates, and counts what happened in the game."""

    def on_episode_step(self, *, episode: Any, metrics_logger: Any, **_: Any) -> None:
        info = episode.get_infos(-1)
        missed = info["late_ticks"] // 7  # a decision period has seven ticks
        for name, count in (
            ("missed", missed),
            *((key, info[key]) for key in ("died", "unattended")),
        ):
            metrics_logger.log_value(("game", name), float(count), reduce="lifetime_sum")


def config() -> PPOConfig:
    register_env("game", make_game)
    return (
        PPOConfig()
        .environment("game")
        .env_runners(num_env_runners=0, rollout_fragment_length=STEPS_PER_UPDATE)
        .callbacks(PauseAndCount)
        .rl_module(rl_module_spec=RLModuleSpec(module_class=PictureAndVector))
        .training(
            train_batch_size_per_learner=STEPS_PER_UPDATE,
            minibatch_size=64,
            num_epochs=10,
            lr=5e-4,
            gamma=0.98,  # this discount gives a horizon of five seconds
            entropy_coeff=0.01,
        )
        .fault_tolerance(restart_failed_sub_environments=True)  # a game that crashes is restarted
    )


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--iterations", type=int, default=20)
    iterations = parser.parse_args(argv).iterations
    torch.set_num_threads(1)  # because the game needs the other cores
    algorithm = config().build_algo()
    try:
        for iteration in range(iterations):
            result = algorithm.train()["env_runners"]
            game, pause = result["game"], result["pause"]
            print(
                f"iteration {iteration}: {result['num_env_steps_sampled_lifetime']:.0f} steps, "
                f"mean return {result.get('episode_return_mean', float('nan')):.2f}, "
                f"paused for {pause['paused_s']:.1f} s, {game['missed']:.0f} periods missed, "
                f"{game['died']:.0f} deaths, {game['unattended']:.0f} of them without an action",
                flush=True,
            )
    finally:
        algorithm.stop()


if __name__ == "__main__":
    main()
