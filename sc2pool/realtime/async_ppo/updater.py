"""The child process that computes the learner's updates; `update_process` is the trainer's end.

    python -m sc2pool.realtime.async_ppo.updater TRAINER_PID SOCKET

It has the model without its env. Rules: it acts only on a message, and sends one reply to each; an
exception is a reply, too. It ends when the trainer ends or closes the socket.
"""

from __future__ import annotations

import io
import pickle
import sys
from contextlib import suppress
from typing import Any

import torch as th
from stable_baselines3 import PPO
from stable_baselines3.common.logger import Logger

from sc2pool.pool.ipc.channel import Channel, ChannelClosedError
from sc2pool.pool.ipc.messages import Raised
from sc2pool.pool.ipc.remote_errors import describe
from sc2pool.processes.spawn import given_socket, leave_interrupts_to_parent
from sc2pool.processes.with_parent import follow_parent
from sc2pool.realtime.async_ppo.update_process import Begin, Updated


class Updater:
    """Holds the model, and handles one message after the other."""

    def __init__(self) -> None:
        self._model: PPO | None = None

    def handle(self, message: Begin | bytes) -> Updated | Raised | None:
        """Handle a message and return its reply; None is the reply to `Begin`.

        The others are an update's inputs, pickled: parameters, rollout buffer, attributes by name.
        """
        try:
            if isinstance(message, bytes):
                return self._update(message)
            self._begin(message)
        except BaseException as error:
            return describe(error, "updating")
        return None

    def _begin(self, message: Begin) -> None:
        sys.path[:] = message.sys_path
        th.set_num_threads(message.threads)
        kind, saved, device = pickle.loads(message.learner)
        self._model = kind.load(io.BytesIO(saved), device=device)
        self._model.set_logger(Logger(folder=None, output_formats=[]))

    def _update(self, inputs: bytes) -> Updated:
        model = self._model
        assert model is not None, "Begin is the first message"
        parameters, model.rollout_buffer, attributes = pickle.loads(inputs)
        vars(model).update(attributes)
        model.set_parameters(parameters, device=model.device)
        logger = model.logger
        logger.name_to_value.clear()
        logger.name_to_excluded.clear()
        model.train()
        logged = {
            name: (value, logger.name_to_excluded[name])
            for name, value in logger.name_to_value.items()
        }
        return Updated(model.get_parameters(), model._n_updates, logged)


def main() -> None:
    """Handle messages until the trainer closes the socket."""
    trainer_pid, descriptor = map(int, sys.argv[1:3])
    leave_interrupts_to_parent()
    follow_parent(trainer_pid)
    channel = Channel(given_socket(descriptor))
    updater = Updater()
    messages: list[Any] = []
    with suppress(ChannelClosedError):
        while True:
            messages += channel.receive()
            while messages:
                channel.send(updater.handle(messages.pop(0)))


if __name__ == "__main__":
    main()
