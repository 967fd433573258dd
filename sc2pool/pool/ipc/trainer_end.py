"""The trainer's end of a queue pair: actions out, rows in. See `slot`.

Rule: it never waits; whether the answer is there is a look at one word.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sc2pool.game.clock import Tick
from sc2pool.pool.ipc.doorbell import Doorbell
from sc2pool.pool.ipc.layout import Array
from sc2pool.pool.ipc.slot import (
    DELAY_WORD,
    FLAGS_WORD,
    GAP_WORD,
    LOST_WORD,
    REPLY_WORD,
    REQUEST_WORD,
    RESET_KIND_WORD,
    RESET_KINDS,
    RETURN_WORD,
    REWARD_WORD,
    SKIPPED_WORD,
    Slot,
)


class TrainerEnd:
    """The trainer's end of one instance's queue pair."""

    def __init__(self, slot: Slot, request_bell: Doorbell) -> None:
        self._slot = slot
        self._bell = request_bell
        self._words = slot.words
        self._reals = slot.reals
        self._actions = slot.actions
        self.sequence = 0
        self.rows = [view[None] for view in slot.observations]
        """The observation's leaves, each as a batch of one."""

    def next_sequence(self) -> int:
        """Number the next request; the caller sends it aside."""
        self.sequence += 1
        return self.sequence

    def try_send(self, action: Any) -> bool:
        """Send an action through the slot; False where its shape or kind has no place there."""
        slot = self._slot
        layout = slot.layout.action
        if not layout.fixed:
            return False
        try:
            for view, (_, part) in zip(slot.actions, layout.parts(action), strict=True):
                value = np.asarray(part)
                if value.shape != view.shape or not np.can_cast(value.dtype, view.dtype, "safe"):
                    return False
                view[...] = value
        except (KeyError, IndexError, TypeError, ValueError):
            return False
        self._ring()
        return True

    def delay(self, loops: int) -> None:
        """The next action's period is to be so many loops longer; of games in real time."""
        self._words[DELAY_WORD] = loops

    def send_checked(self, action: Array) -> None:
        """Send an action known to fit a space of one array."""
        self._actions[0][...] = action
        self._ring()

    def _ring(self) -> None:
        self.sequence += 1
        self._words[REQUEST_WORD] = self.sequence
        self._bell.ring()

    def replied(self) -> bool:
        """Whether the newest request has been answered."""
        return self._words[REPLY_WORD] == self.sequence

    def reply_flags(self) -> int | None:
        """The flags of the answer to the newest request; None until it is there."""
        words = self._words
        return words[FLAGS_WORD] if words[REPLY_WORD] == self.sequence else None

    def flags(self) -> int:
        return self._words[FLAGS_WORD]

    def reward(self) -> float:
        return self._reals[REWARD_WORD]

    def episode_return(self) -> float:
        """Sum of the rewards since the newest episode's first observation."""
        return self._slot.reals[RETURN_WORD]

    def copy_row(self, batch: list[Array], row: int) -> None:
        """Copy the observation's leaves into row `row` of a batch's leaves."""
        for leaf, view in zip(batch, self._slot.observations, strict=True):
            leaf[row] = view

    def tick(self) -> Tick:
        """How late the newest step was, where its flags have `TICK`."""
        words = self._words
        return Tick(self._slot.reals[GAP_WORD], words[LOST_WORD], words[SKIPPED_WORD])

    def rung(self) -> str:
        """How the newest episode was reached, one of `RESET_KINDS`."""
        return RESET_KINDS[self._words[RESET_KIND_WORD]]

    def observation(self) -> Any:
        """The observation by itself, copied."""
        return self._slot.observation()

    def mask(self) -> Array:
        """The action mask of the newest observation, copied."""
        return self._slot.mask.copy()
