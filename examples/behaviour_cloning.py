"""Trains a policy for MoveToBeacon from recorded episodes alone, then plays with this policy.

pip install ".[minari,sb3]"
sc2pool record scripted --steps 10_000
python examples/behaviour_cloning.py sc2pool/MoveToBeacon/scripted-v0
"""

from __future__ import annotations

import argparse

import minari
import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy

from sc2pool import SubprocSC2VecEnv

EPOCHS = 30
BATCH = 256


def main(dataset_id: str) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(1)
    episodes = list(minari.load_dataset(dataset_id).iterate_episodes())
    seen = torch.as_tensor(np.concatenate([one.observations[:-1] for one in episodes]))
    done = torch.as_tensor(np.concatenate([one.actions for one in episodes]))
    print(f"{len(episodes)} episodes, {len(done)} steps")

    env = SubprocSC2VecEnv("MoveToBeacon", n=4, seed=1)
    policy = PPO("MlpPolicy", env, device="cpu").policy
    for epoch in range(EPOCHS):
        total = 0.0
        for batch in torch.split(torch.randperm(len(done)), BATCH):
            _, log_probability, _ = policy.evaluate_actions(seen[batch], done[batch])
            loss = -log_probability.mean()
            policy.optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            policy.optimizer.step()
            total += float(loss.detach()) * len(batch)
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1}: loss {total / len(done):.3f}")
    mean_return, _ = evaluate_policy(policy, env, n_eval_episodes=8, warn=False)
    print(f"mean return {mean_return:.1f}")
    env.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("dataset", help="such as sc2pool/MoveToBeacon/scripted-v0")
    main(parser.parse_args().dataset)
