"""Tests the parts that trainer and workers share: unnamed memory, its layout, and doorbells.

`test_slots.py` tests the queue pairs that consist of these parts.
"""

from __future__ import annotations

import asyncio
import os
import select
import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from itertools import pairwise

import numpy as np
import pytest
from gymnasium import spaces

from sc2pool.errors import ConfigError
from sc2pool.platform import LINUX, WINDOWS
from sc2pool.pool.queues import memory
from sc2pool.pool.queues.doorbell import (
    USE_EVENTFD,
    CommonDoorbells,
    Doorbell,
    Waiter,
    most_members,
)
from sc2pool.pool.queues.layout import (
    ALIGNMENT_BYTES,
    HEADER_BYTES,
    align,
    mask_size,
    slot_layout,
    space_layout,
)
from sc2pool.waiting import BlockingWait, WorkerLoop
from tests.unit.conftest import printed_by

# ---- the layout of a space -----------------------------------------------------------------------


NESTED = spaces.Dict(
    [
        ("z", spaces.Box(0, 1, (3, 2), np.float32)),
        ("a", spaces.Tuple([spaces.Discrete(4), spaces.Dict(m=spaces.MultiBinary(5))])),
    ]
)


@pytest.mark.parametrize("wrong", [{"z": 1}, {"z": 1, "a": ()}, 3], ids=str)
def test_a_missing_part_is_a_lookup_or_type_error(wrong):
    with pytest.raises((KeyError, IndexError, TypeError)):
        list(space_layout(NESTED, 0).parts(wrong))


def test_only_a_plain_space_is_one_array():
    assert space_layout(spaces.Discrete(2), 0).is_array
    assert not space_layout(spaces.Dict(a=spaces.Discrete(2)), 0).is_array
    assert not space_layout(spaces.Text(2), 0).is_array


@pytest.mark.parametrize("action_space", [spaces.Discrete(7), spaces.Text(3)], ids=str)
@pytest.mark.parametrize("observation_space", [NESTED, spaces.Text(3), spaces.Discrete(2)], ids=str)
def test_no_two_leaves_share_a_cache_line(observation_space, action_space):
    layout = slot_layout(observation_space, action_space)
    leaves = [*(layout.action.leaves or ()), *(layout.observation.leaves or ()), layout.mask]
    assert leaves[0].offset_bytes == HEADER_BYTES
    assert all(leaf.offset_bytes % ALIGNMENT_BYTES == 0 for leaf in leaves)
    for one, next_one in pairwise(leaves):
        assert one.offset_bytes + one.size_bytes <= next_one.offset_bytes
    assert layout.size_bytes >= leaves[-1].offset_bytes + leaves[-1].size_bytes
    assert layout.size_bytes % ALIGNMENT_BYTES == 0


@pytest.mark.parametrize(("given", "aligned"), [(0, 0), (1, 64), (64, 64), (65, 128)])
def test_align(given, aligned):
    assert align(given) == aligned


@pytest.mark.parametrize(
    ("space", "size"),
    [
        (spaces.Discrete(8, start=3), 8),
        (spaces.MultiDiscrete([8, 3]), 11),
        (spaces.MultiBinary(4), 8),
        (spaces.MultiBinary([2, 3]), 12),
        (spaces.Box(0, 1, (2,)), 0),
        (spaces.Text(2), 0),
    ],
    ids=str,
)
def test_masks_have_the_shape_that_maskable_ppo_wants(space, size):
    assert mask_size(space) == size


def test_several_rows_need_leaves():
    text = spaces.Text(3)
    for name, unfixed in (("observation_space", (text, NESTED)), ("action_space", (NESTED, text))):
        with pytest.raises(ConfigError, match=f"{name} of an env with 2 rows must be made of"):
            slot_layout(*unfixed, 2)


# ---- memory, in both variants --------------------------------------------------------------------


@pytest.fixture
def descriptor(variant):
    made = memory.create()
    yield made
    os.close(made)


@pytest.mark.skipif(WINDOWS, reason="a worker gets a copy of it there, see test_pool.py")
def test_another_process_writes_and_we_read(descriptor):
    memory.claim(descriptor, 8192)
    mapped = memory.map_memory(descriptor, 8192)
    program = f"import mmap; mmap.mmap({descriptor}, 8192)[8000:8003] = b'abc'"
    printed_by(program, pass_fds=[descriptor])
    assert mapped[8000:8003] == b"abc"
    assert mapped[:8000] == bytes(8000)
    mapped.close()


def test_it_can_begin_with_a_message(descriptor):
    memory.write(descriptor, b"player")
    assert memory.read(descriptor, 6) == b"player"
    memory.claim(descriptor, 8192)
    assert memory.read(descriptor, 8192) == bytes(8192)


def test_it_has_no_name(descriptor, run_temp):
    assert (
        WINDOWS or list(run_temp.glob("sc2pool-*")) == []
    )  # on Windows the last close deletes the file
    assert not os.get_inheritable(descriptor)


