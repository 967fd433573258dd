"""How a worker waits for requests and wakes the trainer, compiled and in pure Python."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import Iterator
from unittest import mock

import numpy as np
import pytest

from sc2pool.platform import LINUX
from sc2pool.pool.queues.doorbell import Doorbell
from sc2pool.pool.worker.doorbells import Doorbells, Ringing
from sc2pool.protocol import compiled

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
    """Ends whose two doorbells are one, so that it hears its own rings."""
    if request.param == "compiled":
        yield Doorbells(doorbell, doorbell)
        return
    with mock.patch.object(compiled, "fast", None):
        pure = Doorbells(doorbell, doorbell)
    assert isinstance(pure._ringing, Ringing)
    yield pure


def rings(doorbell: Doorbell) -> int:
    """How many rings there were since the last call."""
    try:
        return int.from_bytes(os.read(doorbell.listening, 8), sys.byteorder)
    except BlockingIOError:
        return 0


@pytest.mark.skipif(not LINUX, reason="it counts an eventfd's rings")
def test_a_turn_has_one_ring(doorbells: Doorbells, doorbell: Doorbell):
    doorbells.ring()
    doorbells.ring()
    assert rings(doorbell) == 2
    with mock.patch("sc2pool.pool.worker.doorbells._loop_and_turns") as loop_and_turns:
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
    """A header in memory, and what a worker waits with."""

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
    trainer.doorbell.ring()  # for another instance: there is nothing new in the row
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
    assert trainer.wait(0) == 1  # it looks before it waits
    trainer.doorbell.ring()
    assert trainer.wait(1) == 0  # both


@needs_it
def test_a_signal_ends_the_wait(trainer: Trainer):
    seen = []
    over = threading.Event()
    main = threading.main_thread().ident

    def interrupt() -> None:
        while not over.wait(0.02):  # again and again: one may strike before the wait
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
