"""The learner's updates in a child process: the trainer's end and the child's.

    trainer   model ── its state (`model_state`) ──► model.train()   update process
                    ◄── changes, log records ──

Rules:
- The two processes take turns. The child process acts only on a message, and sends one reply to
  each. It has the model without its env.
- Each update sends the model's whole state. So changes that the user or a callback makes to the
  model reach the child process. It sends back the changes of `train`, and keeps no model between
  updates.
- An exception of `train` is also a reply, and is raised here with its type.
- The child process ends with `close`, with the end of `lifeline` and with the trainer, even while
  it is still starting. Ctrl-C does not reach it.
- An update has no time limit while it uses the CPU. A process without CPU time is stopped, or waits
  for ever, and is given up.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import psutil
import torch as th
from stable_baselines3 import PPO
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.utils import set_random_seed

from sc2pool.errors import LearnerError
from sc2pool.realtime.async_ppo.model_state import Packed, Unpacked
from sc2pool.utilities import (
    WINDOWS,
    Channel,
    ChannelClosedError,
    Follower,
    Raised,
    RemoteTraceback,
    describe_exit,
    leave_interrupts_to_parent,
    pickle_script_by_value,
    start_follower,
    uninterrupted,
    waited_s,
)
from sc2pool.utilities import describe_error as describe
from sc2pool.utilities import original_error as original

_SILENT_S: Final = 60.0
"""How long a process whose reply is awaited may use no CPU time."""
_READS_WITHIN_S: Final = 120.0
"""How long it may take to read a message: it may still be importing torch."""
_CHECKS: Final = 20
"""How often its CPU time is checked within `_SILENT_S`."""
_EXITS_WITHIN_S: Final = 5.0
"""How long a process that has closed its socket may take to exit."""


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


class UpdateProcess:
    """Starts the child process, and waits until it has loaded the model.

    Args:
        model: the model to update.

    Attributes:
        lifeline: a context manager whose end kills the process; see `Follower`.

    Raises:
        LearnerError: the process has exited, or uses no CPU time.
        Exception: the model's policy cannot be pickled, or its modules cannot be imported there.
    """

    def __init__(self, model: PPO) -> None:
        pickle_script_by_value()
        state = Packed(model, with_inputs=False).data
        ours, theirs = socket.socketpair()
        self._channel = Channel(ours, _READS_WITHIN_S)
        with theirs:
            try:
                self._follower = uninterrupted(lambda: _start(theirs))
            except BaseException:
                ours.close()
                raise
            self.lifeline = self._follower.lifeline
            self._process = self._follower.process
            if not WINDOWS:  # on Windows it stays open until the child has made its copy
                theirs.close()
            try:
                seed = int(np.random.randint(1 << 31))
                self._request(Begin(list(sys.path), th.get_num_threads(), seed, state))
            except BaseException:
                self.close()
                raise

    def update(self, model: PPO) -> None:
        """Do `model.train()` in the child process.

        Raises:
            LearnerError: the process has exited, or uses no CPU time.
            Exception: the error of `train`.
        """
        packed = Packed(model)
        updated: Updated = self._request(packed.data)
        packed.adopt(updated.changes)
        for name, (value, exclude) in updated.logged.items():
            model.logger.record(name, value, exclude)

    def _request(self, message: Begin | bytes) -> Any:
        try:
            self._channel.send(message)
            replies: list[Any] = []
            while not replies:
                self._wait_for_reply()
                replies = self._channel.receive()
        except ChannelClosedError as error:
            raise LearnerError(
                f"the process that computes the updates {self._how_it_ended()}"
            ) from error
        (reply,) = replies
        if isinstance(reply, Raised):
            raised = original(reply)
            if raised is None:
                raised = LearnerError(f"an update failed: {reply.summary}")
            raise raised from RemoteTraceback(reply.evidence.traceback)
        return reply

    def _wait_for_reply(self) -> None:
        """Wait until a reply, or the end of the channel, can be read.

        Raises:
            LearnerError: the process has used no CPU time for too long.
        """
        silent = 0
        alive_s = self._alive_s()
        while not self._channel.readable(_SILENT_S / _CHECKS):
            before_s, alive_s = alive_s, self._alive_s()
            silent = silent + 1 if alive_s == before_s else 0
            if silent == _CHECKS:
                raise LearnerError(
                    f"the process that computes the updates (pid {self._process.pid}) has used no "
                    f"CPU time for {_SILENT_S:g} s, although an update is awaited"
                )

    def _alive_s(self) -> float:
        """The time for which the process used or waited for a CPU; 0 after it has ended."""
        with suppress(psutil.Error):
            times = psutil.Process(self._process.pid).cpu_times()
            return times.user + times.system + waited_s(self._process.pid)
        return 0.0

    def _how_it_ended(self) -> str:
        """Describe how the process ended, after its socket is closed or it does not read."""
        try:
            return f"has ended: {describe_exit(self._process.wait(_EXITS_WITHIN_S))}"
        except subprocess.TimeoutExpired:
            return f"(pid {self._process.pid}) does not answer"

    def close(self) -> None:
        """End the process; may be called again."""
        self._channel.close()
        self._follower.kill()
        self._process.wait()
        self._follower.close()


def _start(connection: socket.socket) -> Follower:
    """Start the child process with one end of a socket pair."""
    return start_follower(
        "sc2pool.realtime.async_ppo",
        [connection.fileno()],
        {},
        own_session=True,  # for its share of the CPU, see `start_python`
    )


def main(descriptor: int) -> None:
    """Handle messages until the trainer closes the socket."""
    leave_interrupts_to_parent()
    channel = Channel(socket.socket(fileno=descriptor))
    messages: list[Any] = []
    with suppress(ChannelClosedError):
        while True:
            messages += channel.receive()
            while messages:
                channel.send(_reply_to(messages.pop(0)))


def _reply_to(message: Begin | bytes) -> Updated | Raised | None:
    """Handle a message: `Begin`, or the state of a model to update."""
    try:
        if isinstance(message, bytes):
            return _update(message)
        _begin(message)
    except BaseException as error:
        return describe(error, "updating")
    return None


def _begin(message: Begin) -> None:
    sys.path[:] = message.sys_path
    th.set_num_threads(message.threads)
    set_random_seed(message.seed)
    Unpacked(message.state)


def _update(state: bytes) -> Updated:
    unpacked = Unpacked(state)
    logger = Logger(folder=None, output_formats=[])
    unpacked.model.set_logger(logger)
    unpacked.model.train()
    logged = {
        name: (value, logger.name_to_excluded[name]) for name, value in logger.name_to_value.items()
    }
    return Updated(unpacked.changes(), logged)
