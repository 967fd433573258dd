"""Tests a worker: its waits and rings, the transitions that it puts, and an instance's end.

`test_slots.py` tests the worker's end of a queue pair together with the trainer's.
"""

from __future__ import annotations

import asyncio
import gc
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from gymnasium import spaces

from sc2pool.errors import ObservationError, UserCodeError
from sc2pool.platform import LINUX
from sc2pool.pool.ipc import Channel
from sc2pool.pool.messages import Start
from sc2pool.pool.queues.doorbell import Doorbell
from sc2pool.pool.worker import hosted_instance
from sc2pool.pool.worker.hosted_instance import HostedInstance
from sc2pool.pool.worker.worker_end import Doorbells, Ringing
from sc2pool.protocol import compiled
from sc2pool.tasks.queue_pair import Transition
from tests.support.fuzz.transitions import Putting, compare, count_taken
from tests.unit.conftest import needs_compiled

# ---- doorbells, compiled and in pure Python ------------------------------------------------------


needs_it = pytest.mark.skipif(
    compiled.STEP_PATH != "compiled" or not LINUX,
    reason="the compiled step path, or the epoll that it waits with, is not there",
)


@pytest.fixture
def doorbell() -> Iterator[Doorbell]:
    doorbell = Doorbell.create()
    yield doorbell
    doorbell.close()


@pytest.fixture(params=[pytest.param("compiled", marks=needs_it), "pure Python"])
def doorbells(request: pytest.FixtureRequest, doorbell: Doorbell) -> Iterator[Doorbells]:
    """One doorbell serves both directions of a worker, so the worker hears its own rings."""
    if request.param == "compiled":
        yield Doorbells(doorbell, doorbell)
        return
    with mock.patch.object(compiled, "fast", None):
        pure = Doorbells(doorbell, doorbell)
    assert isinstance(pure._ringing, Ringing)
    yield pure


def rings(doorbell: Doorbell) -> int:
    """The number of rings since the last call."""
    try:
        return int.from_bytes(os.read(doorbell.listening, 8), sys.byteorder)
    except BlockingIOError:
        return 0


@pytest.mark.skipif(not LINUX, reason="it counts an eventfd's rings")
def test_a_turn_has_one_ring(doorbells: Doorbells, doorbell: Doorbell):
    doorbells.ring()
    doorbells.ring()
    assert rings(doorbell) == 2
    with mock.patch("sc2pool.pool.worker.worker_end._loop_and_turns") as loop_and_turns:
        _, turns = loop_and_turns.return_value = mock.Mock(), mock.Mock()
        doorbells._listen()
    doorbells.ring()
    doorbells.ring()
    assert rings(doorbell) == 0
    turns.at_end.assert_called_once_with(doorbells._ring_if_due)
    doorbells._ring_if_due()
    doorbells._ring_if_due()
    assert rings(doorbell) == 1
    assert not doorbells._ringing.is_due


@pytest.mark.skipif(not LINUX, reason="it fills an eventfd")
def test_a_bell_that_is_full_has_rung_often_enough(doorbells: Doorbells, doorbell: Doorbell):
    most = (1 << 64) - 2
    os.write(doorbell.ringing, most.to_bytes(8, sys.byteorder))
    doorbells.ring()
    assert rings(doorbell) == most


@needs_it
def test_a_bell_that_cannot_be_rung_is_an_error():
    read, write = os.pipe()
    os.close(read)
    with pytest.raises(BrokenPipeError):
        Doorbells(Doorbell(listening=write), Doorbell(ringing=write)).ring()
    os.close(write)


class Trainer:
    """Stands for a trainer: holds the header, the doorbell and the epoll for a worker's waits."""

    def __init__(self, doorbell: Doorbell) -> None:
        self.words = np.zeros(16, np.uint64)
        self.doorbell = doorbell
        self.other = Doorbell.create()
        self.epoll = select.epoll()
        self.epoll.register(doorbell.listening, select.EPOLLIN | select.EPOLLET)
        self.epoll.register(self.other.listening, select.EPOLLIN)
        self.requests = compiled.fast.Requests(self.words, request=3)

    def request(self) -> None:
        self.words[3] += np.uint64(1)
        self.doorbell.ring()

    def wait(self, sequence: int) -> int:
        return self.requests.wait(sequence, self.epoll.fileno(), self.doorbell.listening)

    def close(self) -> None:
        self.epoll.close()
        self.other.close()


