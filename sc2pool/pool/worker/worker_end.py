"""The worker's part of the queue pairs: its doorbells, and its end of each pair. See `slots`.

The instances of a worker share its doorbells. A ring may be for any of the instances, so each
waiting instance checks its slot. An instance may block the worker's thread while it waits, if no
other task needs a turn (`sc2pool.waiting`).

Players get actions from the worker's end of a pair, and put transitions into it. Rules:
* An observation is checked before it is published. An error names the path of the wrong part, the
  given value and the expected value. If there are several rows, the error first names the row.
* Each transition must answer one request, or `put` raises an error. All rows of an env answer
  together.
* Compiled code writes plain transitions. This module writes or refuses all other transitions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from gymnasium import spaces

from sc2pool.errors import ObservationError, Phase, UserCodeError
from sc2pool.game.clock import Tick
from sc2pool.pool.ipc import for_trainer
from sc2pool.pool.queues.doorbell import Doorbell
from sc2pool.pool.queues.layout import Array, Leaf, Path, SpaceLayout, space_layout
from sc2pool.pool.queues.slots import RESET_KINDS, Flag, Slot, Word, of_row
from sc2pool.protocol import compiled
from sc2pool.tasks.player import RECYCLE_CAUSES, Player
from sc2pool.tasks.queue_pair import QueuePair, Transition
from sc2pool.waiting import BlockingWait, Turn, Turns, WorkerLoop


class Ringing:
    """Wakes the trainer, immediately or (with `in_turns`) by one ring for all replies of a turn.

    `is_due` is True while a ring is delayed. `later` is called whenever a ring is delayed.
    """

    def __init__(self, reply: Doorbell, later: Callable[[], None]) -> None:
        self._reply = reply
        self._later = later
        self.in_turns = False
        self.is_due = False

    def ring(self) -> None:
        if not self.in_turns:
            self._reply.ring()
        elif not self.is_due:
            self.is_due = True
            self._later()


class Doorbells:
    """The worker's ends of its doorbells.

    Attributes:
        blocked_in: the loop that the newest `wait` blocked, or None if it blocked no loop.
        epoll: the descriptor of the epoll of this `wait`, which watches the loop and `listening`.
    """

    def __init__(self, request: Doorbell, reply: Doorbell) -> None:
        self._request = request
        self._reply = reply
        self._block: BlockingWait | None = None  # None until an event loop runs
        self.listening = request.listening
        self.blocked_in: WorkerLoop | None = None
        self.epoll = -1
        self._listens = False
        self._turns: Turns | None = None
        self._soon: Callable[[Callable[[], None]], object] | None = None
        """A function that schedules a call for the end of a turn; None before `_listen`."""
        fast, later = compiled.fast, self._ring_later
        self._ringing = (
            fast.Ringing(reply.ringing, reply.ring, later) if fast else Ringing(reply, later)
        )
        self.ring: Callable[[], None] = self._ringing.ring
        self._waiting: dict[WorkerEnd, Turn] = {}

    def _ring_later(self) -> None:
        assert self._soon is not None, "it rings later only while it listens"
        self._soon(self._ring_if_due)

    def _ring_if_due(self) -> None:
        if self._ringing.is_due:
            self._ringing.is_due = False
            self._reply.ring()

    def wait(self, end: WorkerEnd) -> Turn | None:
        """Wait for a ring or `wake`; return a turn to await, or None if the wait is over.

        The caller must check for a request before this call and again after it.
        """
        if self._block is None:
            self._block = BlockingWait(self._request.listening)
        if self._block.possible:
            if self._listens:
                self._stop_listening()
            self._ring_if_due()
            rung = self._block.wait()
            self.blocked_in, self.epoll = self._block.loop, self._block.epoll
            if rung:
                return None
        if not self._listens:
            self._listen()
        if end.is_requested():
            return None  # the request has arrived before `_listen`
        turn = self._waiting.get(end)
        if turn is None:
            turn = self._waiting[end] = Turn(asyncio.get_running_loop())
        return turn

    def _listen(self) -> None:
        self._listens = self._ringing.in_turns = True
        self.blocked_in = None
        loop, turns = _loop_and_turns()
        self._turns, self._soon = turns, loop.call_soon if turns is None else turns.at_end
        if turns is None:
            loop.add_reader(self._request.listening, self._on_ring)
        else:
            turns.watch(self._request.listening, self._on_ring)

    def _stop_listening(self) -> None:
        self._listens = self._ringing.in_turns = False
        loop, turns = _loop_and_turns()
        if turns is None:
            loop.remove_reader(self._request.listening)
        else:
            turns.forget(self._request.listening)

    def _on_ring(self) -> None:
        if self._turns is None:  # asyncio's own wait is level-triggered
            self._request.quiet()
        for end, turn in list(self._waiting.items()):
            if end.is_requested():
                turn.go_on()

    def wake(self, end: WorkerEnd) -> None:
        """Wake this end of a queue pair, if it waits."""
        turn = self._waiting.get(end)
        if turn is not None:
            turn.go_on_soon()

    def forget(self, end: WorkerEnd) -> None:
        """Remove an end that no longer waits."""
        self._waiting.pop(end, None)


def _loop_and_turns() -> tuple[asyncio.AbstractEventLoop, Turns | None]:
    loop = asyncio.get_running_loop()
    return loop, loop.turns if isinstance(loop, WorkerLoop) else None


def write_observation(
    layout: SpaceLayout, views: list[Array], observation: Any, strict: bool, name: str = ""
) -> None:
    """Copy an observation into its views; the message of an error begins with the row's `name`.

    Raises ObservationError if a part is missing or has another shape. With `strict`,
    ObservationError is also raised if a part has another dtype or a value that is not finite.
    """
    try:
        parts = list(layout.parts(observation))
    except (KeyError, IndexError, TypeError) as error:
        raise _lacks_parts(name, (), observation, layout.space, error) from error
    for view, (leaf, part) in zip(views, parts, strict=True):
        array = _array(leaf, part, strict, name, leaf.path)
        try:
            view[...] = array
        except (TypeError, ValueError) as error:  # cannot happen if `strict`
            given = f"is {part!r:.80} of type {type(part).__name__}"
            raise _wrong(name, leaf.path, f"{given}, expected dtype {leaf.dtype}") from error


def check_observation(space: spaces.Space[Any], observation: Any, path: Path = ()) -> None:
    """Check an observation that is to be pickled, or a part of the observation (at `path`).

    Raises the same errors as a strict `write_observation`. A part without a fixed layout must be an
    element of its space.
    """
    if isinstance(space, spaces.Dict | spaces.Tuple):
        parts = space.spaces.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces)
        for key, part in parts:
            try:
                value = observation[key]
            except (KeyError, IndexError, TypeError) as error:
                raise _lacks_parts("", path, observation, space, error) from error
            check_observation(part, value, (*path, key))
    elif leaves := space_layout(space, 0).leaves:
        _array(leaves[0], observation, True, "", path)
    elif not space.contains(observation):
        given = f"{observation!r:.80} of type {type(observation).__name__}"
        raise _wrong("", path, f"is {given}, expected an element of {space}")


def _array(leaf: Leaf, value: Any, strict: bool, name: str, path: Path) -> Array:
    """The value as an array that fits the leaf; ObservationError if it does not fit."""
    try:
        array = np.asarray(value)
    except ValueError as error:
        problem = f"does not form an array of shape {leaf.shape}: {error}"
        raise _wrong(name, path, problem) from error
    if array.shape != leaf.shape or (strict and array.dtype != leaf.dtype):
        given = f"has shape {array.shape} and dtype {array.dtype}"
        if array.dtype == object and array.ndim == 0:  # `value` is, for example, None or a dict
            given = f"is {value!r:.80} of type {type(value).__name__}"
        raise _wrong(name, path, f"{given}, expected shape {leaf.shape} and dtype {leaf.dtype}")
    if strict and array.dtype.kind == "f" and not np.isfinite(array).all():
        bad = np.argwhere(~np.isfinite(array))[0].tolist()
        given = f"is not finite at index {bad}: {array[tuple(bad)]}"
        raise _wrong(name, path, f"{given}; expected finite values")
    return array


def write_mask(leaf: Leaf, view: Array, mask: Array, name: str = "") -> None:
    """Copy an action mask; ObservationError if it does not fit or the space has no masks."""
    if leaf.shape == (0,):
        raise ObservationError(
            f"{name}action mask is {mask!r:.80}, expected none: only Discrete, MultiDiscrete and "
            "MultiBinary actions have masks"
        )
    try:
        value = np.asarray(mask)
    except ValueError as error:
        problem = f"does not form an array of shape {leaf.shape}: {error}"
        raise ObservationError(f"{name}action mask {problem}") from error
    if value.shape != leaf.shape or value.dtype != leaf.dtype:
        raise ObservationError(
            f"{name}action mask has shape {value.shape} and dtype {value.dtype}, "
            f"expected shape {leaf.shape} and dtype {leaf.dtype}"
        )
    view[...] = value


def _lacks_parts(
    name: str, path: Path, given: Any, space: spaces.Space[Any], error: Exception
) -> ObservationError:
    kind = type(given).__name__
    return _wrong(name, path, f"of type {kind} does not have the parts of {space}: {error!r}")


def _wrong(name: str, path: Path, problem: str) -> ObservationError:
    where = "".join(f"[{key!r}]" for key in path)
    return ObservationError(f"{name}observation{where} {problem}")


class WorkerEnd(QueuePair):
    """The worker's end: a player gets actions from it and puts transitions into it.

    `send_out_of_band` sends an `OutOfBand` message with the sequence number and payload that it
    gets. `hold` stops the game at its first observation, and returns False if it could not.
    """

    def __init__(
        self,
        slot: Slot,
        doorbells: Doorbells,
        player: Player,
        *,
        send_out_of_band: Callable[[int, bytes], None],
        hold: Callable[[], bool],
    ) -> None:
        self._slot = slot
        self._words = slot.words
        self._doorbells = doorbells
        self._player = player
        self._strict = strict = player.strict
        observation = slot.layout.observation
        rows = slot.layout.rows
        one_array = rows == 1 and observation.is_array
        self._leaf = observation.leaves[0] if one_array and observation.leaves else None
        self._must_be_finite = strict and self._leaf is not None and self._leaf.dtype.kind == "f"
        self._ring = doorbells.ring
        fast, words = compiled.fast, np.asarray(slot.words)
        self._requests = fast.Requests(words, request=Word.REQUEST) if fast else None
        self._row = None
        if fast and self._leaf is not None and not player.realtime:
            places = [(place.observation[0], place.mask) for place in map(slot.place, range(2))]
            self._row = fast.Row(
                words,
                *(array for place in places for array in place),
                must_be_finite=self._must_be_finite,
                reply=Word.REPLY,
                flags=Word.FLAGS,
                reward=Word.REWARD,
                total=Word.RETURN,
                masked=Flag.MASKED,
            )
        self._send_out_of_band = send_out_of_band
        self._realtime = player.realtime
        self._hold = hold
        self._to_be_held = False
        self._sequence = 0
        self.phase = Phase.IDLE
        """The phase is `RESETTING` or `STEPPING` while the trainer awaits a reply, else `IDLE`."""
        self.abandoned = False
        self._action_out_of_band: tuple[int, Any] | None = None

    def begin(self, sequence: int, *, hold: bool = False) -> None:
        """Begin a reset, which the next `put` answers; if `hold`, `put` first stops the game."""
        self._sequence = sequence
        self._to_be_held = hold
        self.phase = Phase.RESETTING
        self.abandoned = False

    def abandon(self) -> None:
        """End the running episode when it next waits for an action, never inside a step."""
        self.abandoned = True
        self._doorbells.wake(self)

    def is_requested(self) -> bool:
        """True if the next request is in the slot.

        The slot may already belong to a new instance, whose requests have other numbers
        (`Slots.clear`).
        """
        return self._words[Word.REQUEST] == self._sequence + 1

    def deliver(self, sequence: int, action: Any) -> None:
        """Take an action that was received on the channel."""
        self._action_out_of_band = (sequence, action)
        self._doorbells.wake(self)

    async def get_action(self) -> Any:
        requests = self._requests
        while True:
            if self.abandoned:
                raise asyncio.CancelledError
            out_of_band = self._action_out_of_band
            if out_of_band is not None:
                self._action_out_of_band = None
                self._sequence, action = out_of_band
                break
            blocked = self._doorbells.blocked_in
            if requests is None or blocked is None or blocked.tasks > blocked.own_tasks:
                request = self._words[Word.REQUEST]
            else:  # like `Doorbells.wait` below, but faster
                request = requests.wait(
                    self._sequence, self._doorbells.epoll, self._doorbells.listening
                )
            if request == self._sequence + 1:
                self._sequence = request
                action = self._slot.action()
                break
            turn = self._doorbells.wait(self)
            if turn is not None:
                await turn
        self.phase = _STEPPING
        if self._realtime and self._words[Word.DELAY]:
            self._player.delay(self._words[Word.DELAY])
        return action

    async def get_actions(self) -> Sequence[Any]:
        actions = await self.get_action()
        return actions if self._slot.layout.rows > 1 else [actions]

    def _is_plain(self, leaf: Leaf, observation: Any) -> bool:
        """True if `observation` can be copied unchanged, without `write_observation`."""
        return (
            type(observation) is np.ndarray
            and observation.dtype == leaf.dtype
            and observation.shape == leaf.shape
            and (not self._must_be_finite or bool(np.isfinite(observation).all()))
        )

    def put(self, transition: Transition) -> None:
        row = self._row
        if row is not None and self.phase is _STEPPING and row.put(self._sequence, transition):
            self.phase = _IDLE
            self._ring()
            return
        if self.phase is Phase.IDLE:
            raise UserCodeError(_UNASKED)
        observation, reward, terminated, truncated, info, mask = transition
        slot = self._slot
        flags = self._flags_of_end(terminated, truncated) if terminated or truncated else 0
        out_of_band = bool(info)
        leaf = self._leaf
        views, mask_view = slot.place(self._sequence)
        if leaf is not None and self._is_plain(leaf, observation):
            views[0][...] = observation
            observation = None
        elif slot.layout.rows > 1:
            raise UserCodeError(f"its env has {slot.layout.rows} rows: use put_rows, not put")
        elif slot.layout.observation.fixed:
            write_observation(slot.layout.observation, views, observation, self._strict)
            observation = None
        else:
            if self._strict:
                check_observation(slot.layout.observation.space, observation)
            out_of_band = True
        if mask is not None:
            write_mask(slot.layout.mask, mask_view, mask)
            flags |= Flag.MASKED
        slot.reals[Word.REWARD] = reward
        # Pickle before anything is published: an error of pickling is an error of this step.
        self._publish(
            flags, reward, for_trainer((observation, dict(info))) if out_of_band else None
        )

    def put_rows(self, transitions: Sequence[Transition]) -> None:
        slot, layout = self._slot, self._slot.layout
        if len(transitions) != layout.rows:
            raise UserCodeError(
                f"{len(transitions)} transitions were put, expected one for each of "
                f"{layout.rows} rows"
            )
        first = transitions[0]
        if layout.rows == 1:
            self.put(first)
            return
        if self.phase is Phase.IDLE:
            raise UserCodeError(_UNASKED)
        flags = self._flags_of_end(first.terminated, first.truncated)
        views, mask_view = slot.place(self._sequence)
        for row, one in enumerate(transitions):
            if (one.terminated, one.truncated) != (first.terminated, first.truncated):
                raise UserCodeError(
                    "the rows of an env have one episode: row 0 says terminated="
                    f"{first.terminated}, truncated={first.truncated}, and row {row} "
                    f"terminated={one.terminated}, truncated={one.truncated}"
                )
            if (one.action_masks is None) != (first.action_masks is None):
                raise ObservationError(
                    "either all rows of an env have action masks, or none: row 0 and row "
                    f"{row} differ"
                )
            name = f"row {row}: "
            of_one = of_row(views, layout.rows, row)
            write_observation(layout.observation, of_one, one.observation, self._strict, name)
            if one.action_masks is not None:
                (of_one_mask,) = of_row([mask_view], layout.rows, row)
                write_mask(layout.mask, of_one_mask, one.action_masks, name)
                flags |= Flag.MASKED
        assert slot.rewards is not None, "several rows have an array of rewards"
        slot.rewards[...] = [one.reward for one in transitions]
        infos = [dict(one.info) for one in transitions]
        self._publish(flags, first.reward, for_trainer((None, infos)) if any(infos) else None)

    def _flags_of_end(self, terminated: bool, truncated: bool) -> int:
        flags = Flag.TERMINATED * bool(terminated) | Flag.TRUNCATED * bool(truncated)
        if not flags:
            return 0
        self._slot.reals[Word.COST_GROWTH] = self._player.loop_cost_growth()
        return flags | RECYCLE_CAUSES.index(self._player.recycle_due) << Flag.CAUSE_SHIFT

    def _publish(self, flags: int, reward: float, payload: bytes | None) -> None:
        """Answer the request with the first row's `reward`. A `payload` is sent out of band."""
        slot = self._slot
        # The `gymnasium.Env` of a real-time game also has ticks; its info is never empty.
        if self._realtime or payload is not None:
            flags |= self._write_tick(self._player.tick())
        if self.phase is Phase.RESETTING:
            slot.reals[Word.RETURN] = 0.0
            self._words[Word.RESET_KIND] = RESET_KINDS.index(self._player.reset_kind())
            if self._to_be_held:
                flags |= Flag.HELD if self._hold() else Flag.NOT_HELD
        self._words[Word.FLAGS] = flags if payload is None else flags | Flag.OUT_OF_BAND
        slot.reals[Word.RETURN] += reward
        self.phase = Phase.IDLE
        self._words[Word.REPLY] = self._sequence
        self._ring()
        if payload is not None:
            self._send_out_of_band(self._sequence, payload)

    def _write_tick(self, tick: Tick | None) -> int:
        if tick is None:
            return 0
        self._slot.reals[Word.GAP] = tick.gap_s
        self._words[Word.LOST] = tick.lost_periods
        self._words[Word.SKIPPED] = tick.skipped_loops
        return Flag.TICK


_STEPPING: Final = Phase.STEPPING
_IDLE: Final = Phase.IDLE
_UNASKED: Final = "a transition was put without a pending request"
