"""The trainer's end of a queue pair: actions out, observations and rewards in. See `slot`.

It owns the pair's shared memory and both doorbells, from before the worker starts until after it is
gone, because the last observation of an instance that has died is read once more. Rule: it never
waits; whether a reply is there is a look at one word.
"""

from __future__ import annotations

import mmap
import os
import pickle
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from sc2pool.game.clock import Tick
from sc2pool.pool.ipc import memory
from sc2pool.pool.ipc.doorbell import Doorbell
from sc2pool.pool.ipc.layout import Array, SlotLayout
from sc2pool.pool.ipc.messages import OutOfBand
from sc2pool.pool.ipc.slot import (
    DELAY_WORD,
    FLAGS_WORD,
    GAP_WORD,
    LOST_WORD,
    MASKED,
    OUT_OF_BAND,
    REPLY_WORD,
    REQUEST_WORD,
    RESET_KIND_WORD,
    RESET_KINDS,
    RETURN_WORD,
    REWARD_WORD,
    SKIPPED_WORD,
    Slot,
)


@dataclass(frozen=True)
class Progress:
    """How much has passed through a queue pair.

    Attributes:
        steps: requests for a step, in all episodes.
        episode_steps: requests for a step since the newest request for an episode.
        episode_return: sum of the rewards of the running episode.
    """

    steps: int = 0
    episode_steps: int = 0
    episode_return: float = 0.0


