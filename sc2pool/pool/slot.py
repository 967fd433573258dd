"""A queue pair in shared memory: one slot each way, a sequence number, a doorbell.

    trainer                                   worker
    write action, request += 1, ring  ─────►  get_action()
    read the row when reply == request ◄────  put(): write row, reply = request last, ring

Rules: a slot has one writer; the sequence number is published last, so a torn row is never taken
for a whole one; numbers start anew with each instance, so no message outlives it. What has no
place in a slot (an info that is not empty, a value without fixed layout) travels *aside*, on the
instance's channel: the doorbell first, then the bytes.
"""

from __future__ import annotations

import asyncio
import mmap
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from sc2pool.errors import ObservationError, Phase, UserCodeError
from sc2pool.game.clock import Tick
from sc2pool.pool.doorbell import Doorbell
from sc2pool.pool.layout import Array, Leaf, SlotLayout, SpaceLayout
from sc2pool.pool.pickling import for_trainer
from sc2pool.tasks.queue_pair import QueuePair, Transition
from sc2pool.waiting import BlockingWait

# Header fields, as indices of 8-byte words; trainer and worker write different cache lines.
_REQUEST = 0
_REPLY = 8
_FLAGS = 9
_REWARD = 10
_RETURN = 11
_RUNG = 12
_GAP = 13
_LOST = 14
_SKIPPED = 15

RUNGS = ("reset", "restart", "create")
"""How an episode may have been reached: an env's own reset, or a rung of a game's reset ladder."""

TERMINATED = 1
TRUNCATED = 2
ASIDE = 4
MASKED = 8
WORN_OUT = 16
"""The game should be replaced at the end of its episode."""
TICK = 32
"""The game does not wait, and the slot says how late this step was."""
HELD = 64
"""The worker has stopped the game at this first observation."""
NOT_HELD = 128
"""It should have, and could not."""

TELLING = TERMINATED | TRUNCATED | ASIDE | TICK
"""Without any of these a reply is plain: an observation, a reward, and nothing else to tell."""


class Slot:
    """The views of one queue pair's memory; both ends have one."""

    def __init__(self, memory: mmap.mmap, layout: SlotLayout) -> None:
        buffer = memoryview(memory)
        self.memory = memory
        self.layout = layout
        self.words = buffer[: 16 * 8].cast("Q")
        self.reals = buffer[: 16 * 8].cast("d")
        self.actions = [leaf.view(buffer) for leaf in layout.action.leaves or ()]
        self.observations = [leaf.view(buffer) for leaf in layout.observation.leaves or ()]
        self.mask = layout.mask.view(buffer)
        self.action = _reader(layout.action, self.actions)
        """The action by itself, copied."""
        self.observation = _reader(layout.observation, self.observations)
        """The observation by itself, copied."""


def _reader(layout: SpaceLayout, views: list[Array]) -> Callable[[], Any]:
    """A function that copies the value out of these views; on each step's path, so chosen once."""
    if layout.is_array:
        (view,) = views
        return view.copy if view.ndim else partial(view.__getitem__, ())
    return lambda: layout.build(lambda index: views[index].copy()[()])


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

    def send_checked(self, action: Array) -> None:
        """Send an action known to fit a space of one array."""
        self._actions[0][...] = action
        self._ring()

    def _ring(self) -> None:
        self.sequence += 1
        self._words[_REQUEST] = self.sequence
        self._bell.ring()

    def replied(self) -> bool:
        """Whether the newest request has been answered."""
        return self._words[_REPLY] == self.sequence

    def reply_flags(self) -> int | None:
        """The flags of the answer to the newest request; None until it is there."""
        words = self._words
        return words[_FLAGS] if words[_REPLY] == self.sequence else None

    def flags(self) -> int:
        return self._words[_FLAGS]

    def reward(self) -> float:
        return self._reals[_REWARD]

    def episode_return(self) -> float:
        """Sum of the rewards since the newest episode's first observation."""
        return self._slot.reals[_RETURN]

    def copy_row(self, batch: list[Array], row: int) -> None:
        """Copy the observation's leaves into row `row` of a batch's leaves."""
        for leaf, view in zip(batch, self._slot.observations, strict=True):
            leaf[row] = view

    def tick(self) -> Tick:
        """How late the newest step was, where its flags have `TICK`."""
        words = self._words
        return Tick(self._slot.reals[_GAP], words[_LOST], words[_SKIPPED])

    def rung(self) -> str:
        """How the newest episode was reached, one of `RUNGS`."""
        return RUNGS[self._words[_RUNG]]

    def observation(self) -> Any:
        """The observation by itself, copied."""
        return self._slot.observation()

    def mask(self) -> Array:
        """The action mask of the newest observation, copied."""
        return self._slot.mask.copy()


