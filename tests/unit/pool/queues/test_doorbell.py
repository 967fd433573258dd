"""Doorbells, common ones, and the wait on many of them, in both variants."""

from __future__ import annotations

import asyncio
import os
import select
import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from sc2pool.platform import WINDOWS
from sc2pool.pool.queues.doorbell import (
    USE_EVENTFD,
    CommonDoorbells,
    Doorbell,
    Waiter,
    most_members,
)
from sc2pool.waiting import BlockingWait, WorkerLoop

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


MOST = most_members(1)


def needs_eventfd(test: Callable[..., None]) -> Callable[..., None]:
    """Only Linux's doorbells can be common."""
    skipped = pytest.mark.skipif(not USE_EVENTFD, reason="elsewhere none is common")(test)
    return pytest.mark.parametrize("variant", ["linux"], indirect=True)(skipped)


class Listener:
    """A worker's side: it waits edge-triggered for the descriptor that it has inherited."""

    def __init__(self, common: CommonDoorbells, owned: ExitStack) -> None:
        self.doorbell = Doorbell.create()
        owned.callback(self.doorbell.close)
        owned.callback(common.leave, self.doorbell)
        self.listening = owned.enter_context(common.joined(self.doorbell))
        self._epoll = owned.enter_context(select.epoll())
        self._epoll.register(self.listening, select.EPOLLIN | select.EPOLLET)

    def hears(self) -> bool:
        return bool(self._epoll.poll(0))


@pytest.fixture
def owned():
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def common():
    return CommonDoorbells(1)


@needs_eventfd
def test_one_ring_wakes_all_and_each_has_its_own(common, owned):
    listeners = [Listener(common, owned) for _ in range(3)]
    doorbells = [one.doorbell for one in listeners]
    assert [one.hears() for one in listeners] == [False] * 3
    for _ in range(3):  # nobody reads, and each ring is heard all the same
        (together,) = common.fewest(doorbells)
        together.ring()
        assert [one.hears() for one in listeners] == [True] * 3
        assert [one.hears() for one in listeners] == [False] * 3
        doorbells[1].ring()
        assert [one.hears() for one in listeners] == [False, True, False]


@needs_eventfd
def test_a_ring_before_the_wait_is_not_lost(common, owned):
    listeners = [Listener(common, owned) for _ in range(2)]
    (together,) = common.fewest(one.doorbell for one in listeners)
    together.ring()
    with select.epoll() as late:
        late.register(listeners[0].listening, select.EPOLLIN | select.EPOLLET)
        assert late.poll(0)


@needs_eventfd
def test_only_more_than_half_are_rung_together(common, owned):
    doorbells = [Listener(common, owned).doorbell for _ in range(5)]
    assert len(common.fewest(doorbells)) == 1
    assert len(common.fewest(doorbells[:3])) == 1
    assert list(common.fewest(doorbells[:2])) == doorbells[:2]
    common.leave(doorbells[4])
    common.leave(doorbells[4])
    assert list(common.fewest(doorbells[:2])) == doorbells[:2], "two of four"
    common.leave(doorbells[3])
    (together,) = common.fewest(doorbells[:2])
    assert together not in doorbells


@needs_eventfd
def test_the_only_one_is_rung_by_its_own_bell(common, owned):
    only = Listener(common, owned).doorbell
    assert list(common.fewest([only, only])) == [only]


@needs_eventfd
def test_many_have_several_common_bells(common, owned):
    listeners = [Listener(common, owned) for _ in range(2 * MOST + 1)]
    doorbells = [one.doorbell for one in listeners]
    rung = common.fewest(doorbells)
    assert len(rung) == 3
    assert rung[-1] is doorbells[-1], "the only one of its group"
    for each in rung:
        each.ring()
    assert all(one.hears() for one in listeners)
    for each in doorbells[:MOST]:
        common.leave(each)
    assert len(common.fewest(doorbells[MOST:])) == 2


@needs_eventfd
def test_workers_may_watch_it_in_all_their_ways(common, owned):
    """The system limits how many epolls lead away from one descriptor, and how deep."""
    listeners = [Listener(common, owned) for _ in range(MOST)]
    other = Doorbell.create()
    owned.callback(other.close)

    async def waits(listening: int) -> None:
        for descriptor in (listening, *[other.listening] * 3):  # its own, and its games'
            wait = BlockingWait(descriptor)
            owned.callback(wait.close)
            wait.wait(0)

    heard = []
    for one in listeners:
        loop = WorkerLoop(2)
        owned.callback(loop.close)
        loop.run_until_complete(waits(one.listening))
        loop.turns.watch(one.listening, lambda: heard.append(True))
        for ring in (one.doorbell, *common.fewest([one.doorbell for one in listeners[:5]])):
            heard.clear()
            ring.ring()
            loop.run_until_complete(asyncio.sleep(0.001))
            assert heard


@pytest.mark.parametrize("variant", ["portable"], indirect=True)
def test_elsewhere_each_is_rung(common, owned):
    doorbells = [Doorbell.create() for _ in range(3)]
    for own in doorbells:
        owned.callback(own.close)
        with common.joined(own) as listening:
            assert listening == own.listening
    assert list(common.fewest(doorbells)) == doorbells
    common.leave(doorbells[0])


def test_workers_with_many_games_share_no_bell():
    assert [most_members(envs) for envs in (1, 2, 4, 8, 100)] == [8, 4, 2, 1, 1]
