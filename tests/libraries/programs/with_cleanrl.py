"""`with_cleanrl.py REPORT` runs a loop like CleanRL's on two games, one of which is killed.

The loop plays rollouts of 50 steps, with an actor-critic update after each rollout. CleanRL's
scripts expect SAME_STEP: an episode's last step returns the next episode's first observation.
"""

from __future__ import annotations

import torch
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from killing import kill_a_game, write_report
from torch import nn
from torch.distributions import Categorical

from sc2pool import SC2VectorEnv


def main() -> None:
    torch.set_num_threads(1)
    envs = SC2VectorEnv(n=2, task="MoveToBeacon", autoreset_mode="SameStep")
    envs = RecordEpisodeStatistics(envs)
    inputs, actions = envs.single_observation_space.shape[0], envs.single_action_space.n
    actor = nn.Sequential(nn.Linear(inputs, 64), nn.Tanh(), nn.Linear(64, actions))
    critic = nn.Linear(inputs, 1)
    optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=1e-3)
    before = actor[0].weight.clone()
    next_obs, _ = envs.reset(seed=7)
    steps = truncated = marked = recorded = 0
    for _ in range(5):
        losses = []
        for _ in range(50):
            obs = torch.as_tensor(next_obs)
            policy, value = Categorical(logits=actor(obs)), critic(obs).squeeze(-1)
            action = policy.sample()
            next_obs, reward, _, truncations, infos = envs.step(action.numpy())
            error = torch.as_tensor(reward) - value
            losses.append((error**2 - policy.log_prob(action) * error.detach()).mean())
            steps += len(reward)
            truncated += int(truncations.sum())
            marked += int(infos["sc2pool.synthetic"].sum()) if "sc2pool.synthetic" in infos else 0
            recorded += int(infos["_episode"].sum()) if "_episode" in infos else 0
            if steps == 250:
                kill_a_game()
        optimizer.zero_grad()
        torch.stack(losses).mean().backward()
        optimizer.step()
    envs.close()
    assert recorded == truncated, "RecordEpisodeStatistics has seen every end"
    learned = bool((actor[0].weight != before).any())
    write_report(
        envs.unwrapped.pool, steps=steps, truncated=truncated, marked=marked, learned=learned
    )


if __name__ == "__main__":
    main()
