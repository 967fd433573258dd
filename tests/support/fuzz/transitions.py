"""Compares the compiled step path with pure Python, on random transitions that a worker puts.

After each transition both paths must have the same bytes in the slot and the same messages outside
it. Both paths must also have rung equally often and raised the same error with the same words.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import suppress
from types import MappingProxyType, SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
from gymnasium import spaces

from sc2pool.pool.queues.layout import slot_layout
from sc2pool.pool.queues.slots import Slot, Word
from sc2pool.pool.worker.worker_end import WorkerEnd
from sc2pool.protocol import compiled
from sc2pool.tasks.queue_pair import Transition

Rng = random.Random

SPACES = (
    spaces.Box(-10, 10, (2,), np.float32),
    spaces.Box(-10, 10, (3, 4), np.float32),
    spaces.Box(-10, 10, (5,), np.float64),
    spaces.Box(-10, 10, (), np.float32),
    spaces.Box(-10, 10, (3,), np.float16),
    spaces.Box(-10, 10, (3,), np.dtype(">f4")),
    spaces.Box(0, 255, (4, 4, 3), np.uint8),
    spaces.Box(-9, 9, (2,), np.int64),
    spaces.MultiBinary(3),
    spaces.Discrete(4),
    spaces.Dict(a=spaces.Discrete(2), b=spaces.Box(-1, 1, (2,), np.float32)),
    spaces.Text(4),
)
ACTIONS = 3
"""The number of a task's actions, which is the length of a mask."""
PER_SPACE = 40
"""The number of transitions put into one slot, so that sums over steps and leftovers show."""


class Subclass(np.ndarray):
    """An array class of a user, which may behave in any way."""


class Putting:
    """A worker's end of a queue pair in its own memory; shows all effects of transitions."""

    def __init__(self, space: spaces.Space[Any], *, strict: bool, rows: int = 1) -> None:
        layout = slot_layout(space, spaces.Discrete(ACTIONS), rows)
        self._memory = bytearray(layout.size_bytes)
        self._slot = Slot(memoryview(self._memory), layout)
        self._seen: Counter[str] = Counter()
        self._sent: list[tuple[int, bytes]] = []
        player: Any = SimpleNamespace(
            strict=strict,
            realtime=False,
            recycle_due="silence",
            loop_cost_growth=lambda: 2.5,
            reset_kind=lambda: "create",
            tick=lambda: None,
        )
        doorbells: Any = SimpleNamespace(ring=lambda: self._seen.update(["ring"]), blocked_in=None)
        self.end = WorkerEnd(
            self._slot,
            doorbells,
            player,
            send_out_of_band=lambda *message: self._sent.append(message),
            hold=lambda: True,
        )

    def request(self, *, reset: bool) -> None:
        """The trainer asks for an episode, or for a step."""
        if reset:
            self._slot.words[Word.REQUEST] += 1
            self.end.begin(self._slot.words[Word.REQUEST])
        else:
            self._slot.words[Word.REQUEST] += 1
            finished(self.end.get_action())

    def put(self, transition: Transition) -> list[Any]:
        """Put a transition; returns all visible effects."""
        error = None
        try:
            self.end.put(transition)
        except Exception as raised:
            error = f"{type(raised).__name__}: {raised}"
        return [error, bytes(self._memory), self._sent, dict(self._seen), self.end.phase]


