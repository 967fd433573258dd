"""The trainer's end of a queue pair: sends actions, and reads observations and rewards (`slots`).

A trainer's end rings its worker's doorbell, and owns a slot of the pool's shared memory until the
end is closed. Rules:
* A trainer's end never waits. One word in the slot shows if a reply has arrived.
* The last observation of a dead instance is still needed, so `close` copies the slot before the
  next instance uses it.
* If the instance died before it answered its newest request, reads return the answer to the
  previous request.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np

from sc2pool.game.clock import Tick
from sc2pool.pool.messages import OutOfBand
from sc2pool.pool.queues.doorbell import Doorbell
from sc2pool.pool.queues.layout import Array, SlotLayout, SpaceLayout
from sc2pool.pool.queues.slots import RESET_KINDS, Flag, Slot, Slots, Word, of_row
from sc2pool.tasks.player import RECYCLE_CAUSES


@dataclass(frozen=True)
class Progress:
    """Counts of the requests and rewards of a queue pair.

    `steps` counts the steps requested in all episodes. `episode_steps` counts the steps requested
    in the newest episode. `episode_return` is the sum of the newest episode's rewards so far.
    """

    steps: int = 0
    episode_steps: int = 0
    episode_return: float = 0.0


class TrainerEnd:
    """The trainer's end of the queue pair of one instance, in slot `index` until it is closed."""

    request_doorbell: Doorbell
    _slot: Slot
    """The slot in the shared memory; unset before `attach` and after `unmap`."""

    def __init__(self, slots: Slots, index: int) -> None:
        self.index = index
        self._slots = slots
        self._sequences = np.zeros(1, np.uint64)
        self._is_void = False
        self._has_slot = False
        self._episodes = 0
        self._episode_began = 0
        self._out_of_band: OutOfBand | None = None
        self._unpickled: tuple[Any, Any] | None = None

    def open(self, request_doorbell: Doorbell) -> None:
        """Set the doorbell that wakes the worker; the `Worker` owns the doorbell."""
        self.request_doorbell = request_doorbell

    @property
    def offset_bytes(self) -> int:
        """The offset of the slot in the shared memory."""
        return self.index * self._slots.slot_bytes

    @property
    def sequence(self) -> int:
        """The number of the newest request."""
        return int(self._sequences[0])

    def attach(self, layout: SlotLayout) -> None:
        """Take the slot; ConfigError if this layout differs from the other players' layout."""
        self._slot = Slot(self._slots.clear(self.index, layout), layout)
        self._sequences = self._slots.sequences[self.index : self.index + 1]
        self._has_slot = True

    # Requests.

    def begin_episode(self) -> int:
        """Count a request for an episode; return the request's number, for the `Reset` message."""
        sequence = self._episode_began = self.next_sequence()
        self._episodes += 1
        return sequence

    def try_send(self, action: Any) -> bool:
        """Send an action through the slot; return False if its shape or dtype does not fit.

        If the env has several rows, `action` is a sequence with one action for each row.
        """
        slot, layout = self._slot, self._slot.layout
        if not layout.action.fixed:
            return False
        try:
            if layout.rows == 1:
                fits = _write(layout.action, slot.actions, action)
            else:
                fits = all(
                    _write(layout.action, of_row(slot.actions, layout.rows, row), of_one)
                    for row, of_one in zip(range(layout.rows), action, strict=True)
                )
        except (KeyError, IndexError, TypeError, ValueError):
            return False
        if fits:
            slot.words[Word.REQUEST] = self.next_sequence()
            self.request_doorbell.ring()
        return fits

    def next_sequence(self) -> int:
        """Count a request, and return the request's number."""
        self._sequences[0] += np.uint64(1)
        return self.sequence

    def delay(self, loops: int) -> None:
        """Make the next step's period this many game loops longer, for games in real time."""
        self._slot.words[Word.DELAY] = loops

    # Replies.

    def reply(self) -> int | None:
        """The flags of the reply to the newest request, or None before the reply is complete."""
        words = self._slot.words
        if words[Word.REPLY] != self.sequence:
            return None
        flags = words[Word.FLAGS]
        if flags & Flag.OUT_OF_BAND:
            message = self._out_of_band
            return flags if message is not None and message.sequence == self.sequence else None
        return flags

    def deliver(self, message: OutOfBand) -> None:
        """Take the part of a reply that came on the channel; unpickling may raise any error."""
        self._unpickled = pickle.loads(message.payload)
        self._out_of_band = message

    def flags(self) -> int:
        """The flags of the newest reply."""
        return self._slot.words[Word.FLAGS]

    def recycle_due(self) -> str:
        """Why the game should be replaced, one of `RECYCLE_CAUSES`."""
        return RECYCLE_CAUSES[self.flags() >> Flag.CAUSE_SHIFT]

    def loop_cost_growth(self) -> float:
        """The player's `loop_cost_growth` at the end of the last completed episode."""
        slot: Slot | None = vars(self).get("_slot")  # `unmap` may run in another thread
        return 0.0 if slot is None else slot.reals[Word.COST_GROWTH]

    @property
    def rows(self) -> int:
        """The number of the env's rows in a batch."""
        return self._slot.layout.rows

    def rewards(self) -> list[float]:
        """The newest reward of each row."""
        rewards = self._slot.rewards
        if rewards is None:
            return [self._slot.reals[Word.REWARD]]
        return rewards.tolist()  # type: ignore[no-any-return]

    def out_of_band(self) -> tuple[Any, list[dict[str, Any]]]:
        """The newest reply's observation (None if it is in the slot), and the info of each row."""
        if not self.flags() & Flag.OUT_OF_BAND or self._out_of_band is None:
            return None, [{} for _ in range(self.rows)]
        unpickled, self._unpickled = self._unpickled, None
        # Each further call unpickles the payload again, so that each caller gets its own objects.
        observation, info = unpickled or pickle.loads(self._out_of_band.payload)
        return observation, [info] if self.rows == 1 else info

    def void(self) -> None:
        """Mark the newest request as void, because the instance died before it answered."""
        self._is_void = True

    @property
    def _answered(self) -> int:
        """The number of the newest request that has an answer."""
        return self.sequence - (self._is_void or self.reply() is None)

    def observations(self) -> list[Any]:
        """Each row's newest observation, as new objects."""
        if not self._slot.layout.observation.fixed:
            assert self._out_of_band is not None, "all its observations are out of band"
            return [pickle.loads(self._out_of_band.payload)[0]]
        return [self._slot.observation(self._answered, row) for row in range(self.rows)]

    def copy_rows(self, batch: list[Array], place: int) -> None:
        """Copy the newest observations to index `place` of each leaf's array (k, …)."""
        newest = self._slot.place(self._answered).observation
        for leaf, view in zip(batch, newest, strict=True):
            leaf[place] = view

    def mask(self, row: int) -> Array | None:
        """A copy of the action mask of a row's newest observation; None without a mask."""
        if not self.flags() & Flag.MASKED:
            return None
        (mask,) = of_row([self._slot.place(self._answered).mask], self.rows, row)
        return mask.copy()

    def tick(self) -> Tick:
        """The newest step's lateness; valid if the reply's flags have `TICK`."""
        words = self._slot.words
        return Tick(self._slot.reals[Word.GAP], words[Word.LOST], words[Word.SKIPPED])

    def reset_kind(self) -> str:
        """How the newest episode began, one of `RESET_KINDS`."""
        return RESET_KINDS[self._slot.words[Word.RESET_KIND]]

    def progress(self) -> Progress:
        """The counts so far. Any thread may call this. Steps do no extra work for the counts."""
        slot: Slot | None = vars(self).get("_slot")  # `unmap` may run in another thread
        if slot is None:
            return Progress()
        # Read these counts before `sequence`, which may grow at any time.
        episodes, began = self._episodes, self._episode_began
        sequence = self.sequence
        return Progress(max(0, sequence - episodes), sequence - began, slot.reals[Word.RETURN])

    def close(self) -> None:
        """Release the slot, and keep a copy of its content until `unmap`.

        Later writes of the worker are not read.
        """
        if self._has_slot:
            self._has_slot = False
            self._sequences = self._sequences.copy()
            self._slot = self._slot.copied()

    def unmap(self) -> None:
        """Drop the slot or its copy; after this call nothing can be read."""
        vars(self).pop("_slot", None)


def _write(layout: SpaceLayout, views: list[Array], action: Any) -> bool:
    """Write an action into its views; return False if a shape differs or a cast is not safe.

    A missing part, or a part that is no array, raises an error that `try_send` catches.
    """
    for view, (_, part) in zip(views, layout.parts(action), strict=True):
        value = np.asarray(part)
        if value.shape != view.shape or not np.can_cast(value.dtype, view.dtype, "safe"):
            return False
        view[...] = value
    return True