@pytest.fixture
def trainer(doorbell: Doorbell) -> Iterator[Trainer]:
    trainer = Trainer(doorbell)
    yield trainer
    trainer.close()


@needs_it
def test_it_waits_for_the_next_request(trainer: Trainer):
    trainer.request()
    assert trainer.wait(0) == 1
    trainer.doorbell.ring()  # a ring without a new request, such as for another instance
    thread = threading.Timer(0.02, trainer.request)
    thread.start()
    assert trainer.wait(1) == 2
    thread.join()


@needs_it
def test_a_request_of_the_slots_next_owner_is_not_taken(trainer: Trainer):
    trainer.words[3] = (1 << 32) + 1
    trainer.other.ring()
    assert trainer.wait(5) == 0


@needs_it
def test_all_else_that_the_loop_watches_ends_the_wait(trainer: Trainer):
    trainer.other.ring()
    assert trainer.wait(0) == 0
    trainer.request()
    assert trainer.wait(0) == 1  # the waiter reads the header first
    trainer.doorbell.ring()
    assert trainer.wait(1) == 0  # both doorbells have rung


@needs_it
def test_a_signal_ends_the_wait(trainer: Trainer):
    seen = []
    over = threading.Event()
    main = threading.main_thread().ident

    def interrupt() -> None:
        while not over.wait(0.02):  # repeated, because a signal may come before the wait
            signal.pthread_kill(main, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, lambda *_: seen.append("handled"))
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        assert trainer.wait(0) == 0
    finally:
        over.set()
        thread.join()
        signal.signal(signal.SIGUSR1, before)
    assert seen


@needs_it
def test_requests_need_an_array_with_that_word():
    words = np.zeros(16, np.uint64)
    for wrong in (-1, 16):
        with pytest.raises(IndexError, match="16 words"):
            compiled.fast.Requests(words, request=wrong)
    with pytest.raises(TypeError, match="expected an array, got memoryview"):
        compiled.fast.Requests(memoryview(words), request=0)


# ---- transitions, compiled and in pure Python ----------------------------------------------------


VECTOR = spaces.Box(-9, 9, (2,), np.float32)
HERE = np.array([1, 2], np.float32)


@needs_compiled
@pytest.mark.parametrize("seed", range(4))
def test_transitions_of_all_kinds(seed):
    found, verdicts = compare(1000, seed)
    assert found == []
    assert verdicts["accepted"] > 50
    assert verdicts["left"] > 300


def put(transition: Transition, space=VECTOR, *, strict=True) -> tuple[int, str | None]:
    """Put two transitions; returns how many the compiled path has taken, and the error."""
    putting = Putting(space, strict=strict)
    taken = count_taken(putting.end)
    putting.request(reset=True)
    error, *_ = putting.put(Transition(space.sample(), 0.0, False, False, {}))
    assert error is None
    putting.request(reset=False)
    error, *_ = putting.put(transition)
    return taken.total(), error


@needs_compiled
@pytest.mark.parametrize(
    ("dtype", "shape"),
    [(np.float32, (5,)), (np.float64, ()), (np.uint8, (4, 4, 3)), (np.int64, (2,)), (bool, (3,))],
)
@pytest.mark.parametrize("mask", [None, np.array([True, False, True])], ids=["", "mask"])
def test_plain_transitions_are_taken(dtype, shape, mask):
    space = spaces.Box(0, 1, shape, dtype)
    of_a_step = Transition(np.array(space.sample()), 0.5, False, False, {}, mask)
    assert put(of_a_step, space) == (1, None)


