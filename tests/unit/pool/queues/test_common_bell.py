"""Common bells: several workers hear one ring, and each its own."""

from __future__ import annotations

import asyncio
import select
from contextlib import ExitStack

import pytest

from sc2pool.pool.queues import doorbell
from sc2pool.pool.queues.common_bell import CommonBells, most_members
from sc2pool.pool.queues.doorbell import Doorbell
from sc2pool.waiting import BlockingWait, WorkerLoop

MOST = most_members(1)
needs_eventfd = pytest.mark.skipif(not doorbell.USE_EVENTFD, reason="elsewhere none is common")


class Listener:
    """A worker's side: it waits edge-triggered for the descriptor that it has inherited."""

    def __init__(self, common: CommonBells, owned: ExitStack) -> None:
        self.bell = Doorbell.create()
        owned.callback(self.bell.close)
        owned.callback(common.leave, self.bell)
        self.listening = owned.enter_context(common.joined(self.bell))
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
    return CommonBells(1)


@needs_eventfd
def test_one_ring_wakes_all_and_each_has_its_own(common, owned):
    listeners = [Listener(common, owned) for _ in range(3)]
    bells = [one.bell for one in listeners]
    assert [one.hears() for one in listeners] == [False] * 3
    for _ in range(3):  # nobody reads, and each ring is heard all the same
        (together,) = common.fewest(bells)
        together.ring()
        assert [one.hears() for one in listeners] == [True] * 3
        assert [one.hears() for one in listeners] == [False] * 3
        bells[1].ring()
        assert [one.hears() for one in listeners] == [False, True, False]


@needs_eventfd
def test_a_ring_before_the_wait_is_not_lost(common, owned):
    listeners = [Listener(common, owned) for _ in range(2)]
    (together,) = common.fewest(one.bell for one in listeners)
    together.ring()
    with select.epoll() as late:
        late.register(listeners[0].listening, select.EPOLLIN | select.EPOLLET)
        assert late.poll(0)


@needs_eventfd
def test_only_more_than_half_are_rung_together(common, owned):
    bells = [Listener(common, owned).bell for _ in range(5)]
    assert len(common.fewest(bells)) == 1
    assert len(common.fewest(bells[:3])) == 1
    assert list(common.fewest(bells[:2])) == bells[:2]
    common.leave(bells[4])
    common.leave(bells[4])
    assert list(common.fewest(bells[:2])) == bells[:2], "two of four"
    common.leave(bells[3])
    (together,) = common.fewest(bells[:2])
    assert together not in bells


@needs_eventfd
def test_the_only_one_is_rung_by_its_own_bell(common, owned):
    bell = Listener(common, owned).bell
    assert list(common.fewest([bell, bell])) == [bell]


@needs_eventfd
def test_many_have_several_common_bells(common, owned):
    listeners = [Listener(common, owned) for _ in range(2 * MOST + 1)]
    bells = [one.bell for one in listeners]
    rung = common.fewest(bells)
    assert len(rung) == 3
    assert rung[-1] is bells[-1], "the only one of its group"
    for bell in rung:
        bell.ring()
    assert all(one.hears() for one in listeners)
    for bell in bells[:MOST]:
        common.leave(bell)
    assert len(common.fewest(bells[MOST:])) == 2


@needs_eventfd
def test_workers_may_watch_it_in_all_their_ways(common, owned):
    """The system limits how many epolls lead away from one descriptor, and how deep."""
    listeners = [Listener(common, owned) for _ in range(MOST)]
    bell = Doorbell.create()
    owned.callback(bell.close)

    async def waits(listening: int) -> None:
        for descriptor in (listening, *[bell.listening] * 3):  # its own, and its games'
            wait = BlockingWait(descriptor)
            owned.callback(wait.close)
            wait.wait(0)

    heard = []
    for one in listeners:
        loop = WorkerLoop(2)
        owned.callback(loop.close)
        loop.run_until_complete(waits(one.listening))
        loop.turns.watch(one.listening, lambda: heard.append(True))
        for ring in (one.bell, *common.fewest([one.bell for one in listeners[:5]])):
            heard.clear()
            ring.ring()
            loop.run_until_complete(asyncio.sleep(0.001))
            assert heard


@pytest.mark.usefixtures("variant")
def test_elsewhere_each_is_rung(common, owned):
    if doorbell.USE_EVENTFD:
        pytest.skip("this is about the portable variant")
    bells = [Doorbell.create() for _ in range(3)]
    for bell in bells:
        owned.callback(bell.close)
        with common.joined(bell) as listening:
            assert listening == bell.listening
    assert list(common.fewest(bells)) == bells
    common.leave(bells[0])


def test_workers_with_many_games_share_no_bell():
    assert [most_members(envs) for envs in (1, 2, 4, 8, 100)] == [8, 4, 2, 1, 1]
