"""PPO with one policy for a whole team, in RLlib's `ParallelPettingZooEnv` on `SC2ParallelEnv`.

`test_libraries.py` runs this file, in the environment that has RLlib and PettingZoo.
"""

from __future__ import annotations

from contextlib import closing

import numpy as np
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.connectors.env_to_module import FlattenObservations
from ray.rllib.env.wrappers.pettingzoo_env import ParallelPettingZooEnv
from ray.tune.registry import register_env

from sc2pool import SC2ParallelEnv

AGENTS = {"marine_0", "marine_1", "marine_2"}


def plays_on_after_the_end() -> None:
    """Step through RLlib's wrapper. All agents end together, and the next episode must play."""
    with closing(ParallelPettingZooEnv(SC2ParallelEnv("3m", max_loops=80))) as env:
        for _ in range(2):
            seen, _ = env.reset(seed=1)
            assert set(seen) == AGENTS
            truncated = {"__all__": False}
            steps = 0
            while not truncated["__all__"]:
                actions = {
                    name: int(np.flatnonzero(one["action_mask"])[0]) for name, one in seen.items()
                }
                seen, _, terminated, truncated, _ = env.step(actions)
                assert not terminated["__all__"]
                steps += 1
            assert steps == 10


def learns() -> None:
    """Play one iteration of PPO, whose policy all agents share."""
    register_env("3m", lambda config: ParallelPettingZooEnv(SC2ParallelEnv("3m", max_loops=80)))
    config = (
        PPOConfig()
        .environment("3m")
        .env_runners(
            num_env_runners=0,
            env_to_module_connector=lambda *_, **__: FlattenObservations(multi_agent=True),
        )
        .multi_agent(policies={"all"}, policy_mapping_fn=lambda *_, **__: "all")
        .training(train_batch_size_per_learner=90, minibatch_size=30, num_epochs=1)
    )
    algorithm = config.build_algo()
    try:
        result = algorithm.train()
        assert result["env_runners"]["num_env_steps_sampled"] >= 30
    finally:
        algorithm.stop()


if __name__ == "__main__":
    plays_on_after_the_end()
    print("played")
    learns()
    print("learned")
