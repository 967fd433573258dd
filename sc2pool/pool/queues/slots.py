"""The shared memory of a pool: one memory, with a slot for the queue pair of each instance.

A slot has a header, an action, observations and masks. A worker maps its own slots, and the trainer
maps all slots. To send an action, the trainer (`trainer_end`) writes it, adds 1 to the number of
the request in the header, and rings the doorbell. To reply, the worker (`worker_end`) writes the
observation and then the number of the request, and rings. Rules:
* In each direction one process writes. The writer writes the sequence number last, so the reader
  never reads an incomplete message.
* The last answer's observation stays unchanged until the next answer is complete.
* Each instance has its own range of sequence numbers, so no message of an earlier instance is
  accepted.
* An info that is not empty, or a value without a fixed layout, does not fit a slot. What does not
  fit the slot is sent *out of band*: on the instance's channel, after the doorbell has rung.
* If an env has several rows, they are all in the slot of its instance and share a sequence number.

The trainer maps each field of all slots as one array. So one comparison finds the instances that
have replied, and one copy reads the field of a whole batch. Rules:
* The memory is sized once, when the players' spaces are known. Each slot begins on its own page.
* A slot belongs to one instance at a time, and is cleared for the next instance. Before a slot is
  cleared, the previous instance must have ended, and the slot's content is copied
  (`TrainerEnd.close`).
* The trainer keeps the number of the newest request in memory that no worker can change.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce
from operator import or_
from typing import Any, NamedTuple

import numpy as np

from sc2pool.errors import ConfigError
from sc2pool.pool.queues import memory
from sc2pool.pool.queues.layout import HEADER_BYTES, Array, SlotLayout, SpaceLayout
from sc2pool.protocol import compiled

HEADER_WORDS = HEADER_BYTES // 8


class Word:
    """Indices of the header's 8-byte fields. Trainer and worker write different cache lines."""

    REQUEST = 0
    DELAY = 1
    REPLY = 8
    FLAGS = 9
    REWARD = 10
    RETURN = 11
    RESET_KIND = 12
    GAP = 13
    LOST = 14
    SKIPPED = 15
    COST_GROWTH = 16


class Flag:
    """Flags of a reply."""

    TERMINATED = 1
    TRUNCATED = 2
    OUT_OF_BAND = 4
    MASKED = 8
    TICK = 32
    """The game runs in real time, and the slot holds this step's lateness."""
    HELD = 64
    """The worker has stopped the game at the first observation in this reply."""
    NOT_HELD = 128
    """The worker was asked to stop the game at this first observation, but could not."""

    CAUSE_SHIFT = 8
    """From this bit on, the flags hold an index in `RECYCLE_CAUSES`: why to replace the game."""

    TELLING = TERMINATED | TRUNCATED | OUT_OF_BAND | TICK
    """A reply without these flags is plain: it has only an observation and a reward."""


RESET_KINDS = ("reset", "restart", "create")
"""How an episode began: by a user env's `reset`, or by the request restart_game or create_game."""


class Place(NamedTuple):
    """The views of an observation's leaves, and of its action mask."""

    observation: list[Array]
    mask: Array


class Slot:
    """Views of one queue pair's memory; trainer and worker each have their own `Slot` object."""

    def __init__(self, buffer: memoryview, layout: SlotLayout) -> None:
        self._buffer = buffer
        self.layout = layout
        self.words = buffer[: HEADER_WORDS * 8].cast("Q")
        self.reals = buffer[: HEADER_WORDS * 8].cast("d")
        self.actions = [leaf.view(buffer) for leaf in layout.action.leaves or ()]
        self._places = _place(layout, buffer), _place(layout, buffer[layout.place_bytes :])
        self.rewards = None if layout.rewards is None else layout.rewards.view(buffer)
        self.action = _reader(layout, self.actions)
        """Returns a copy of the action; for several rows, a list with one action for each row."""

    def copied(self) -> Slot:
        """A copy of this slot in private memory."""
        return Slot(memoryview(bytearray(self._buffer)), self.layout)

    def place(self, sequence: int) -> Place:
        """The place of the observation that answers this request."""
        return self._places[sequence % 2]

    def observation(self, sequence: int, row: int) -> Any:
        """A copy of this row's observation in the answer to this request."""
        views = of_row(self.place(sequence).observation, self.layout.rows, row)
        return self.layout.observation.copied(views.__getitem__)


