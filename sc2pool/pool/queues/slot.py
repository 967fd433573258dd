"""A queue pair in shared memory: one slot each way, a sequence number, a doorbell.

    trainer (`trainer_end`)                   worker (`worker_end`)
    write action, request += 1, ring  ─────►  get_action()
    read it when reply == request  ◄───────  put(): write it, reply = request last, ring

Rules: a slot has one writer; the sequence number is published last, so a torn slot is never taken
for a whole one; the last observation that was answered with stays as it is until the next answer is
complete; numbers start anew with each instance, so no message outlives it. What has no
place in a slot (an info that is not empty, a value without fixed layout) travels *out of band*, on
the instance's channel: the doorbell first, then the bytes. The rows of an env that has several have
one queue pair: one number answers for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from sc2pool.pool.queues.layout import HEADER_BYTES, Array, SlotLayout, SpaceLayout

HEADER_WORDS = HEADER_BYTES // 8


class Word:
    """Header fields, as indices of 8-byte words; trainer and worker write different cache lines."""

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
    """The game runs by itself, and the slot says how late this step was."""
    HELD = 64
    """The worker has stopped the game at this first observation."""
    NOT_HELD = 128
    """The worker could not stop it."""

    CAUSE_SHIFT = 8
    """Above this bit: the index in `RECYCLE_CAUSES` of why it should be replaced."""

    TELLING = TERMINATED | TRUNCATED | OUT_OF_BAND | TICK
    """Without any of these a reply is plain: an observation, a reward, and nothing else to tell."""


RESET_KINDS = ("reset", "restart", "create")
"""How an episode was reached: by an env's own reset, or by restart or create of a game."""


class Place(NamedTuple):
    """The views of an observation's leaves, and of its action mask."""

    observation: list[Array]
    mask: Array


class Slot:
    """The views of one queue pair's memory; both ends have one."""

    def __init__(self, buffer: memoryview, layout: SlotLayout) -> None:
        self._buffer = buffer
        self.layout = layout
        self.words = buffer[: HEADER_WORDS * 8].cast("Q")
        self.reals = buffer[: HEADER_WORDS * 8].cast("d")
        self.actions = [leaf.view(buffer) for leaf in layout.action.leaves or ()]
        self._places = _place(layout, buffer), _place(layout, buffer[layout.place_bytes :])
        self.rewards = None if layout.rewards is None else layout.rewards.view(buffer)
        self.action = _reader(layout, self.actions)
        """The action by itself, copied; of several rows, a list of one for each."""

    def copied(self) -> Slot:
        """The same content in memory of this process alone."""
        return Slot(memoryview(bytearray(self._buffer)), self.layout)

    def place(self, sequence: int) -> Place:
        """Where the observation lies that answers this request."""
        return self._places[sequence % 2]

    def observation(self, sequence: int, row: int) -> Any:
        """This row's observation in the answer to this request, by itself, copied."""
        views = of_row(self.place(sequence).observation, self.layout.rows, row)
        return self.layout.observation.copied(views.__getitem__)


def _place(layout: SlotLayout, memory: memoryview) -> Place:
    leaves = layout.observation.leaves or ()
    return Place([leaf.view(memory) for leaf in leaves], layout.mask.view(memory))


def of_row(views: list[Array], rows: int, row: int) -> list[Array]:
    """Of views of all rows of an env, the views of one."""
    return views if rows == 1 else [view[row, ...] for view in views]


def _reader(layout: SlotLayout, views: list[Array]) -> Callable[[], Any]:
    """A function that copies an action out of its views; on each step's path, so chosen once."""
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