class WorkerEnd(QueuePair):
    """The worker's end: what players get and put.

    Args:
        strict: see `Player.strict`.
        send_aside: sends (sequence, pickled (observation, info)) to the trainer.
        rung: asked, when an episode's first transition is put, how it was reached.
        worn_out: asked at an episode's end whether the game should be replaced.
        tick: asked at every step of a game in real time how late it was.
        hold: stops the game, where a reset wants it held; whether it could.
    """

    def __init__(
        self,
        slot: Slot,
        request_bell: Doorbell,
        reply_bell: Doorbell,
        *,
        strict: bool,
        send_aside: Callable[[int, bytes], None],
        rung: Callable[[], str],
        worn_out: Callable[[], bool],
        tick: Callable[[], Tick | None] | None = None,
        hold: Callable[[], bool] = lambda: False,
    ) -> None:
        self._slot = slot
        self._words = slot.words
        self._request_bell = request_bell
        self._request_wait: BlockingWait | None = None  # until an event loop runs
        self._reply_bell = reply_bell
        self._strict = strict
        self._array = slot.observations[0] if slot.layout.observation.is_array else None
        self._must_be_finite = strict and self._array is not None and self._array.dtype.kind == "f"
        self._send_aside = send_aside
        self._rung = rung
        self._worn_out = worn_out
        self._tick = tick
        self._hold = hold
        self._to_be_held = False
        self._sequence = 0
        self._phase = Phase.IDLE
        self._return = 0.0
        self._abandoned = False
        self._aside_action: tuple[int, Any] | None = None
        self._waiting: asyncio.Future[None] | None = None

    def begin(self, sequence: int, *, hold: bool = False) -> None:
        """A reset was asked for, under this number; the next `put` answers it.

        Args:
            hold: stop the game before that.
        """
        self._sequence = sequence
        self._to_be_held = hold
        self._phase = Phase.RESETTING
        self._abandoned = False

    def abandon(self) -> None:
        """End the running episode where it next waits for an action, never inside a step."""
        self._abandoned = True
        self.wake()

    def phase(self) -> Phase:
        """What the trainer waits for: the answer to a reset, to a step, or nothing."""
        return self._phase

    def wake(self) -> None:
        """Let `get_action` look again whether there is something for it."""
        waiting = self._waiting
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    def deliver_aside(self, sequence: int, action: Any) -> None:
        """An action came on the channel."""
        self._aside_action = (sequence, action)
        self.wake()

    async def get_action(self) -> Any:
        while True:
            if self._abandoned:
                raise asyncio.CancelledError
            aside = self._aside_action
            if aside is not None:
                self._aside_action = None
                self._sequence, action = aside
                break
            request = self._words[_REQUEST]
            if request > self._sequence:
                self._sequence = request
                action = self._slot.action()
                break
            if self._request_wait is None:
                self._request_wait = BlockingWait(self._request_bell.listening)
            if not self._request_wait.wait():
                await self._ring_in_loop()
        self._phase = Phase.STEPPING
        return action

    def _is_plain(self, array: Array, observation: Any) -> bool:
        """Whether it can be copied as it is; where not, `write_observation` casts or complains."""
        return (
            type(observation) is np.ndarray
            and observation.dtype == array.dtype
            and observation.shape == array.shape
            and (not self._must_be_finite or bool(np.isfinite(observation).all()))
        )

    async def _ring_in_loop(self) -> None:
        """Let the event loop run until the doorbell rings, or `wake` is called."""
        loop = asyncio.get_running_loop()
        self._waiting = loop.create_future()
        loop.add_reader(self._request_bell.listening, self._on_ring)
        try:
            await self._waiting
        finally:
            loop.remove_reader(self._request_bell.listening)

    def _on_ring(self) -> None:
        self._request_bell.quiet()
        self.wake()

    def put(self, transition: Transition) -> None:
        if self._phase is Phase.IDLE:
            raise UserCodeError("a transition was put that no action had asked for")
        observation, reward, terminated, truncated, info, mask = transition
        slot = self._slot
        flags = TERMINATED * bool(terminated) | TRUNCATED * bool(truncated)
        if flags and self._worn_out():
            flags |= WORN_OUT
        aside = bool(info)
        array = self._array
        if array is not None and self._is_plain(array, observation):
            array[...] = observation
            observation = None
        elif slot.layout.observation.fixed:
            write_observation(slot.layout.observation, slot.observations, observation, self._strict)
            observation = None
        else:
            aside = True
        if mask is not None:
            _write_mask(slot.layout.mask, slot.mask, mask)
            flags |= MASKED
        if self._tick is not None:
            flags |= self._write_tick(self._tick())
        slot.reals[_REWARD] = reward
        # Pickled before anything is published: it may fail, and is part of the step then.
        payload = for_trainer((observation, dict(info))) if aside else b""
        if self._phase is Phase.RESETTING:
            self._return = 0.0
            self._words[_RUNG] = RUNGS.index(self._rung())
            if self._to_be_held:
                flags |= HELD if self._hold() else NOT_HELD
        self._words[_FLAGS] = flags | ASIDE * aside
        self._return += reward
        slot.reals[_RETURN] = self._return
        self._phase = Phase.IDLE
        self._words[_REPLY] = self._sequence
        self._reply_bell.ring()
        if aside:
            self._send_aside(self._sequence, payload)

    def _write_tick(self, tick: Tick | None) -> int:
        if tick is None:
            return 0
        self._slot.reals[_GAP] = tick.gap_s
        self._words[_LOST] = tick.lost_periods
        self._words[_SKIPPED] = tick.skipped_loops
        return TICK


