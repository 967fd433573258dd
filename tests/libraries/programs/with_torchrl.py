"""`with_torchrl.py REPORT` runs TorchRL's PPO on two games, one of which is killed."""

from __future__ import annotations

from typing import Any

import torch
from killing import kill_a_game, write_report
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.collectors import Collector
from torchrl.data import Categorical
from torchrl.envs import GymWrapper, check_env_specs, default_info_dict_reader
from torchrl.modules import OneHotCategorical, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

from sc2pool import SC2VectorEnv


def refusal_of_next_step() -> str:
    envs = SC2VectorEnv(n=1, task="MoveToBeacon")
    try:
        GymWrapper(envs)
    except RuntimeError as error:
        return str(error)
    finally:
        envs.close()
    return ""


def next_observations_wrong(data: Any) -> int:
    """Count the observations that changed without a reset, or stayed the same despite a reset."""
    after, following = data["next", "observation"][:, :-1], data["observation"][:, 1:]
    ended = data["next", "done"][:, :-1, 0]
    return int(((after != following).any(-1) != ended).sum())


def check_same_step() -> int:
    """Check TorchRL's env specs in the mode SAME_STEP, and play 250 steps."""
    envs = SC2VectorEnv(n=2, task="MoveToBeacon", autoreset_mode="SameStep")
    env = GymWrapper(envs)
    check_env_specs(env)
    (data,) = Collector(env, None, frames_per_batch=500, total_frames=500)
    envs.close()
    return next_observations_wrong(data)


def main() -> None:
    torch.set_num_threads(1)
    envs = SC2VectorEnv(n=2, task="MoveToBeacon", autoreset_mode="Disabled")
    env = GymWrapper(envs)
    mark = Categorical(2, shape=(2,), dtype=torch.bool)
    env.set_info_dict_reader(default_info_dict_reader(["sc2pool.synthetic"], spec=[mark]))
    check_env_specs(env)
    checked = envs.stats().env_steps

    inputs, actions = env.observation_spec["observation"].shape[-1], env.action_spec.shape[-1]
    network = nn.Sequential(nn.Linear(inputs, 64), nn.Tanh(), nn.Linear(64, actions))
    actor = ProbabilisticActor(
        TensorDictModule(network, in_keys=["observation"], out_keys=["logits"]),
        in_keys=["logits"],
        distribution_class=OneHotCategorical,
        return_log_prob=True,
    )
    critic = ValueOperator(nn.Linear(inputs, 1), in_keys=["observation"])
    advantage = GAE(gamma=0.99, lmbda=0.95, value_network=critic)
    loss = ClipPPOLoss(actor, critic)
    optimizer = torch.optim.Adam(loss.parameters(), lr=1e-3)
    before = network[0].weight.clone()

    steps = truncated = marked = wrong = 0
    collector = Collector(env, actor, frames_per_batch=50, total_frames=500)
    for data in collector:
        steps += data.numel()
        truncated += int(data["next", "truncated"].sum())
        marked += int(data["next", "sc2pool.synthetic"].sum())
        wrong += next_observations_wrong(data)
        if steps == 250:
            kill_a_game()
        advantage(data)
        losses = loss(data.reshape(-1))
        optimizer.zero_grad()
        sum(losses[f"loss_{part}"] for part in ("objective", "critic", "entropy")).backward()
        optimizer.step()
    collector.shutdown()
    envs.close()
    write_report(
        envs.pool,
        steps=steps,
        truncated=truncated,
        marked=marked,
        learned=bool((network[0].weight != before).any()),
        checked=checked,
        refusal=refusal_of_next_step(),
        wrong=wrong + check_same_step(),
    )


if __name__ == "__main__":
    main()
