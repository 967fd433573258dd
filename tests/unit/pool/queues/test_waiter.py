"""Waiting for one doorbell among many."""

from __future__ import annotations

import socket

import pytest

from sc2pool.platform import LINUX
from sc2pool.pool.queues.doorbell import Doorbell, Waiter

pytestmark = pytest.mark.skipif(not LINUX, reason="elsewhere all are waited for")
LONG_S = 10.0


@pytest.fixture
def doorbells():
    made = [Doorbell.create() for _ in range(3)]
    yield made
    for doorbell in made:
        doorbell.close()


@pytest.fixture
def waiter(doorbells):
    made = Waiter.create()
    for number, doorbell in enumerate(doorbells):
        made.add_doorbell(doorbell, number)
    yield made
    made.close()


def test_other_bells_do_not_end_it_and_are_not_lost(waiter, doorbells):
    doorbells[0].ring()
    doorbells[2].ring()
    assert not waiter.wait_for(doorbells[1], 0.01)
    assert sorted(waiter.wait(0)) == [0, 2]


def test_a_ring_ends_one_wait(waiter, doorbells):
    doorbells[1].ring()
    assert waiter.wait_for(doorbells[1], LONG_S)
    assert not waiter.wait_for(doorbells[1], 0)
    doorbells[1].ring()
    assert waiter.wait_for(doorbells[1], LONG_S)


def test_readable_channel_ends_every_wait_until_it_is_read(waiter, doorbells):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        waiter.add(ours.fileno(), "channel")
        theirs.send(b"news")
        assert not waiter.wait_for(doorbells[1], LONG_S)
        assert not waiter.wait_for(doorbells[1], LONG_S)
        assert waiter.has_more()
        assert waiter.wait(0) == ["channel"]
        ours.recv(10)
        doorbells[2].ring()
        assert not waiter.has_more(), "a doorbell is no more"
        assert waiter.wait(0) == [2]
        doorbells[1].ring()
        assert waiter.wait_for(doorbells[1], LONG_S)
        waiter.remove(ours.fileno())


def test_a_bell_that_is_removed_is_forgotten(waiter, doorbells):
    assert not waiter.wait_for(doorbells[1], 0)
    waiter.remove(doorbells[1].listening)
    doorbells[1].ring()
    assert waiter.wait(0) == []
    waiter.add_doorbell(doorbells[1], "again")
    assert waiter.wait(0) == ["again"]
    assert waiter.wait_for(doorbells[1], LONG_S)
