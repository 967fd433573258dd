"""The learner's updates in a process of their own, seen from the process that acts.

    model ── parameters, rollout, what the callbacks may have changed ──► updater: model.train()
          ◄── parameters, what it logged ────────────────────────────────

Rules: both processes talk in turns; all that an update depends on is sent with it, so what a
callback does to the model holds there too; what `train` raises is raised here with its type. The
process ends with `close`, and with the trainer; Ctrl-C does not reach it.
"""

from __future__ import annotations

import io
import os
import pickle
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch as th
from stable_baselines3 import PPO

from sc2pool.errors import LearnerError
from sc2pool.pool.ipc.channel import Channel, ChannelClosedError
from sc2pool.pool.ipc.pickling import for_worker
from sc2pool.pool.ipc.remote_errors import RemoteTraceback

MAY_CHANGE = (
    "_current_progress_remaining",
    "_n_updates",
    "num_timesteps",
    "learning_rate",
    "lr_schedule",
    "n_epochs",
    "batch_size",
    "clip_range",
    "clip_range_vf",
    "normalize_advantage",
    "ent_coef",
    "vf_coef",
    "max_grad_norm",
    "target_kl",
    "weight_cap",
    "verbose",
)
"""Attributes of the model that `train` reads and the trainer may have changed."""


@dataclass(frozen=True)
class Begin:
    """First of all: the model, without env and logger."""

    sys_path: list[str]
    threads: int
    learner: bytes
    """Its class, what `save` writes, its device; pickled once `sys_path` is set."""


@dataclass(frozen=True)
class Update:
    """Compute one update."""

    inputs: bytes
    """Parameters, rollout buffer and attributes by name; pickled."""


@dataclass(frozen=True)
class Updated:
    """What came of it."""

    parameters: Mapping[str, Any]
    n_updates: int
    logged: Mapping[str, tuple[Any, tuple[str, ...]]]
    """Each value, and the output formats it is kept from."""


@dataclass(frozen=True)
class Failed:
    """What was raised instead."""

    error: bytes | None
    """The exception, pickled; None where that is not possible."""
    traceback: str


class UpdateProcess:
    """Starts the process, and waits until it has the model.

    Args:
        model: what is to be updated; must be one that can be saved.

    Raises:
        LearnerError: the process ends by itself.
    """

    def __init__(self, model: PPO) -> None:
        saved = io.BytesIO()
        model.save(saved)
        ours, its = socket.socketpair()
        self._channel = Channel(ours)
        try:
            self._process = start(its)
        except BaseException:
            ours.close()
            raise
        finally:
            its.close()
        try:
            learner = for_worker((type(model), saved.getvalue(), str(model.device)))
            self._ask(Begin(list(sys.path), th.get_num_threads(), learner))
        except BaseException:
            self.close()
            raise

    def update(self, model: PPO) -> None:
        """The same as `model.train()`.

        Raises:
            LearnerError: the process has ended.
            Exception: what `train` has raised.
        """
        attributes = {name: value for name, value in vars(model).items() if name in MAY_CHANGE}
        inputs = for_worker((model.get_parameters(), model.rollout_buffer, attributes))
        updated: Updated = self._ask(Update(inputs))
        model.set_parameters(dict(updated.parameters), device=model.device)
        model._n_updates = updated.n_updates
        for name, (value, exclude) in updated.logged.items():
            model.logger.record(name, value, exclude)

    def _ask(self, message: Begin | Update) -> Any:
        try:
            self._channel.send(message)
            answers: list[Any] = []
            while not answers:
                answers = self._channel.receive()
        except ChannelClosedError as error:
            code = self._process.wait()
            raise LearnerError(
                f"the process that computes the updates has ended with code {code}"
            ) from error
        if isinstance(answers[0], Failed):
            raise as_raised(answers[0])
        return answers[0]

    def close(self) -> None:
        """End the process; may be called again."""
        self._channel.close()
        self._process.kill()
        self._process.wait()


def start(connection: socket.socket) -> subprocess.Popen[bytes]:
    """Start `python -m sc2pool.realtime.updater` on one end of a socket pair."""
    package_root = str(Path(__file__).resolve().parents[2])
    search_path = os.pathsep.join(filter(None, [package_root, os.environ.get("PYTHONPATH")]))
    descriptor = connection.fileno()
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "sc2pool.realtime.updater", str(os.getpid()), str(descriptor)],
        pass_fds=[descriptor],
        stdin=subprocess.DEVNULL,
        # What the terminal sends to the trainer's session is the trainer's affair. And Linux shares
        # CPU time among sessions first (autogroup, sched(7)): in the trainer's this one process
        # would get one share beside two for every game, while all of them wait for it in the end.
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": search_path},
    )


def as_raised(failed: Failed) -> BaseException:
    """What the update raised, to be raised here, of the same type where possible."""
    remote = RemoteTraceback(failed.traceback)
    try:
        error = pickle.loads(failed.error) if failed.error is not None else None
    except Exception:
        error = None
    if not isinstance(error, BaseException):
        error = LearnerError(f"an update failed: {failed.traceback.strip().splitlines()[-1]}")
    error.__cause__ = remote
    return error
