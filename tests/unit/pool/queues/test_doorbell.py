"""Doorbells and the wait on many of them, in both variants."""

from __future__ import annotations

import os
import socket
import threading
import time

import pytest

from sc2pool.pool.queues.doorbell import Doorbell
from sc2pool.pool.queues.waiter import Waiter

pytestmark = pytest.mark.usefixtures("variant")


@pytest.fixture
def bell():
    made = Doorbell.create()
    yield made
    made.close()


@pytest.fixture
def waiter():
    made = Waiter.create()
    yield made
    made.close()


def test_a_ring_wakes_once(bell, waiter):
    waiter.add_bell(bell, "bell")
    assert waiter.wait(0) == []
    bell.ring()
    assert waiter.wait(1) == ["bell"]
    assert waiter.wait(0) == []


def test_a_ring_before_the_wait_is_not_lost(bell, waiter):
    bell.ring()
    waiter.add_bell(bell, "bell")
    assert waiter.wait(0) == ["bell"]


def test_many_rings_are_at_least_one(bell, waiter):
    waiter.add_bell(bell, "bell")
    for _ in range(3):
        bell.ring()
    assert waiter.wait(0) == ["bell"]
    bell.ring()
    assert waiter.wait(0) == ["bell"]


def test_it_can_be_rung_for_ever_without_a_listener(bell, waiter):
    for _ in range(100_000):
        bell.ring()
    waiter.add_bell(bell, "bell")
    assert waiter.wait(0) == ["bell"]


def test_a_long_run_of_rings_each_wakes(bell, waiter):
    waiter.add_bell(bell, "bell")
    for _ in range(50_000):
        bell.ring()
        assert waiter.wait(1) == ["bell"]


def test_a_listener_of_its_own_quiets_it(bell):
    listener = Doorbell(listening=bell.listening)
    bell.ring()
    listener.quiet()
    listener.quiet()  # nothing there: no wait
    with pytest.raises(BlockingIOError):
        os.read(bell.listening, 8)


def test_all_that_is_ready_is_told_under_its_tag(bell, waiter):
    second = Doorbell.create()
    ours, theirs = socket.socketpair()
    waiter.add_bell(bell, 1)
    waiter.add_bell(second, 2)
    waiter.add(ours.fileno(), 3)
    bell.ring()
    theirs.send(b"x")
    assert sorted(waiter.wait(1)) == [1, 3]
    assert waiter.wait(0) == [3], "a socket is ready until it was read"
    ours.recv(1)
    theirs.close()
    assert waiter.wait(1) == [3], "its end counts too"
    for descriptor in (second.listening, ours.fileno()):
        waiter.remove(descriptor)
    second.close()
    ours.close()
    assert waiter.wait(0) == []


@pytest.mark.timing
def test_the_wait_ends_with_its_time(bell, waiter):
    waiter.add_bell(bell, "bell")
    begin_s = time.monotonic()
    assert waiter.wait(0.05) == []
    assert 0.04 < time.monotonic() - begin_s < 1


def test_a_ring_from_another_thread_ends_a_wait_without_limit(bell, waiter):
    waiter.add_bell(bell, "bell")
    ringer = threading.Thread(target=bell.ring)
    ringer.start()
    assert waiter.wait(None) == ["bell"]
    ringer.join()
