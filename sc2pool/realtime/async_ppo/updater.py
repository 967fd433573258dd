"""The child process that computes the learner's updates; `update_process` is the trainer's end.

It has the model without its env, for one update: nothing of a model stays from one to the next.
Rules: it acts only on a message, and sends one reply to each; an exception is a reply, too. It ends
when the trainer ends or closes the socket.
"""

from __future__ import annotations

import socket
import sys
from contextlib import suppress
from typing import Any

import torch as th
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.utils import set_random_seed

from sc2pool.pool.ipc.channel import Channel, ChannelClosedError
from sc2pool.pool.ipc.messages import Raised
from sc2pool.pool.ipc.remote_errors import describe
from sc2pool.processes.spawn import leave_interrupts_to_parent
from sc2pool.realtime.async_ppo.model_state import Unpacked
from sc2pool.realtime.async_ppo.update_process import Begin, Updated


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
    """Handle a message: `Begin`, or the state of a model to be updated."""
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
