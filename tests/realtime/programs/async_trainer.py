"""Trains without an end, with an update process, and prints the pids of its child processes.

With the argument "stopped", the program stops the update process as soon as it has started.
"""

from __future__ import annotations

import json
import signal
import sys
from typing import Any

import psutil
from async_models import SMALL, Counting
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv

from sc2pool import AsyncPPO
from sc2pool.pool import child_process

start = child_process._start


def started_stopped(*arguments: Any) -> Any:
    child = start(*arguments)
    child.process.send_signal(signal.SIGSTOP)
    print(json.dumps({"stage": "started", "children": [child.process.pid]}), flush=True)
    return child


if "stopped" in sys.argv:
    child_process._start = started_stopped


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