@needs_compiled
@pytest.mark.parametrize(
    "of_a_step",
    [
        Transition(HERE, 0.5, True, False, {}),
        Transition(HERE, 0.5, False, True, {}),
        Transition(HERE, 0.5, False, False, {"k": 1}),
        Transition(HERE, 1, False, False, {}),
        Transition(np.array([1, 2, 3, 4], np.float32)[::2], 0.5, False, False, {}),
    ],
    ids=["terminated", "truncated", "info", "whole reward", "not one block"],
)
def test_others_are_left_to_pure_python(of_a_step):
    assert put(of_a_step) == (0, None)


@needs_compiled
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_that_are_not_finite(number, dtype):
    space = spaces.Box(-9, 9, (70,), dtype)
    for place in (0, 35, 69):
        spoilt = space.sample()
        spoilt[place] = number
        of_a_step = Transition(spoilt, 0.5, False, False, {})
        taken, error = put(of_a_step, space)
        assert taken == 0
        assert error is not None and f"not finite at index [{place}]" in error
        assert put(of_a_step, space, strict=False) == (1, None)


OF_A_ROW = Transition(HERE, 0.0, False, False, {})
MASKED = OF_A_ROW._replace(action_masks=np.ones(3, bool))


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (
            [OF_A_ROW, OF_A_ROW._replace(observation=HERE[:1])],
            ObservationError,
            r"row 1: observation has shape \(1,\)",
        ),
        ([MASKED, OF_A_ROW], ObservationError, "row 0 and row 1 differ"),
        ([OF_A_ROW, OF_A_ROW._replace(terminated=True)], UserCodeError, "row 1 terminated=True"),
        ([OF_A_ROW], UserCodeError, "1 transitions were put, expected one for each of 2 rows"),
        (OF_A_ROW, UserCodeError, "use put_rows"),
    ],
    ids=["shape", "mask", "end", "number", "put"],
)
def test_transitions_are_checked_row_by_row(wrong, error, words):
    putting = Putting(VECTOR, strict=True, rows=2)
    putting.request(reset=True)
    put = putting.end.put_rows if isinstance(wrong, list) else putting.end.put
    with pytest.raises(error, match=words):
        put(wrong)


@needs_compiled
def test_a_row_needs_five_arrays_and_a_header_with_its_words():
    header = np.zeros(16, np.uint64)
    arrays = [array for _ in range(2) for array in (HERE.copy(), np.zeros(3, bool))]
    at = {"must_be_finite": True, "reply": 8, "flags": 9, "reward": 10, "total": 15, "masked": 8}
    compiled.fast.Row(header, *arrays, **at)
    with pytest.raises(TypeError, match="five arrays, got memoryview, ndarray, ndarray"):
        compiled.fast.Row(memoryview(header), *arrays, **at)
    for wrong in (-1, 16):
        with pytest.raises(IndexError, match="16 words"):
            compiled.fast.Row(header, *arrays, **at | {"total": wrong})


def test_the_garbage_collector_takes_it_in_any_order():
    putting = Putting(VECTOR, strict=True)
    putting.end.itself = putting.end
    del putting
    gc.collect()


# ---- the end of an instance ----------------------------------------------------------------------


def test_it_is_over_though_no_memory_is_left_for_its_last_words(tmp_path: Path) -> None:
    """The instance must end; it would otherwise fail at each message for ever."""
    loop = asyncio.SelectorEventLoop()
    ours, theirs = socket.socketpair()
    doorbells, spec = mock.Mock(), mock.Mock(side_effect=MemoryError)
    over: list[bool] = []
    loop.set_exception_handler(lambda *_: loop.stop())
    with closing(loop), closing(Channel(ours)) as trainers_end:
        hosted = HostedInstance(
            0,
            loop,
            doorbells,
            Channel(theirs),
            tmp_path,
            spec=spec,
            owned=ExitStack(),
            memory_fd=-1,
            is_over=over.append,
        )
        trainers_end.send(Start(sys.path))
        with mock.patch.object(hosted_instance, "describe", side_effect=MemoryError):
            loop.run_forever()
        loop.run_until_complete(hosted.end())
    assert over == [False]
