"""The shared memory of a pool: one memory, with a row for the queue pair of each instance.

    row 0   header │ action │ observation │ mask │ …      a worker maps its own row,
    row 1   header │ action │ observation │ mask │ …      the trainer maps them all

The trainer sees each field of all rows as one array, so one comparison tells which instances have
replied, and one copy takes a batch. Rules: it is sized once, when the players' spaces are known; a
row begins on a page of its own; a row belongs to one instance at a time, and is cleared for the
next one, whose predecessor must have ended and taken what is still to be read (`TrainerEnd.close`);
what the trainer itself must rely on (the number of the newest request) is not in shared memory.
"""

from __future__ import annotations

import mmap
import os
from typing import Any

import numpy as np

from sc2pool.errors import ConfigError
from sc2pool.pool.ipc import memory
from sc2pool.pool.ipc.layout import Array, SlotLayout
from sc2pool.pool.ipc.slot import FLAGS_WORD, REPLY_WORD, REQUEST_WORD, REWARD_WORD

Index = slice | Array
"""Some rows: a slice if they are the first ones in order, else an array of their numbers."""


class Board:
    """The trainer's view of all rows.

    Args:
        n_rows: how many instances may live at one time.

    Attributes:
        descriptor: the memory, which workers inherit.
        row_bytes: the distance of two rows; 0 until `fit`.
        sequences: uint64 (n_rows,), the number of each row's newest request.
    """

    def __init__(self, n_rows: int) -> None:
        self._n_rows = n_rows
        self.row_bytes = 0
        self.sequences = np.zeros(n_rows, np.uint64)
        self.descriptor = self._create()

    def _create(self) -> int:
        return memory.create()

    @property
    def is_fitted(self) -> bool:
        """Whether the spaces are known, and the memory has its size."""
        return self.row_bytes > 0

    def fit(self, layout: SlotLayout) -> None:
        """Size the memory for rows of this layout, and map it.

        Raises:
            ConfigError: there is not that much memory.
        """
        granularity = mmap.ALLOCATIONGRANULARITY
        row_bytes = -(-layout.size_bytes // granularity) * granularity
        whole = memoryview(self._map(self._n_rows * row_bytes))

        def column(dtype: type[Any], word: int) -> Array:
            return np.ndarray((self._n_rows,), dtype, whole, 8 * word, (row_bytes,))

        self._layout = layout
        self._rows = [
            whole[start : start + layout.size_bytes]
            for start in range(0, self._n_rows * row_bytes, row_bytes)
        ]
        self._requests = column(np.uint64, REQUEST_WORD)
        self._replies = column(np.uint64, REPLY_WORD)
        self._flags = column(np.uint64, FLAGS_WORD)
        self._rewards = column(np.float64, REWARD_WORD)
        self._actions, self._observations = (
            [leaf.column(whole, self._n_rows, row_bytes) for leaf in space.leaves or ()]
            for space in (layout.action, layout.observation)
        )
        self.row_bytes = row_bytes

    def _map(self, size_bytes: int) -> Any:
        memory.claim(self.descriptor, size_bytes)
        return memory.map_memory(self.descriptor, size_bytes)

    def clear(self, row: int, layout: SlotLayout) -> memoryview:
        """The row's memory, all zeros, for an instance whose spaces have this layout.

        Raises:
            ConfigError: the layout is not the one that was agreed on.
        """
        if layout.leaves != self._layout.leaves:
            raise ConfigError(
                f"the spaces have changed: observation_space is {layout.observation.space} and "
                f"action_space {layout.action.space}, but the pool's are "
                f"{self._layout.observation.space} and {self._layout.action.space}"
            )
        buffer = self._rows[row]
        buffer[:] = bytes(len(buffer))
        self.sequences[row] = 0
        return buffer

    def index(self, rows: list[int]) -> Index:
        """These rows, in this order, for the calls below."""
        return slice(len(rows)) if rows == list(range(len(rows))) else np.array(rows)

    def send(self, index: Index, actions: Array) -> None:
        """Write an action into each row; each fits an action space of one array. No bell rings."""
        self._actions[0][index] = actions
        self.sequences[index] += np.uint64(1)
        self._requests[index] = self.sequences[index]

    def unanswered(self, index: Index) -> list[int]:
        """The places in `index` of rows whose newest request has no reply, ascending."""
        replies, expected = self._replies[index].tolist(), self.sequences[index].tolist()
        if replies == expected:
            return []
        pairs = zip(replies, expected, strict=True)
        return [place for place, (reply, number) in enumerate(pairs) if reply != number]

    def flags(self, index: Index) -> int:
        """The flags of all these rows' replies together."""
        return int(np.bitwise_or.reduce(self._flags[index]))

    def rewards(self, index: Index) -> Array:
        """The rows' newest rewards, copied: float64 (k,)."""
        return self._rewards[index].copy()

    def observations(self, index: Index) -> list[Array]:
        """Each leaf of the rows' newest observations, copied: (k, …)."""
        if isinstance(index, slice):
            return [leaf[index].copy() for leaf in self._observations]
        return [leaf[index] for leaf in self._observations]

    def close(self) -> None:
        """Give the memory back, as soon as no row of it is in use; may be called again."""
        if self.descriptor < 0:
            return
        descriptor, self.descriptor = self.descriptor, -1
        for name in ("_rows", "_requests", "_replies", "_flags", "_rewards"):
            vars(self).pop(name, None)
        for name in ("_actions", "_observations"):
            vars(self).pop(name, None)
        self._release(descriptor)

    def _release(self, descriptor: int) -> None:
        os.close(descriptor)
