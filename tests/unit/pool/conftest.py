"""Queue pairs, a second thread, and fixtures to test both kinds of queue pairs and step paths."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from itertools import chain, repeat
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from sc2pool.platform import LINUX
from sc2pool.pool.messages import OutOfBand
from sc2pool.pool.queues import doorbell, memory
from sc2pool.pool.queues.doorbell import Doorbell
from sc2pool.pool.queues.layout import SlotLayout, slot_layout
from sc2pool.pool.queues.memory import map_memory
from sc2pool.pool.queues.slots import Slot, Slots
from sc2pool.pool.queues.trainer_end import TrainerEnd
from sc2pool.pool.worker.worker_end import Doorbells, WorkerEnd
from sc2pool.protocol import compiled
from sc2pool.tasks.queue_pair import Transition
from tests.unit.conftest import needs_compiled

# ---- queue pairs ---------------------------------------------------------------------------------


VECTOR = spaces.Box(-10, 10, (2,), np.float32)


class Pair:
    """A trainer's end and a worker's end on one slot; a test may replace the player.

    Attributes:
        sent: the messages, as (sequence, payload), that the worker's end sent outside the slot.
        can_be_held: whether the game can be stopped at its first observation.
        replies_when_held: the trainer's reply at each attempt to stop the game.
    """

    def __init__(self, slots: Slots, slot: int, layout: SlotLayout, *, strict: bool) -> None:
        self.trainer = TrainerEnd(slots, slot)
        self.doorbells = request, reply = Doorbell.create(), Doorbell.create()
        self.trainer.open(request)
        self.trainer.attach(layout)
        memory = map_memory(slots.descriptor, layout.size_bytes, self.trainer.offset_bytes)
        self.slot = Slot(memoryview(memory), layout)
        self.player = SimpleNamespace(
            strict=strict,
            realtime=True,
            reset_kind=partial(next, chain(["restart"], repeat("create"))),
            recycle_due="",
            loop_cost_growth=lambda: 1.5,
            tick=lambda: None,
            delay=lambda _: None,
        )
        self.worker_doorbells = Doorbells(request, reply)
        self.worker = WorkerEnd(
            self.slot,
            self.worker_doorbells,
            self.player,
            send_out_of_band=self._send,
            hold=self._hold,
        )
        self.sent: list[tuple[int, bytes]] = []
        self.can_be_held = True
        self.replies_when_held: list[int | None] = []

    def _send(self, sequence: int, payload: bytes) -> None:
        self.sent.append((sequence, payload))
        self.trainer.deliver(OutOfBand(sequence, payload))

    def _hold(self) -> bool:
        self.replies_when_held.append(self.trainer.reply())
        return self.can_be_held

    def begin(self, *, hold: bool = False) -> None:
        self.worker.begin(self.trainer.begin_episode(), hold=hold)

    def begun(self, *first: Any, **keywords: Any) -> Pair:
        """Begin an episode, and put its first transition if one is given."""
        self.begin()
        if first:
            self.put(*first, **keywords)
        return self

    def step(self, *transition: Any, **keywords: Any) -> None:
        """Send an action, take it, and put the transition that answers it."""
        assert self.trainer.try_send(0)
        self.action()
        self.put(*transition, **keywords)

    def action(self) -> Any:
        return asyncio.run(asyncio.wait_for(self.worker.get_action(), 30))

    def put(
        self,
        observation: Any,
        reward: float = 0.0,
        ended: tuple[bool, bool] = (False, False),
        info: dict[str, Any] | None = None,
        mask: Any = None,
    ) -> None:
        self.worker.put(Transition(observation, reward, *ended, info or {}, mask))

    def answer(self, *transition: Any, **keywords: Any) -> TrainerEnd:
        """Put the answer to a new request; returns the trainer's end, which holds the answer."""
        self.trainer.next_sequence()
        return self.answer_newest(*transition, **keywords)

    def answer_newest(self, *transition: Any, **keywords: Any) -> TrainerEnd:
        """Put an answer to the newest request, as if this request had asked for an episode."""
        self.worker.begin(self.trainer.sequence)
        self.put(*transition, **keywords)
        return self.trainer

    def write_half(self, observation: dict[str, Any]) -> None:
        """Write half an answer, like a worker that is killed while it writes."""
        views = self.slot.place(self.trainer.next_sequence()).observation
        for view, part in zip(views, observation.values(), strict=True):
            view[...] = part

    def close(self) -> None:
        self.trainer.close()
        for one in self.doorbells:
            one.close()


class Pairs:
    """Queue pairs for envs with the same spaces; each new pair takes the next slot."""

    def __init__(self) -> None:
        self.slots = Slots(3)
        self._layout: SlotLayout | None = None
        self._made: list[Pair] = []

    def __call__(
        self,
        observation_space: spaces.Space[Any] = VECTOR,
        action_space: spaces.Space[Any] | None = None,
        *,
        strict: bool = True,
    ) -> Pair:
        if self._layout is None:
            self._layout = slot_layout(observation_space, action_space or spaces.Discrete(3))
            self.slots.fit(self._layout)
        self._made.append(Pair(self.slots, len(self._made), self._layout, strict=strict))
        return self._made[-1]

    def close(self) -> None:
        for one in self._made:
            one.close()
        self._made.clear()  # memory is unmapped when its last view is deleted
        self.slots.close()


# ---- fixtures ------------------------------------------------------------------------------------


@pytest.fixture(params=["linux", "portable"] if LINUX else ["portable"])
def variant(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Runs the test twice: with eventfd and memfd, and with a socket pair and a mapped file."""
    monkeypatch.setattr(doorbell, "USE_EVENTFD", request.param == "linux")
    monkeypatch.setattr(memory, "USE_MEMFD", request.param == "linux")
    return request.param


@pytest.fixture(params=[pytest.param("compiled", marks=needs_compiled), "pure Python"])
def step_path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Runs the test twice: with the compiled step path, and without it."""
    if request.param == "pure Python":
        monkeypatch.setattr(compiled, "fast", None)
    return request.param


@pytest.fixture
def pair() -> Iterator[Pairs]:
    """`pair(observation_space, action_space)` makes a queue pair; see `Pairs`."""
    with closing(Pairs()) as pairs:
        yield pairs


@contextmanager
def meanwhile(change: Callable[[int], None]) -> Iterator[None]:
    """Another thread changes things all the time; its errors are raised at the end."""
    over = threading.Event()
    raised: list[BaseException] = []

    def run() -> None:
        turn = 0
        try:
            while not over.is_set():
                change(turn)
                turn += 1
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # makes the threads switch often
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        sys.setswitchinterval(interval_s)
    assert raised == []
