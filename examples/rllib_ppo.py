"""Trains RLlib's PPO on games in real time, which are paused during updates.

    pip install 'sc2pool[ray]'
    python examples/rllib_ppo.py [--iterations 50] [--runners 1] [--n 8] [--game auto|real|PATH]

Read it from top to bottom. An env runner steps its games together (`vector_entry_point`). By
default RLlib steps one game after the other, and most actions come late.
"""

from __future__ import annotations

import argparse

from ray.rllib.algorithms.ppo import PPOConfig

from sc2pool.realtime.rllib import PauseBetweenSamples

FRAGMENT = 64
"""Steps in each game between two pauses. With step_mul 8 they take 64 × 8 / 22.4 = 23 s; RLlib
discards samples that are not complete after `sample_timeout_s`, 60 s."""
FRAGMENTS_PER_UPDATE = 2
"""Fragments per update."""


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--iterations", type=int, default=50, help="updates")
    parser.add_argument("--runners", type=int, default=1, help="env runners; 0: this process")
    parser.add_argument("--n", type=int, default=8, help="games of each env runner")
    parser.add_argument("--fragment", type=int, default=FRAGMENT, help="steps in each game")
    parser.add_argument("--game", default="auto", help="auto, real, or an installation's path")
    arguments = parser.parse_args(argv)

    batch = FRAGMENTS_PER_UPDATE * arguments.fragment * arguments.n
    config = (
        PPOConfig()
        .environment(
            "sc2pool:sc2pool/MoveToBeacon-v0",
            env_config={"realtime": True, "game": arguments.game},
        )
        .env_runners(
            num_env_runners=arguments.runners,
            num_envs_per_env_runner=arguments.n,
            gym_env_vectorize_mode="vector_entry_point",
            rollout_fragment_length=arguments.fragment,
        )
        .training(
            train_batch_size_per_learner=batch * max(1, arguments.runners),
            minibatch_size=batch // 2,
            num_epochs=4,
            lr=5e-4,
            entropy_coeff=0.01,
        )
        .callbacks(PauseBetweenSamples)
    )
    algorithm = config.build_algo()
    try:
        for iteration in range(arguments.iterations):
            result = algorithm.train()["env_runners"]
            pause = result["pause"]
            print(
                f"iteration {iteration}: {result['num_env_steps_sampled_lifetime']:.0f} steps, "
                f"mean return {result.get('episode_return_mean', float('nan')):.1f}, "
                f"paused for {pause['paused_s']:.1f} s, "
                f"in which {pause['loops_passed']:.0f} game loops passed"
            )
    finally:
        algorithm.stop()


if __name__ == "__main__":
    main()
