"""`with_sb3.py REPORT` runs Stable-Baselines3's PPO on two games, one of which is killed."""

from __future__ import annotations

import torch
from killing import kill_a_game, write_report
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback

from sc2pool import SubprocSC2VecEnv


class Watch(BaseCallback):
    """Counts the data that SB3 receives, and kills a game during the training."""

    def __init__(self) -> None:
        super().__init__()
        self.steps = self.truncated = self.marked = 0

    def _on_step(self) -> bool:
        for info in self.locals["infos"]:
            self.steps += 1
            self.truncated += info["TimeLimit.truncated"]
            self.marked += "sc2pool.synthetic" in info
        if self.n_calls == 125:
            kill_a_game()
        return True


def main() -> None:
    torch.set_num_threads(1)
    env = SubprocSC2VecEnv(n=2, task="MoveToBeacon")
    model = PPO("MlpPolicy", env, n_steps=50, batch_size=50)
    before = [weight.clone() for weight in model.policy.parameters()]
    watch = Watch()
    model.learn(500, callback=watch)
    env.close()
    learned = any((a != b).any() for a, b in zip(before, model.policy.parameters(), strict=True))
    write_report(
        env.pool, steps=watch.steps, truncated=watch.truncated, marked=watch.marked, learned=learned
    )


if __name__ == "__main__":
    main()