class TrainerEnd:
    """The trainer's end of one player's queue pair; `open` makes it.

    Attributes:
        sequence: number of the newest request.
        reply_bell: rings when the worker has replied.
        rows: the leaves of the newest observation, each as a batch of one.
    """

    def __init__(self) -> None:
        self.sequence = 0
        self.rows: list[Array] = []
        self._slot: Slot | None = None  # until `attach`
        self._episodes = 0
        self._episode_began = 0
        self._out_of_band: OutOfBand | None = None
        self._unpickled: tuple[Any, dict[str, Any]] | None = None
        self._owned = ExitStack()

    def open(self, spec: bytes) -> None:
        """Make the memory and the doorbells.

        Args:
            spec: the pickled player. It travels in the shared memory, which has no other use yet,
                because it may be large and the worker does not read its channel before it is up.

        Raises:
            OSError: the system has no memory or no descriptors left.
        """
        self._memory_fd = memory.create()
        self._owned.callback(os.close, self._memory_fd)
        memory.write(self._memory_fd, spec)
        self._request_bell = Doorbell.create()
        self._owned.callback(self._request_bell.close)
        self.reply_bell = Doorbell.create()
        self._owned.callback(self.reply_bell.close)

    @property
    def descriptors(self) -> tuple[int, int, int]:
        """What the worker inherits: memory, request bell, reply bell."""
        return self._memory_fd, self._request_bell.listening, self.reply_bell.ringing

    def attach(self, layout: SlotLayout) -> None:
        """Size the memory for the player's spaces, and map it.

        Raises:
            ConfigError: there is not that much memory.
        """
        self._slot = slot = Slot(self._map(layout.size_bytes), layout)
        self._words = slot.words
        self._reals = slot.reals
        self._actions = slot.actions
        self.rows = [view[None] for view in slot.observations]

    def _map(self, size_bytes: int) -> mmap.mmap:
        memory.claim(self._memory_fd, size_bytes)
        return memory.map_memory(self._memory_fd, size_bytes)

    # Requests.

    def begin_episode(self) -> int:
        """Number the request for an episode; the caller sends it on the channel."""
        self.sequence += 1
        self._episode_began = self.sequence
        self._episodes += 1
        return self.sequence

    def send(self, action: Array) -> None:
        """Send an action that is known to fit an action space of one array."""
        self._actions[0][...] = action
        self.sequence += 1
        self._words[REQUEST_WORD] = self.sequence
        self._request_bell.ring()

    def try_send(self, action: Any) -> bool:
        """Send any action through the slot; False if its shape or kind has no place there."""
        assert self._slot is not None
        layout = self._slot.layout.action
        if not layout.fixed:
            return False
        try:
            for view, (_, part) in zip(self._actions, layout.parts(action), strict=True):
                value = np.asarray(part)
                if value.shape != view.shape or not np.can_cast(value.dtype, view.dtype, "safe"):
                    return False
                view[...] = value
        except (KeyError, IndexError, TypeError, ValueError):
            return False
        self.sequence += 1
        self._words[REQUEST_WORD] = self.sequence
        self._request_bell.ring()
        return True

    def next_sequence(self) -> int:
        """Number the request for a step; the caller sends it on the channel."""
        self.sequence += 1
        return self.sequence

    def delay(self, loops: int) -> None:
        """Make the next step's period this many game loops longer, for games in real time."""
        self._words[DELAY_WORD] = loops

    # Replies.

    def reply(self) -> int | None:
        """The flags of the reply to the newest request; None until all of it is there."""
        if self._words[REPLY_WORD] != self.sequence:
            return None
        flags = self._words[FLAGS_WORD]
        if flags & OUT_OF_BAND:
            message = self._out_of_band
            return flags if message is not None and message.sequence == self.sequence else None
        return flags

    def deliver(self, message: OutOfBand) -> None:
        """A part of a reply has come on the channel.

        Raises:
            Exception: raised by the user's code, in the objects that are unpickled.
        """
        self._unpickled = pickle.loads(message.payload)
        self._out_of_band = message

    def flags(self) -> int:
        """The flags of the newest reply."""
        return self._words[FLAGS_WORD]

    def reward(self) -> float:
        return self._reals[REWARD_WORD]

    def out_of_band(self) -> tuple[Any, dict[str, Any]]:
        """Observation (None if it is in the slot) and info of the newest reply."""
        if not self.flags() & OUT_OF_BAND or self._out_of_band is None:
            return None, {}
        unpickled, self._unpickled = self._unpickled, None
        # Each caller gets objects of its own.
        observation, info = unpickled or pickle.loads(self._out_of_band.payload)
        return observation, info

    def observation(self) -> Any:
        """The observation in the slot, copied."""
        assert self._slot is not None
        return self._slot.observation()

    def copy_row(self, batch: list[Array], row: int) -> None:
        """Copy the observation's leaves into row `row` of a batch's leaves."""
        for leaf, view in zip(batch, self.rows, strict=True):
            leaf[row] = view[0]

    def mask(self) -> Array | None:
        """The action mask of the newest observation, copied; None if it has none."""
        assert self._slot is not None
        return self._slot.mask.copy() if self.flags() & MASKED else None

    def tick(self) -> Tick:
        """How late the newest step was, if its flags have `TICK`."""
        words = self._words
        return Tick(self._reals[GAP_WORD], words[LOST_WORD], words[SKIPPED_WORD])

    def reset_kind(self) -> str:
        """How the newest episode was reached, one of `RESET_KINDS`."""
        return RESET_KINDS[self._words[RESET_KIND_WORD]]

    def progress(self) -> Progress:
        """How much has passed through; any thread may ask, and no step pays for it."""
        slot = self._slot  # `unmap` may take it meanwhile
        if slot is None:
            return Progress()
        episodes, began = self._episodes, self._episode_began  # before the number that grows
        sequence = self.sequence
        return Progress(max(0, sequence - episodes), sequence - began, slot.reals[RETURN_WORD])

    def close(self) -> None:
        """Give the descriptors back; the memory stays mapped until `unmap`."""
        self._owned.close()

    def unmap(self) -> None:
        """Let go of the memory. Nothing may be read after this."""
        for name in ("_words", "_reals", "_actions"):
            vars(self).pop(name, None)
        self.rows = []
        self._slot = None