def test_memory_that_cannot_be_claimed_is_a_config_error(descriptor, limited):
    """A limit on the size of files has the same effect as a machine without free memory."""
    refused = pytest.raises(ConfigError, match="cannot claim 8192 bytes of shared memory")
    with limited("FSIZE", 4096), refused:
        memory.claim(descriptor, 8192)


# ---- doorbells, and the wait on many of them, in both variants -----------------------------------


@pytest.fixture
def doorbell(variant):
    made = Doorbell.create()
    yield made
    made.close()


@pytest.fixture
def waiter(variant):
    made = Waiter.create()
    yield made
    made.close()


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
    listener.quiet()  # must return, although no ring is left
    with pytest.raises(BlockingIOError):
        os.read(doorbell.listening, 8)


def test_quiet_takes_all_rings(doorbell, waiter):
    doorbell.ring()
    doorbell.ring()
    doorbell.quiet()
    doorbell.quiet()  # must return, although no ring is left
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
    """Skip a test unless the system has common doorbells (Linux), which wake several workers."""
    skipped = pytest.mark.skipif(not USE_EVENTFD, reason="elsewhere none is common")(test)
    return pytest.mark.parametrize("variant", ["linux"], indirect=True)(skipped)


class Listener:
    """A worker's end, which waits edge-triggered for the descriptor that the worker inherited."""

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
def common(variant):
    return CommonDoorbells(1)


@needs_eventfd
def test_one_ring_wakes_all_and_each_has_its_own(common, owned):
    listeners = [Listener(common, owned) for _ in range(3)]
    doorbells = [one.doorbell for one in listeners]
    assert [one.hears() for one in listeners] == [False] * 3
    for _ in range(3):  # a new ring is noticed although earlier rings were not read
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
    """The system limits how many epolls may watch one descriptor, and how deeply epolls nest."""
    listeners = [Listener(common, owned) for _ in range(MOST)]
    other = Doorbell.create()
    owned.callback(other.close)

    async def waits(listening: int) -> None:
        for descriptor in (listening, *[other.listening] * 3):  # descriptors of worker and games
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


# ---- the wait for one doorbell among many --------------------------------------------------------


LONG_S = 10.0


@pytest.fixture
def three_doorbells():
    made = [Doorbell.create() for _ in range(3)]
    yield made
    for doorbell in made:
        doorbell.close()


@pytest.fixture
def waiter_of_doorbells(three_doorbells):
    if not LINUX:
        pytest.skip("elsewhere all are waited for")
    made = Waiter.create()
    for number, doorbell in enumerate(three_doorbells):
        made.add_doorbell(doorbell, number)
    yield made
    made.close()


def test_other_bells_do_not_end_it_and_are_not_lost(waiter_of_doorbells, three_doorbells):
    three_doorbells[0].ring()
    three_doorbells[2].ring()
    assert not waiter_of_doorbells.wait_for(three_doorbells[1], 0.01)
    assert sorted(waiter_of_doorbells.wait(0)) == [0, 2]


def test_a_ring_ends_one_wait(waiter_of_doorbells, three_doorbells):
    three_doorbells[1].ring()
    assert waiter_of_doorbells.wait_for(three_doorbells[1], LONG_S)
    assert not waiter_of_doorbells.wait_for(three_doorbells[1], 0)
    three_doorbells[1].ring()
    assert waiter_of_doorbells.wait_for(three_doorbells[1], LONG_S)


def test_readable_channel_ends_every_wait_until_it_is_read(waiter_of_doorbells, three_doorbells):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        waiter_of_doorbells.add(ours.fileno(), "channel")
        theirs.send(b"news")
        assert not waiter_of_doorbells.wait_for(three_doorbells[1], LONG_S)
        assert not waiter_of_doorbells.wait_for(three_doorbells[1], LONG_S)
        assert waiter_of_doorbells.has_more()
        assert waiter_of_doorbells.wait(0) == ["channel"]
        ours.recv(10)
        three_doorbells[2].ring()
        assert not waiter_of_doorbells.has_more(), "a doorbell is no more"
        assert waiter_of_doorbells.wait(0) == [2]
        three_doorbells[1].ring()
        assert waiter_of_doorbells.wait_for(three_doorbells[1], LONG_S)
        waiter_of_doorbells.remove(ours.fileno())


def test_a_bell_that_is_removed_is_forgotten(waiter_of_doorbells, three_doorbells):
    assert not waiter_of_doorbells.wait_for(three_doorbells[1], 0)
    waiter_of_doorbells.remove(three_doorbells[1].listening)
    three_doorbells[1].ring()
    assert waiter_of_doorbells.wait(0) == []
    waiter_of_doorbells.add_doorbell(three_doorbells[1], "again")
    assert waiter_of_doorbells.wait(0) == ["again"]
    assert waiter_of_doorbells.wait_for(three_doorbells[1], LONG_S)
