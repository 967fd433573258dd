"""`with_tianshou.py REPORT` runs tianshou's PPO on two games, one of which is killed."""

from __future__ import annotations

from typing import Any

import torch
from killing import kill_a_game, write_report
from tianshou.algorithm import PPO
from tianshou.algorithm.modelfree.reinforce import DiscreteActorPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.trainer import OnPolicyTrainerParams
from tianshou.utils.net.common import Net
from tianshou.utils.net.discrete import DiscreteActor, DiscreteCritic

from sc2pool import SC2TianshouVectorEnv


class Watch:
    """Counts the data that tianshou receives, and kills a game during the collection."""

    def __init__(self) -> None:
        self.steps = self.truncated = self.marked = 0

    def __call__(self, action_batch: Any, rollout_batch: Any) -> None:
        self.steps += len(rollout_batch)
        self.truncated += int(rollout_batch.truncated.sum())
        if "sc2pool.synthetic" in rollout_batch.info:
            self.marked += int(rollout_batch.info["sc2pool.synthetic"].sum())
        if self.steps == 250:
            kill_a_game()


def main() -> None:
    torch.set_num_threads(1)
    envs = SC2TianshouVectorEnv(n=2, task="MoveToBeacon")
    space = envs.action_space[0]
    net = Net(state_shape=envs.observation_space[0].shape, hidden_sizes=[64])
    actor = DiscreteActor(preprocess_net=net, action_shape=space.n)
    algorithm = PPO(
        policy=DiscreteActorPolicy(actor=actor, action_space=space),
        critic=DiscreteCritic(preprocess_net=net),
        optim=AdamOptimizerFactory(lr=1e-3),
    )
    before = [weight.clone() for weight in actor.parameters()]
    watch = Watch()
    buffer = VectorReplayBuffer(500, len(envs))
    collector = Collector(algorithm, envs, buffer, on_step_hook=watch)
    algorithm.run_training(
        OnPolicyTrainerParams(
            training_collector=collector,
            max_epochs=1,
            epoch_num_steps=500,
            collection_step_num_env_steps=100,
            update_step_num_repetitions=1,
            batch_size=50,
        )
    )
    collector.close()
    learned = any((a != b).any() for a, b in zip(before, actor.parameters(), strict=True))
    write_report(
        envs.pool,
        steps=watch.steps,
        truncated=watch.truncated,
        marked=watch.marked,
        learned=learned,
    )


if __name__ == "__main__":
    main()
