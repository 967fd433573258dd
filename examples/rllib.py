"""Trains one of RLlib's algorithms on MoveToBeacon, on this machine or on a Ray cluster.

    pip install ".[ray]"
    python examples/rllib.py [--algo ppo|impala|appo|dreamerv3] [--runners 1] [--n 8]
                             [--realtime] [--address auto] [--iterations 50] [--game auto|real|PATH]

Read this file from top to bottom. PPO first plays, then learns. While PPO learns, games in real
time are paused. The env runners of IMPALA and APPO play while the learner learns. DreamerV3 learns
a model of the game from images, and trains its policy in this model.
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.algorithms.appo import APPOConfig
from ray.rllib.algorithms.dreamerv3 import DreamerV3Config
from ray.rllib.algorithms.impala import IMPALAConfig
from ray.rllib.algorithms.ppo import PPOConfig

from sc2pool.ray import configure, connect
from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon, MoveToBeaconImage

FRAGMENT = 64
"""The number of steps of each game in a sample. In real time, 64 steps with step_mul 8 take 64 × 8
/ 22.4 = 23 s. RLlib's PPO discards samples that are not complete after `sample_timeout_s` (60
s)."""


class MoveToBeaconPicture(MoveToBeaconImage):
    """A task with small pictures and a reward in each step, which DreamerV3 can learn on two cores.

    The two planes are shrunk to 16 × 16 pixels and concatenated. The beacon is bright, because the
    model keeps only details that change the picture much. The reward is 1 on arrival at the beacon.
    Without an arrival, the reward is the distance, in map units, by which the marine came nearer.
    """

    observation_space = spaces.Box(0.0, 50.0, (2 * 16 * 16,), np.float32)
    _distance: float | None = None
    _nearer = 0.0

    def observe(self) -> NDArray[np.generic]:
        planes = super().observe().reshape(2, 16, 4, 16, 4).mean(axis=(2, 4)) / 255
        before, self._distance = self._distance, None
        if len(self.marines) and len(self.beacons):
            self._distance = math.dist(self.marines.positions[0], self.beacons.positions[0])
        self._nearer = 0.0
        if before is not None and self._distance is not None and not self.score_change:
            self._nearer = before - self._distance
        picture: NDArray[np.float64] = planes * [[[50.0]], [[1.0]]]
        return picture.ravel().astype(np.float32)

    def reward(self) -> float:
        return self.score_change + self._nearer


def ppo(games: int, fragment: int) -> AlgorithmConfig:
    """PPO with two fragments of each game per update."""
    return (
        PPOConfig()
        .env_runners(rollout_fragment_length=fragment)
        .training(
            train_batch_size_per_learner=2 * fragment * games,
            minibatch_size=fragment * games // 2,
            num_epochs=4,
            lr=5e-4,
            entropy_coeff=0.01,
        )
    )


def impala(config: IMPALAConfig, games: int, fragment: int) -> IMPALAConfig:
    """IMPALA with one fragment of each game per update."""
    return (
        config.env_runners(rollout_fragment_length=fragment)
        .training(train_batch_size_per_learner=fragment * games, lr=5e-4, entropy_coeff=0.002)
        .learners(num_learners=0)  # learn in this process; use 1 with more than two cores
        .reporting(min_time_s_per_iteration=5)
    )


def appo(games: int, fragment: int) -> AlgorithmConfig:
    """APPO, which, like PPO in this file, learns from each step four times.

    APPO keeps its policy close to an older policy, which it renews every 32 batches by default. A
    task that is learnt in 60 batches needs a renewal of the older policy in every second batch.
    """
    return impala(APPOConfig(), games, fragment).training(
        use_circular_buffer=False,
        num_epochs=4,
        minibatch_size=fragment * games // 2,
        target_network_update_freq=1,
    )


def dreamerv3(games: int, fragment: int) -> AlgorithmConfig:
    """DreamerV3 with large, frequent updates, and a small model that looks five steps ahead."""
    del games, fragment
    return (
        DreamerV3Config()
        .training(
            model_size="mini",
            training_ratio=64,
            batch_size_B=8,
            batch_length_T=16,
            horizon_H=5,
            gamma=0.9,
            world_model_lr=1e-3,
            actor_lr=1e-4,
            critic_lr=1e-4,
            entropy_scale=1e-2,
        )
        .reporting(min_time_s_per_iteration=15)
    )


ALGORITHMS = {
    "ppo": ppo,
    "impala": lambda games, fragment: impala(IMPALAConfig(), games, fragment),
    "appo": appo,
    "dreamerv3": dreamerv3,
}


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--algo", choices=ALGORITHMS, default="ppo")
    parser.add_argument("--runners", type=int, default=1, help="env runners; 0: this process")
    parser.add_argument("--n", type=int, default=8, help="games of each env runner")
    parser.add_argument("--fragment", type=int, default=FRAGMENT, help="steps in each game")
    parser.add_argument("--iterations", type=int, default=50)
    parser.add_argument("--realtime", action="store_true", help="games run by themselves")
    parser.add_argument("--address", help='"auto" or HOST:PORT; otherwise Ray on this machine')
    parser.add_argument("--seed", type=int)
    parser.add_argument("--game", default="auto", help="auto, real, or an installation's path")
    arguments = parser.parse_args(argv)

    connect(arguments.address)
    config = ALGORITHMS[arguments.algo](arguments.n * max(1, arguments.runners), arguments.fragment)
    config.env_runners(num_env_runners=arguments.runners)
    config.debugging(seed=arguments.seed)
    configure(
        config,
        task=MoveToBeaconPicture if arguments.algo == "dreamerv3" else MoveToBeacon,
        n=arguments.n,
        game=arguments.game,
        realtime=arguments.realtime,
    )
    began_s = time.monotonic()
    algorithm = config.build_algo()
    try:
        for iteration in range(arguments.iterations):
            result = algorithm.train().get("env_runners", {})
            pool = result.get("pool", {})
            print(
                f"iteration {iteration}: {time.monotonic() - began_s:.0f} s, "
                f"{result.get('num_env_steps_sampled_lifetime', 0):.0f} steps, "
                f"mean return {result.get('episode_return_mean', float('nan')):.1f}, "
                f"{pool.get('faults', 0):.0f} faults" + in_real_time(result),
                flush=True,
            )
    finally:
        algorithm.stop()


def in_real_time(result: dict[str, dict[str, float]]) -> str:
    """A text with the pauses or gaps of games in real time; empty for other games."""
    if "pause" in result:
        pause = result["pause"]
        return (
            f", paused for {pause['paused_s']:.1f} s, "
            f"in which {pause['loops_passed']:.0f} game loops passed"
        )
    if "gap_s_max" in result.get("pool", {}):
        pool = result["pool"]
        return f", longest gap without an action {1000 * pool['gap_s_max']:.0f} ms"
    return ""


if __name__ == "__main__":
    main()
