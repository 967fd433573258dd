"""PPO in one file on `gymnasium.make_vec`, in the shape of CleanRL's scripts.

    python examples/ppo_make_vec.py [--steps 150000] [--n 8] [--game auto|real|PATH]

Read this file from top to bottom. It needs gymnasium, torch and sc2pool, but not SB3. The autoreset
mode is gymnasium's NEXT_STEP. The last step of an episode returns the episode's last observation.
The step after an episode's last step only resets the env, so the learner skips this step.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from torch import nn
from torch.distributions import Categorical

from sc2pool import SC2VectorEnv  # the import also registers the tasks


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--env-id", default="sc2pool/MoveToBeacon-v0")
    parser.add_argument("--steps", type=int, default=150_000, help="env steps, all games together")
    parser.add_argument("--n", type=int, default=8, help="games played side by side")
    parser.add_argument("--game", default="auto", help="auto, real, or an installation's path")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("runs/ppo_make_vec"))
    parser.add_argument("--rollout", type=int, default=128, help="steps between two updates")
    parser.add_argument("--minibatches", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--gamma", type=float, default=0.99)
    parser.add_argument("--gae-lambda", type=float, default=0.95)
    parser.add_argument("--clip", type=float, default=0.2)
    parser.add_argument("--entropy", type=float, default=0.01)
    return parser.parse_args()


def init_layer(inputs: int, outputs: int, gain: float = 2**0.5) -> nn.Linear:
    layer = nn.Linear(inputs, outputs)
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


class Agent(nn.Module):
    """A policy and a value function, for flat observations and discrete actions."""

    def __init__(self, inputs: int, actions: int) -> None:
        super().__init__()
        self.critic = nn.Sequential(
            init_layer(inputs, 64),
            nn.Tanh(),
            init_layer(64, 64),
            nn.Tanh(),
            init_layer(64, 1, 1.0),
        )
        self.actor = nn.Sequential(
            init_layer(inputs, 64),
            nn.Tanh(),
            init_layer(64, 64),
            nn.Tanh(),
            init_layer(64, actions, 0.01),
        )

    def forward(self, observations: torch.Tensor) -> tuple[Categorical, torch.Tensor]:
        return Categorical(logits=self.actor(observations)), self.critic(observations).squeeze(-1)


def main() -> None:  # noqa: PLR0915 - one function, to read from top to bottom
    args = parse_arguments()
    torch.set_num_threads(1)  # one thread, because the games need the other cores
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)

    # The games. A spare game has the next episode ready, so steps do not wait for resets.
    envs = gymnasium.make_vec(args.env_id, num_envs=args.n, game=args.game, spares=1)
    try:
        assert isinstance(envs.unwrapped, SC2VectorEnv)
        print(f"{args.n} games of {envs.unwrapped.stats().game_version}")
        envs = RecordEpisodeStatistics(envs)
        observation_space, action_space = envs.single_observation_space, envs.single_action_space
        assert isinstance(observation_space, spaces.Box), f"not a Box: {observation_space}"
        assert isinstance(action_space, spaces.Discrete), f"not a Discrete: {action_space}"
        inputs = int(np.prod(observation_space.shape))
        agent = Agent(inputs, int(action_space.n))
        optimizer = torch.optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5)

        size = (args.rollout, args.n)
        observations = torch.zeros((args.rollout + 1, args.n, inputs))
        actions = torch.zeros(size, dtype=torch.long)
        log_probs, rewards, values = torch.zeros(size), torch.zeros(size), torch.zeros(size)
        terminated, ended = torch.zeros(size), torch.zeros(size)
        resets = torch.zeros((args.rollout + 1, args.n), dtype=torch.bool)

        first, _ = envs.reset(seed=args.seed)
        observations[-1] = torch.as_tensor(first).view(args.n, inputs)
        returns: list[float] = []
        updates = max(1, args.steps // (args.rollout * args.n))
        for update in range(updates):
            optimizer.param_groups[0]["lr"] = args.learning_rate * (1 - update / updates)

            # The rollout.
            observations[0], resets[0] = observations[-1].clone(), resets[-1].clone()
            for t in range(args.rollout):
                with torch.no_grad():
                    policy, values[t] = agent(observations[t])
                actions[t] = policy.sample()
                log_probs[t] = policy.log_prob(actions[t])
                observation, reward, terminations, truncations, infos = envs.step(
                    actions[t].numpy()
                )
                observations[t + 1] = torch.as_tensor(observation).view(args.n, inputs)
                rewards[t] = torch.as_tensor(reward)
                terminated[t] = torch.as_tensor(terminations)
                ended[t] = torch.as_tensor(terminations | truncations)
                resets[t + 1] = ended[t] > 0  # the next step is a reset
                if "episode" in infos:
                    returns += infos["episode"]["r"][infos["_episode"]].tolist()

            # Advantages (GAE). The last step of an episode returns an observation of this episode.
            with torch.no_grad():
                _, next_value = agent(observations[-1])
            advantages, running = torch.zeros(size), torch.zeros(args.n)
            for t in reversed(range(args.rollout)):
                delta = rewards[t] + args.gamma * (1 - terminated[t]) * next_value - values[t]
                running = delta + args.gamma * args.gae_lambda * (1 - ended[t]) * running
                advantages[t] = running
                next_value = values[t]
            value_targets = advantages + values

            # The update uses all steps except autoresets.
            (usable,) = torch.nonzero(~resets[:-1].flatten(), as_tuple=True)
            flat_observations = observations[:-1].reshape(-1, inputs)
            for _ in range(args.epochs):
                shuffled = usable[torch.as_tensor(rng.permutation(len(usable)))]
                for rows in torch.tensor_split(shuffled, args.minibatches):
                    policy, value = agent(flat_observations[rows])
                    ratio = (
                        policy.log_prob(actions.flatten()[rows]) - log_probs.flatten()[rows]
                    ).exp()
                    advantage = advantages.flatten()[rows]
                    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
                    clipped = ratio.clamp(1 - args.clip, 1 + args.clip)
                    policy_loss = -torch.min(ratio * advantage, clipped * advantage).mean()
                    value_loss = 0.5 * (value - value_targets.flatten()[rows]).square().mean()
                    loss = policy_loss + 0.5 * value_loss - args.entropy * policy.entropy().mean()
                    optimizer.zero_grad()
                    loss.backward()
                    nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                    optimizer.step()

            done = (update + 1) * args.rollout * args.n
            mean = f"{np.mean(returns[-20:]):.1f}" if returns else "–"
            print(f"{done:8,} steps  {len(returns):5} episodes  mean return {mean}", flush=True)

        args.out.mkdir(parents=True, exist_ok=True)
        torch.save(agent.state_dict(), args.out / "agent.pt")
    finally:
        envs.close()


if __name__ == "__main__":
    main()