def finished(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine that has nothing to wait for."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("it waits")


def compare(count: int, seed: int, shown: int = 5) -> tuple[list[str], Counter[str]]:
    """Compare both paths on this number of transitions.

    Args:
        count: The number of transitions.
        seed: The seed of the drawn transitions.
        shown: The number of differences after which the comparison ends.

    Returns:
        The differences, and how many transitions the compiled path accepted, or left to Python.
    """
    rng = random.Random(seed)
    found: list[str] = []
    verdicts: Counter[str] = Counter()
    while verdicts.total() < count and len(found) < shown:
        space, strict = rng.choice(SPACES), rng.random() < 0.7
        ours = Putting(space, strict=strict)
        with mock.patch.object(compiled, "fast", None):
            pure = Putting(space, strict=strict)
        taken = count_taken(ours.end)
        for number in range(PER_SPACE):
            reset = number == 0 or rng.random() < 0.1
            transition = drawn(space, rng)
            before = taken.total()
            for one in (ours, pure):
                one.request(reset=reset)
            got, expected = ours.put(transition), pure.put(transition)
            verdicts["accepted" if taken.total() > before else "left"] += 1
            if got != expected:
                found.append(f"{transition} for {space}\n  {got}\n  pure Python: {expected}")
                break
            if got[0] is not None:  # after this error a worker would end
                break
    return found, verdicts


def count_taken(end: WorkerEnd) -> Counter[str]:
    """A counter of the transitions that the compiled path takes from now on."""
    taken: Counter[str] = Counter()
    row = end._row
    if row is not None:

        def put(sequence: int, transition: Transition) -> bool:
            plain = row.put(sequence, transition)
            taken.update(["taken"] * plain)
            return plain

        end._row = SimpleNamespace(put=put)  # type: ignore[assignment]
    return taken


# ---- random draws -------------------------------------------------------------------------------


def drawn(space: spaces.Space[Any], rng: Rng) -> Transition:
    """Draw a transition; half of the drawn transitions contain nothing unusual."""
    space.seed(rng.randrange(1 << 30))
    observation = space.sample()
    if rng.random() < 0.5:
        return Transition(observation, rng.uniform(-1, 1), False, False, {}, a_mask(rng))
    if rng.random() < 0.6:
        with suppress(TypeError, ValueError):  # some changes fit only some spaces
            observation = rng.choice(OTHERS)(observation, rng)
    return Transition(
        observation,
        rng.choice((0.5, -0.0, 1e30, float("nan"), 3, True, np.float32(0.25), np.float64(2.5))),
        rng.choice((False, False, False, True, np.False_, np.True_, 0, 1)),
        rng.choice((False, False, False, True, np.False_, 0)),
        rng.choice(INFOS),
        rng.choice((None, a_mask(rng), *WRONG_MASKS)) if rng.random() < 0.3 else None,
    )


def a_mask(rng: Rng) -> Any:
    """An action mask, sometimes not in one block of memory, or None."""
    mask = np.array([rng.random() < 0.5 for _ in range(ACTIONS)])
    return rng.choice((None, mask, np.repeat(mask, 2)[::2]))


INFOS: tuple[Any, ...] = (
    {},
    {},
    {},
    {},
    MappingProxyType({}),
    Counter(),
    {"k": 1},
    {"lock": threading.Lock()},
)
WRONG_MASKS: tuple[Any, ...] = (
    np.ones(ACTIONS + 1, np.bool_),
    np.ones(ACTIONS, np.int8),
    np.ones((1, ACTIONS), np.bool_),
    [True] * ACTIONS,
    "mask",
)


def spoilt(number: float) -> Callable[[Any, Rng], Any]:
    """Puts a number at a random place of an observation."""

    def change(observation: Any, rng: Rng) -> Any:
        if isinstance(observation, np.ndarray) and observation.dtype.kind == "f":
            changed = observation.copy()
            changed.flat[rng.randrange(changed.size)] = number
            return changed
        return observation

    return change


def read_only(observation: Any, _: Rng) -> Any:
    copy = np.array(observation)
    copy.flags.writeable = False
    return copy


def unaligned(observation: Any, _: Rng) -> Any:
    array = np.asarray(observation)
    place = np.zeros(array.nbytes + 1, np.uint8)[1:].view(array.dtype).reshape(array.shape)
    place[...] = array
    return place


OTHERS: tuple[Callable[[Any, Rng], Any], ...] = (
    *(spoilt(number) for number in (np.nan, np.inf, -np.inf, 1e-40, 65504.0)),
    read_only,
    unaligned,
    lambda observation, _: np.asarray(observation).astype(np.float64),
    lambda observation, _: np.asarray(observation).astype(np.longlong),
    lambda observation, _: np.asfortranarray(observation),
    lambda observation, _: np.asarray(observation).T,
    lambda observation, _: np.asarray(observation)[..., None],
    lambda observation, _: np.repeat(np.asarray(observation)[None], 2, 0)[1],
    lambda observation, _: np.repeat(np.atleast_1d(observation), 2, -1)[..., ::2],
    lambda observation, _: np.atleast_1d(observation)[::-1],
    lambda observation, _: np.broadcast_to(np.atleast_1d(observation)[:1], np.shape(observation)),
    lambda observation, _: np.asarray(observation).view(Subclass),
    lambda observation, _: np.ma.masked_array(observation),
    lambda observation, _: np.asarray(observation).astype(object),
    lambda observation, _: np.zeros(np.shape(observation), "datetime64[s]"),
    lambda observation, _: np.zeros(np.shape(observation), [("x", np.float32)]),
    lambda observation, _: np.asarray(observation).tolist(),
    lambda observation, _: (observation,),
    lambda *_: np.zeros(0, np.float32),
    lambda *_: np.float32(1.5),
    lambda *_: None,
)
