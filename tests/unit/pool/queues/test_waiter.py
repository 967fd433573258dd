"""Waiting for one doorbell among many."""

from __future__ import annotations

import socket
import sys

import pytest

from sc2pool.pool.queues.doorbell import Doorbell
from sc2pool.pool.queues.waiter import Waiter

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere all are waited for")
LONG_S = 10.0


@pytest.fixture
def bells():
    made = [Doorbell.create() for _ in range(3)]
    yield made
    for bell in made:
        bell.close()


@pytest.fixture
def waiter(bells):
    made = Waiter.create()
    for number, bell in enumerate(bells):
        made.add_bell(bell, number)
    yield made
    made.close()


def test_it_ends_with_that_bell(waiter, bells):
    bells[1].ring()
    assert waiter.wait_for(bells[1], LONG_S)


def test_other_bells_do_not_end_it_and_are_not_lost(waiter, bells):
    bells[0].ring()
    bells[2].ring()
    assert not waiter.wait_for(bells[1], 0.01)
    assert sorted(waiter.wait(0)) == [0, 2]


def test_a_ring_ends_one_wait(waiter, bells):
    bells[1].ring()
    assert waiter.wait_for(bells[1], LONG_S)
    assert not waiter.wait_for(bells[1], 0)
    bells[1].ring()
    assert waiter.wait_for(bells[1], LONG_S)


def test_what_is_watched_ends_it_until_it_is_seen_to(waiter, bells):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        waiter.add(ours.fileno(), "channel")
        theirs.send(b"news")
        assert not waiter.wait_for(bells[1], LONG_S)
        assert not waiter.wait_for(bells[1], LONG_S)
        assert waiter.has_more()
        assert waiter.wait(0) == ["channel"]
        ours.recv(10)
        bells[2].ring()
        assert not waiter.has_more(), "a bell is no more"
        assert waiter.wait(0) == [2]
        bells[1].ring()
        assert waiter.wait_for(bells[1], LONG_S)
        waiter.remove(ours.fileno())


def test_a_bell_that_is_removed_is_forgotten(waiter, bells):
    assert not waiter.wait_for(bells[1], 0)
    waiter.remove(bells[1].listening)
    bells[1].ring()
    assert waiter.wait(0) == []
    waiter.add_bell(bells[1], "again")
    assert waiter.wait(0) == ["again"]
    assert waiter.wait_for(bells[1], LONG_S)
