"""The worker's end of a queue pair: what players get and put. See `slot`.

Rules: an observation is checked before it is published, and an error names the part that is wrong
by its path; a transition answers one request, and none is put unasked; the wait for an action
blocks the worker if nothing else in it wants a turn (`sc2pool.waiting`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np

from sc2pool.errors import ObservationError, Phase, UserCodeError
from sc2pool.game.clock import Tick
from sc2pool.pool.ipc.layout import Array, Leaf, SpaceLayout
from sc2pool.pool.ipc.pickling import for_trainer
from sc2pool.pool.ipc.slot import (
    DELAY_WORD,
    FLAGS_WORD,
    GAP_WORD,
    HELD,
    LOST_WORD,
    MASKED,
    NOT_HELD,
    OUT_OF_BAND,
    RECYCLE_DUE,
    REPLY_WORD,
    REQUEST_WORD,
    RESET_KIND_WORD,
    RESET_KINDS,
    RETURN_WORD,
    REWARD_WORD,
    SKIPPED_WORD,
    TERMINATED,
    TICK,
    TRUNCATED,
    Slot,
)
from sc2pool.pool.worker.bells import Bells
from sc2pool.tasks.player import Player
from sc2pool.tasks.queue_pair import QueuePair, Transition


class WorkerEnd(QueuePair):
    """The worker's end: what players get and put.

    Args:
        player: says how strictly to check, how an episode was reached, whether its game is to be
            replaced, and how late a step was.
        send_out_of_band: sends (sequence, pickled (observation, info)) to the trainer.
        hold: stops the game at its first observation; returns whether it could.
    """

    def __init__(
        self,
        slot: Slot,
        bells: Bells,
        player: Player,
        *,
        send_out_of_band: Callable[[int, bytes], None],
        hold: Callable[[], bool],
    ) -> None:
        self._slot = slot
        self._words = slot.words
        self._bells = bells
        self._player = player
        self._strict = strict = player.strict
        observation = slot.layout.observation
        self._leaf = observation.leaves[0] if observation.is_array and observation.leaves else None
        self._must_be_finite = strict and self._leaf is not None and self._leaf.dtype.kind == "f"
        self._send_out_of_band = send_out_of_band
        self._realtime = player.realtime
        self._hold = hold
        self._to_be_held = False
        self._sequence = 0
        self._phase = Phase.IDLE
        self._return = 0.0
        self._abandoned = False
        self._action_out_of_band: tuple[int, Any] | None = None

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
        self._bells.wake(self)

    @property
    def abandoned(self) -> bool:
        """Whether the running episode is to end before its time."""
        return self._abandoned

    def phase(self) -> Phase:
        """What the trainer waits for: the answer to a reset, to a step, or nothing."""
        return self._phase

    def is_requested(self) -> bool:
        """Whether a request is in the row that has not been taken."""
        return self._words[REQUEST_WORD] > self._sequence

    def deliver(self, sequence: int, action: Any) -> None:
        """An action came on the channel."""
        self._action_out_of_band = (sequence, action)
        self._bells.wake(self)

    async def get_action(self) -> Any:
        while True:
            if self._abandoned:
                raise asyncio.CancelledError
            out_of_band = self._action_out_of_band
            if out_of_band is not None:
                self._action_out_of_band = None
                self._sequence, action = out_of_band
                break
            request = self._words[REQUEST_WORD]
            if request > self._sequence:
                self._sequence = request
                action = self._slot.action()
                break
            await self._bells.wait(self)
        self._phase = Phase.STEPPING
        if self._realtime and self._words[DELAY_WORD]:
            self._player.delay(self._words[DELAY_WORD])
        return action

    def _is_plain(self, leaf: Leaf, observation: Any) -> bool:
        """Whether it can be copied as it is; where not, `write_observation` casts or complains."""
        return (
            type(observation) is np.ndarray
            and observation.dtype == leaf.dtype
            and observation.shape == leaf.shape
            and (not self._must_be_finite or bool(np.isfinite(observation).all()))
        )

    def put(self, transition: Transition) -> None:
        if self._phase is Phase.IDLE:
            raise UserCodeError("a transition was put that no action had asked for")
        observation, reward, terminated, truncated, info, mask = transition
        slot = self._slot
        flags = 0
        if terminated or truncated:
            flags = TERMINATED * bool(terminated) | TRUNCATED * bool(truncated)
            if self._player.recycle_due:
                flags |= RECYCLE_DUE
        out_of_band = bool(info)
        leaf = self._leaf
        if leaf is not None and self._is_plain(leaf, observation):
            slot.observations[0][...] = observation
            observation = None
        elif slot.layout.observation.fixed:
            write_observation(slot.layout.observation, slot.observations, observation, self._strict)
            observation = None
        else:
            out_of_band = True
        if mask is not None:
            _write_mask(slot.layout.mask, slot.mask, mask)
            flags |= MASKED
        if self._realtime:
            flags |= self._write_tick(self._player.tick())
        slot.reals[REWARD_WORD] = reward
        # Pickled before anything is published: it may fail, and is part of the step then.
        payload = for_trainer((observation, dict(info))) if out_of_band else b""
        if self._phase is Phase.RESETTING:
            self._return = 0.0
            self._words[RESET_KIND_WORD] = RESET_KINDS.index(self._player.reset_kind())
            if self._to_be_held:
                flags |= HELD if self._hold() else NOT_HELD
        self._words[FLAGS_WORD] = flags | OUT_OF_BAND * out_of_band
        self._return += reward
        slot.reals[RETURN_WORD] = self._return
        self._phase = Phase.IDLE
        self._words[REPLY_WORD] = self._sequence
        self._bells.ring()
        if out_of_band:
            self._send_out_of_band(self._sequence, payload)

    def _write_tick(self, tick: Tick | None) -> int:
        if tick is None:
            return 0
        self._slot.reals[GAP_WORD] = tick.gap_s
        self._words[LOST_WORD] = tick.lost_periods
        self._words[SKIPPED_WORD] = tick.skipped_loops
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
