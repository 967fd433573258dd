"""The learner's updates in a child process: the trainer's end and the child's.

    trainer   model ── its state (`model_state`) ──► model.train()   update process
                    ◄── changes, log records ──

`ChildProcess` carries the messages, and raises an exception of `train` here. Rules: the child
process has the model without its env. Each update sends the model's whole state. So changes that
the user or a callback makes to the model reach the child process. It sends back the changes of
`train`, and keeps no model between updates.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch as th
from stable_baselines3 import PPO
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.utils import set_random_seed

from sc2pool.errors import LearnerError
from sc2pool.realtime.async_ppo.model_state import Packed, Unpacked
from sc2pool.utilities import ChildProcess, answer, pickle_script_by_value


@dataclass(frozen=True)
class Begin:
    """The first message: settings that the process takes over from the trainer."""

    sys_path: list[str]
    threads: int
    seed: int
    """Seeds the numbers that shuffle the samples; drawn from the trainer's generator."""
    state: bytes
    """The model's state, unpickled to test it and to import its modules. Needs `sys_path`."""


@dataclass(frozen=True)
class Updated:
    """The result of an update."""

    changes: bytes
    """The changes of the model's state, from `Unpacked.changes`."""
    logged: Mapping[str, tuple[Any, tuple[str, ...]]]
    """Log records by name: the value, and the output formats that exclude it."""


class UpdateProcess(ChildProcess):
    """Starts the child process, and waits until it has loaded the model.

    Args:
        model: the model to update.

    Raises:
        LearnerError: the process has exited, or uses no CPU time.
        Exception: the model's policy cannot be pickled, or its modules cannot be imported there.
    """

    def __init__(self, model: PPO) -> None:
        pickle_script_by_value()
        state = Packed(model, with_inputs=False).data
        seed = int(np.random.randint(1 << 31))
        super().__init__(
            "sc2pool.realtime.async_ppo",
            Begin(list(sys.path), th.get_num_threads(), seed, state),
            name="the process that computes the updates",
            error=LearnerError,
        )

    def update(self, model: PPO) -> None:
        """Do `model.train()` in the child process.

        Raises:
            LearnerError: the process has exited, or uses no CPU time.
            Exception: the error of `train`.
        """
        packed = Packed(model)
        updated: Updated = self.request(packed.data)
        packed.adopt(updated.changes)
        for name, (value, exclude) in updated.logged.items():
            model.logger.record(name, value, exclude)


def main(descriptor: int) -> None:
    """Handle messages until the trainer closes the socket."""
    answer(descriptor, _handle, "updating")


def _handle(message: Begin | bytes) -> Updated | None:
    """Handle a message: `Begin`, or the state of a model to update."""
    if isinstance(message, bytes):
        return _update(message)
    sys.path[:] = message.sys_path
    th.set_num_threads(message.threads)
    set_random_seed(message.seed)
    Unpacked(message.state)
    return None


def _update(state: bytes) -> Updated:
    unpacked = Unpacked(state)
    logger = Logger(folder=None, output_formats=[])
    unpacked.model.set_logger(logger)
    unpacked.model.train()
    logged = {
        name: (value, logger.name_to_excluded[name]) for name, value in logger.name_to_value.items()
    }
    return Updated(unpacked.changes(), logged)
