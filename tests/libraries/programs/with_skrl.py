"""`with_skrl.py REPORT` runs skrl's PPO agent on two games, one of which is killed."""

from __future__ import annotations

from typing import Any

import torch
from killing import kill_a_game, write_report
from skrl.agents.torch.ppo import PPO, PPO_CFG
from skrl.envs.wrappers.torch import wrap_env
from skrl.memories.torch import RandomMemory
from skrl.trainers.torch import SequentialTrainer
from skrl.utils.model_instantiators.torch import categorical_model, deterministic_model

from sc2pool import SC2VectorEnv


class Watched(PPO):
    """Counts the data that skrl receives, and kills a game during the training."""

    steps = truncated = marked = 0

    def record_transition(self, **transition: Any) -> None:
        super().record_transition(**transition)
        self.steps += len(transition["rewards"])
        self.truncated += int(transition["truncated"].sum())
        infos = transition["infos"]
        self.marked += int(infos["sc2pool.synthetic"].sum()) if "sc2pool.synthetic" in infos else 0
        if transition["timestep"] == 125:
            kill_a_game()


def main() -> None:
    torch.set_num_threads(1)
    envs = SC2VectorEnv(n=2, task="MoveToBeacon", autoreset_mode="SameStep")
    env = wrap_env(envs)
    spaces = {"observation_space": env.observation_space, "action_space": env.action_space}
    network = [{"name": "net", "input": "OBSERVATIONS", "layers": [64], "activations": "tanh"}]
    models = {
        "policy": categorical_model(**spaces, network=network, output="ACTIONS"),
        "value": deterministic_model(**spaces, network=network, output="ONE"),
    }
    agent = Watched(
        models=models,
        memory=RandomMemory(memory_size=50, num_envs=env.num_envs),
        **spaces,
        cfg=PPO_CFG(
            rollouts=50,
            learning_epochs=1,
            experiment={"write_interval": 0, "checkpoint_interval": 0},
        ),
    )
    policy = models["policy"]
    policy.init_state_dict(role="policy")
    before = [weight.clone() for weight in policy.parameters()]
    settings = {"timesteps": 250, "headless": True, "disable_progressbar": True}
    trainer = SequentialTrainer(env=env, agents=agent, cfg=settings)
    trainer.train()
    env.close()
    learned = any((a != b).any() for a, b in zip(before, policy.parameters(), strict=True))
    write_report(
        envs.pool,
        steps=agent.steps,
        truncated=agent.truncated,
        marked=agent.marked,
        learned=learned,
    )


if __name__ == "__main__":
    main()