def _place(layout: SlotLayout, memory: memoryview) -> Place:
    leaves = layout.observation.leaves or ()
    return Place([leaf.view(memory) for leaf in leaves], layout.mask.view(memory))


def of_row(views: list[Array], rows: int, row: int) -> list[Array]:
    """The views of one row, from views of all rows of an env."""
    return views if rows == 1 else [view[row, ...] for view in views]


def _reader(layout: SlotLayout, views: list[Array]) -> Callable[[], Any]:
    """A function that copies an action from its views; chosen once, because each step calls it."""
    if layout.rows == 1:
        return _reader_of_row(layout.action, views)
    each = [
        _reader_of_row(layout.action, of_row(views, layout.rows, row)) for row in range(layout.rows)
    ]
    return lambda: [read() for read in each]


def _reader_of_row(layout: SpaceLayout, views: list[Array]) -> Callable[[], Any]:
    if layout.is_array:
        (view,) = views
        return view.copy if view.ndim else partial(view.__getitem__, ())
    return lambda: layout.build(lambda index: views[index].copy()[()])


class Slots:
    """The trainer's view of all slots, one for each instance that may live at the same time.

    Workers inherit the memory's descriptor (`descriptor`). `slot_bytes` is the distance between two
    slots, or 0 before `fit`. The array `sequences`, uint64 (n_slots,), has the number of each
    slot's newest request.
    """

    def __init__(self, n_slots: int) -> None:
        self._n_slots = n_slots
        self._owners = [0] * n_slots
        """How many instances have used each slot so far."""
        self.slot_bytes = 0
        self.sequences = np.zeros(n_slots, np.uint64)
        self.batch: SlotBatch
        self.descriptor = self._create()

    def _create(self) -> int:
        return memory.create()

    @property
    def is_fitted(self) -> bool:
        """True if `fit` has sized the memory."""
        return self.slot_bytes > 0

    def fit(self, layout: SlotLayout) -> None:
        """Size and map the memory for slots of this layout; ConfigError without enough memory."""
        granularity = mmap.ALLOCATIONGRANULARITY
        slot_bytes = -(-layout.size_bytes // granularity) * granularity
        whole = memoryview(self._map(self._n_slots * slot_bytes))

        def column(dtype: type[Any], word: int) -> Array:
            return np.ndarray((self._n_slots,), dtype, whole, 8 * word, (slot_bytes,))

        def leaves(space: SpaceLayout, place_bytes: int | None = None) -> list[Array]:
            return [
                leaf.column(whole, self._n_slots, slot_bytes, place_bytes)
                for leaf in space.leaves or ()
            ]

        self._layout = layout
        self._slots = [
            whole[start : start + layout.size_bytes]
            for start in range(0, self._n_slots * slot_bytes, slot_bytes)
        ]
        self._columns = Columns(
            self.sequences,
            column(np.uint64, Word.REQUEST),
            column(np.uint64, Word.REPLY),
            column(np.uint64, Word.FLAGS),
            column(np.float64, Word.REWARD)
            if layout.rewards is None
            else layout.rewards.column(whole, self._n_slots, slot_bytes),
            leaves(layout.action),
            leaves(layout.observation, layout.place_bytes),
            layout.rows,
        )
        self.slot_bytes = slot_bytes

    def _map(self, size_bytes: int) -> Any:
        memory.claim(self.descriptor, size_bytes)
        return memory.map_memory(self.descriptor, size_bytes)

    def clear(self, slot: int, layout: SlotLayout) -> memoryview:
        """Clear a slot and return its memory; ConfigError if `layout` is not the pool's layout.

        All bytes become zero except the sequence numbers. The sequence numbers begin in a range
        that no earlier instance has used, because an earlier instance may still read the slot while
        it closes its env.
        """
        if layout.leaves != self._layout.leaves:
            raise ConfigError(
                f"the spaces have changed: observation_space is {layout.observation.space} and "
                f"action_space {layout.action.space}, but the pool's are "
                f"{self._layout.observation.space} and {self._layout.action.space}"
            )
        buffer = self._slots[slot]
        buffer[:] = bytes(len(buffer))
        columns = self._columns
        for numbers in (columns.sequences, columns.requests, columns.replies):
            numbers[slot] = self._owners[slot] << 32
        self._owners[slot] += 1
        return buffer

    def arrange(self, slots: list[int]) -> None:
        """Set the attribute `batch` to these slots, in this order."""
        self.batch = SlotBatch(self._columns, slots)

    def close(self) -> None:
        """Release the memory, which is freed as soon as no slot is used. May be called again."""
        if self.descriptor < 0:
            return
        descriptor, self.descriptor = self.descriptor, -1
        for name in ("_slots", "_columns", "batch"):
            vars(self).pop(name, None)
        self._release(descriptor)

    def _release(self, descriptor: int) -> None:
        os.close(descriptor)


@dataclass(frozen=True)
class Columns:
    """The fields for a step of all envs; each field is one array (slots, …) of all slots.

    With several rows per env, the arrays of actions and rewards are (slots, rows, …). Arrays of
    observations are (slots, 2, …) or (slots, 2, rows, …), because each slot has two places for
    them.
    """

    sequences: Array
    requests: Array
    replies: Array
    flags: Array
    rewards: Array
    actions: list[Array]
    observations: list[Array]
    rows: int = 1


class SlotBatch:
    """Some slots as one batch, in any order; the order 0, 1, 2, … is the fastest."""

    def __init__(self, columns: Columns, slots: list[int]) -> None:
        self._in_order = slots == list(range(len(slots)))
        self._at: Any = slice(len(slots)) if self._in_order else np.array(slots)
        self._columns = columns
        self._requests_sent = 0
        self._observations = self._newest(slots, 0), self._newest(slots, 1)
        """How to copy the newest observations, for an even and for an odd number of requests."""
        words = (columns.sequences, columns.requests, columns.replies, columns.flags)
        self._headers = compiled.fast.Headers(*words, slots) if compiled.fast else None

    def _newest(self, slots: list[int], requests: int) -> list[tuple[Array, Any]]:
        """How to copy the newest observations: for each leaf, an array and an index into it.

        If the slots are in order and use the same place, the index is None: copy the whole array.
        """
        places = (self._columns.sequences[self._at] + requests) % 2
        leaves = self._columns.observations
        if self._in_order and len(set(places.tolist())) == 1:
            return [(leaf[self._at, places[0]], None) for leaf in leaves]
        return [(leaf, (np.array(slots), places)) for leaf in leaves]

    def send(self, actions: Array) -> None:
        """Write the actions (k, …) or (k, rows, …) into the slots, but ring no doorbell."""
        at, columns = self._at, self._columns
        columns.actions[0][at] = actions
        self._requests_sent += 1
        if self._headers is not None:
            self._headers.send()
            return
        columns.sequences[at] += 1
        columns.requests[at] = columns.sequences[at]

    def unanswered(self) -> list[int]:
        """The ascending positions, in this batch, of slots whose newest request has no reply."""
        if self._headers is not None:
            return self._headers.unanswered()
        replies, expected = self._columns.replies[self._at], self._columns.sequences[self._at]
        if replies.tobytes() == expected.tobytes():  # several times as fast as `(… == …).all()`
            return []
        places: list[int] = (replies != expected).nonzero()[0].tolist()
        return places

    def flags(self) -> int:
        """The bitwise "or" of the flags of all these slots' replies."""
        if self._headers is not None:
            return self._headers.flags()
        flags: list[int] = self._columns.flags[self._at].tolist()
        return reduce(or_, flags)

    def rewards(self) -> Array:
        """A copy of the rows' newest rewards: float64 (k,), or (k * rows,) with several rows."""
        rewards = self._columns.rewards[self._at]
        copied: Array = rewards.copy() if self._in_order else rewards
        return copied if self._columns.rows == 1 else copied.reshape(-1)

    def observations(self) -> list[Array]:
        """A copy of each leaf of the newest observations, as (k, …) or (k * rows, …)."""
        newest = self._observations[self._requests_sent % 2]
        copied = [leaf.copy() if at is None else leaf[at] for leaf, at in newest]
        rows = self._columns.rows
        if rows == 1:
            return copied
        return [leaf.reshape(len(leaf) * rows, *leaf.shape[2:]) for leaf in copied]
