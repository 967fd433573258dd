"""`with_rllib.py REPORT` runs RLlib's env runner on two games, one of which is killed."""

from __future__ import annotations

from typing import Any

from killing import kill_a_game, write_report
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner
from ray.tune.registry import register_env

from sc2pool import SC2VectorEnv


def main() -> None:
    register_env("games", lambda config: SC2VectorEnv(n=config["num_envs"], task="MoveToBeacon"))
    config = PPOConfig().environment("games").env_runners(num_envs_per_env_runner=2)
    config.env_runners(gym_env_vectorize_mode="vector_entry_point")
    config.env_runners(rollout_fragment_length=125)
    runner = SingleAgentEnvRunner(config=config)
    pool = runner.env.unwrapped.pool
    episodes: list[Any] = runner.sample()
    kill_a_game()
    episodes += runner.sample()
    runner.stop()
    infos = [info for episode in episodes for info in episode.get_infos()]
    write_report(
        pool,
        steps=sum(map(len, episodes)),
        truncated=sum(episode.is_truncated for episode in episodes),
        marked=sum("sc2pool.synthetic" in info for info in infos),
    )


if __name__ == "__main__":
    main()
