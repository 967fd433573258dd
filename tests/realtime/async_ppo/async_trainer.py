"""Endless training with an update process; says the pids of its child processes."""

from __future__ import annotations

import json

import psutil
from async_models import SMALL, Counting
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv

from sc2pool import AsyncPPO


class PrintsChildren(BaseCallback):
    def _on_training_start(self) -> None:
        children = [child.pid for child in psutil.Process().children()]
        print(json.dumps({"stage": "training", "children": children}), flush=True)

    def _on_step(self) -> bool:
        return True


AsyncPPO(
    "MlpPolicy",
    DummyVecEnv([Counting]),
    n_steps=8,
    batch_size=8,
    policy_kwargs=SMALL,
    device="cpu",
    actor="process",
).learn(10**9, callback=PrintsChildren())