def write_observation(
    layout: SpaceLayout, views: list[Array], observation: Any, strict: bool
) -> None:
    """Copy an observation into its views.

    Raises:
        ObservationError: a part is missing or of another shape; where `strict`, also another
            dtype, or a value that is not finite.
    """
    try:
        parts = list(layout.parts(observation))
    except (KeyError, IndexError, TypeError) as error:
        raise ObservationError(
            f"observation of type {type(observation).__name__} does not have the parts of "
            f"{layout.space}: {error!r}"
        ) from error
    for view, (leaf, part) in zip(views, parts, strict=True):
        value = np.asarray(part)
        if value.shape != leaf.shape or (strict and value.dtype != leaf.dtype):
            raise ObservationError(
                f"observation{_where(leaf)} has shape {value.shape} and dtype {value.dtype}, "
                f"expected shape {leaf.shape} and dtype {leaf.dtype}"
            )
        if strict and value.dtype.kind == "f" and not np.isfinite(value).all():
            bad = np.argwhere(~np.isfinite(value))[0].tolist()
            raise ObservationError(
                f"observation{_where(leaf)} is not finite at index {bad}: "
                f"{value[tuple(bad)]}; expected finite values"
            )
        view[...] = value


def _write_mask(leaf: Leaf, view: Array, mask: Array) -> None:
    value = np.asarray(mask)
    if value.shape != leaf.shape or value.dtype != leaf.dtype:
        raise ObservationError(
            f"action mask has shape {value.shape} and dtype {value.dtype}, "
            f"expected shape {leaf.shape} and dtype {leaf.dtype}"
        )
    view[...] = value


def _where(leaf: Leaf) -> str:
    return "".join(f"[{key!r}]" for key in leaf.path)
