"""The trainer's end of a queue pair: actions out, observations and rewards in. See `slots`.

It rings its worker's doorbell, and has a slot of the pool's shared memory (`slots`) until it is
closed. Rules: it never waits. One word tells if a reply is there. The last observation
of an instance that has died is read once more, so it takes a copy of the slot with it when it is
closed, and the slot is the next instance's. If it died before it
answered, its newest request is void, and what it shows is the answer to the one before.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np

from sc2pool.game.clock import Tick
from sc2pool.pool.ipc.messages import OutOfBand
from sc2pool.pool.queues.doorbell import Doorbell
from sc2pool.pool.queues.layout import Array, SlotLayout, SpaceLayout
from sc2pool.pool.queues.slots import RESET_KINDS, Flag, Slot, Slots, Word, of_row
from sc2pool.tasks.player import RECYCLE_CAUSES


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
    """The trainer's end of the queue pair of one instance.

    Args:
        index: of the slot that is this queue pair's until it is closed.

    Attributes:
        request_doorbell: wakes the worker; not there before `open`.
    """

    request_doorbell: Doorbell
    _slot: Slot
    """Not there before `attach`, nor after `unmap`."""

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
        """Wake the worker by this doorbell, which is the worker's."""
        self.request_doorbell = request_doorbell

    @property
    def offset_bytes(self) -> int:
        """Where its slot begins in the memory."""
        return self.index * self._slots.slot_bytes

    @property
    def sequence(self) -> int:
        """Number of the newest request."""
        return int(self._sequences[0])

    def attach(self, layout: SlotLayout) -> None:
        """Take the slot for a player whose spaces have this layout.

        Raises:
            ConfigError: it is not the layout of the pool's other players.
        """
        self._slot = Slot(self._slots.clear(self.index, layout), layout)
        self._sequences = self._slots.sequences[self.index : self.index + 1]
        self._has_slot = True

    # Requests.

    def begin_episode(self) -> int:
        """Number the request for an episode; the caller sends it on the channel."""
        sequence = self._episode_began = self.next_sequence()
        self._episodes += 1
        return sequence

    def try_send(self, action: Any) -> bool:
        """Send any action through the slot; False if its shape or kind has no place there.

        Args:
            action: of an env with several rows, a sequence of one for each.
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
        """Number the request for a step; the caller sends it on the channel."""
        self._sequences[0] += np.uint64(1)
        return self.sequence

    def delay(self, loops: int) -> None:
        """Make the next step's period this many game loops longer, for games in real time."""
        self._slot.words[Word.DELAY] = loops

    # Replies.

    def reply(self) -> int | None:
        """The flags of the reply to the newest request; None until all of it is there."""
        words = self._slot.words
        if words[Word.REPLY] != self.sequence:
            return None
        flags = words[Word.FLAGS]
        if flags & Flag.OUT_OF_BAND:
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
        return self._slot.words[Word.FLAGS]

    def recycle_due(self) -> str:
        """Why the game should be replaced, one of `RECYCLE_CAUSES`."""
        return RECYCLE_CAUSES[self.flags() >> Flag.CAUSE_SHIFT]

    def loop_cost_growth(self) -> float:
        """As of the newest episode that has ended, see `Player.loop_cost_growth`."""
        slot: Slot | None = vars(self).get("_slot")  # `unmap` may take it meanwhile
        return 0.0 if slot is None else slot.reals[Word.COST_GROWTH]

    @property
    def rows(self) -> int:
        """How many rows its env has in a batch."""
        return self._slot.layout.rows

    def rewards(self) -> list[float]:
        """The newest reward of each row."""
        rewards = self._slot.rewards
        if rewards is None:
            return [self._slot.reals[Word.REWARD]]
        return rewards.tolist()  # type: ignore[no-any-return]

    def out_of_band(self) -> tuple[Any, list[dict[str, Any]]]:
        """Observation (None if it is in the slot) of the newest reply, and each row's info."""
        if not self.flags() & Flag.OUT_OF_BAND or self._out_of_band is None:
            return None, [{} for _ in range(self.rows)]
        unpickled, self._unpickled = self._unpickled, None
        # Each caller gets objects of its own.
        observation, info = unpickled or pickle.loads(self._out_of_band.payload)
        return observation, [info] if self.rows == 1 else info

    def void(self) -> None:
        """The newest request will not be answered: the instance has died."""
        self._is_void = True

    @property
    def _answered(self) -> int:
        """Number of the newest request that has an answer."""
        return self.sequence - (self._is_void or self.reply() is None)

    def observations(self) -> list[Any]:
        """Each row's newest observation, objects of the caller's own."""
        if not self._slot.layout.observation.fixed:
            assert self._out_of_band is not None, "all its observations are out of band"
            return [pickle.loads(self._out_of_band.payload)[0]]
        return [self._slot.observation(self._answered, row) for row in range(self.rows)]

    def copy_rows(self, batch: list[Array], place: int) -> None:
        """Copy the observations' leaves to this place of a batch's leaves: (k, …), (k, rows, …)."""
        newest = self._slot.place(self._answered).observation
        for leaf, view in zip(batch, newest, strict=True):
            leaf[place] = view

    def mask(self, row: int) -> Array | None:
        """The action mask of a row's newest observation, copied; None if it has none."""
        if not self.flags() & Flag.MASKED:
            return None
        (mask,) = of_row([self._slot.place(self._answered).mask], self.rows, row)
        return mask.copy()

    def tick(self) -> Tick:
        """How late the newest step was, if its flags have `TICK`."""
        words = self._slot.words
        return Tick(self._slot.reals[Word.GAP], words[Word.LOST], words[Word.SKIPPED])

    def reset_kind(self) -> str:
        """How the newest episode was reached, one of `RESET_KINDS`."""
        return RESET_KINDS[self._slot.words[Word.RESET_KIND]]

    def progress(self) -> Progress:
        """How much has passed through; any thread may ask, and no step pays for it."""
        slot: Slot | None = vars(self).get("_slot")  # `unmap` may take it meanwhile
        if slot is None:
            return Progress()
        episodes, began = self._episodes, self._episode_began  # before the number that grows
        sequence = self.sequence
        return Progress(max(0, sequence - episodes), sequence - began, slot.reals[Word.RETURN])

    def close(self) -> None:
        """Give the slot back; what its worker may still write there is not read.

        What was in it can still be read, until `unmap`.
        """
        if self._has_slot:
            self._has_slot = False
            self._sequences = self._sequences.copy()
            self._slot = self._slot.copied()

    def unmap(self) -> None:
        """Let go of the memory. Nothing may be read after this."""
        vars(self).pop("_slot", None)


def _write(layout: SpaceLayout, views: list[Array], action: Any) -> bool:
    """Write an action into its views; False if a part has another shape, or would be rounded.

    Raises:
        KeyError, IndexError, TypeError, ValueError: a part is missing, or is no array.
    """
    for view, (_, part) in zip(views, layout.parts(action), strict=True):
        value = np.asarray(part)
        if value.shape != view.shape or not np.can_cast(value.dtype, view.dtype, "safe"):
            return False
        view[...] = value
    return True
