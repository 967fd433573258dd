"""Doorbells and the wait on many of them, in both variants."""

from __future__ import annotations

import os
import socket
import threading
import time

import pytest

from sc2pool.platform import WINDOWS
from sc2pool.pool.queues.doorbell import Doorbell
from sc2pool.pool.queues.waiter import Waiter

pytestmark = pytest.mark.usefixtures("variant")


@pytest.fixture
def doorbell():
    made = Doorbell.create()
    yield made
    made.close()


@pytest.fixture
def waiter():
    made = Waiter.create()
    yield made
    made.close()


def test_many_rings_are_at_least_one(doorbell, waiter):
    waiter.add_doorbell(doorbell, "doorbell")
    for _ in range(3):
        doorbell.ring()
    assert waiter.wait(0) == ["doorbell"]
    doorbell.ring()
    assert waiter.wait(0) == ["doorbell"]


@pytest.mark.parametrize("rings", [1, 10_000])
def test_rings_before_the_wait_are_not_lost_however_many(doorbell, waiter, rings):
    for _ in range(rings):
        doorbell.ring()
    waiter.add_doorbell(doorbell, "doorbell")
    assert waiter.wait(0) == ["doorbell"]


def test_in_a_long_run_of_rings_each_wakes_once(doorbell, waiter):
    waiter.add_doorbell(doorbell, "doorbell")
    for _ in range(5_000):
        assert waiter.wait(0) == []
        doorbell.ring()
        assert waiter.wait(1) == ["doorbell"]


@pytest.mark.skipif(WINDOWS, reason="a socket has one owner there, and `os.read` takes none")
def test_a_listener_of_its_own_quiets_it(doorbell):
    listener = Doorbell(listening=doorbell.listening)
    doorbell.ring()
    listener.quiet()
    listener.quiet()  # nothing there: no wait
    with pytest.raises(BlockingIOError):
        os.read(doorbell.listening, 8)


def test_quiet_takes_all_rings(doorbell, waiter):
    doorbell.ring()
    doorbell.ring()
    doorbell.quiet()
    doorbell.quiet()  # nothing there: no wait
    waiter.add_doorbell(doorbell, "doorbell")
    assert waiter.wait(0) == []


def test_all_that_is_ready_is_told_under_its_tag(doorbell, waiter):
    second = Doorbell.create()
    ours, theirs = socket.socketpair()
    waiter.add_doorbell(doorbell, 1)
    waiter.add_doorbell(second, 2)
    waiter.add(ours.fileno(), 3)
    doorbell.ring()
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
def test_the_wait_ends_with_its_time(doorbell, waiter):
    waiter.add_doorbell(doorbell, "doorbell")
    begin_s = time.monotonic()
    assert waiter.wait(0.05) == []
    assert 0.04 < time.monotonic() - begin_s < 1


def test_a_ring_from_another_thread_ends_a_wait_without_limit(doorbell, waiter):
    waiter.add_doorbell(doorbell, "doorbell")
    ringer = threading.Thread(target=doorbell.ring)
    ringer.start()
    assert waiter.wait(None) == ["doorbell"]
    ringer.join()
