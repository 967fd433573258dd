"""Tests when a worker's loop may block in a wait, and which events end the wait."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from contextvars import ContextVar
from functools import partial

import pytest

from sc2pool.game.wire import DirectReader
from sc2pool.platform import LINUX
from sc2pool.waiting import BlockingWait, Turn, WorkerLoop
from tests.unit.conftest import in_worker_loop

pytestmark = pytest.mark.skipif(not LINUX, reason="elsewhere nothing is blocked in")
LONG_S = 10.0


@pytest.fixture
def pipe():
    read, write = os.pipe()
    yield read, write
    os.close(read)
    os.close(write)


async def test_in_any_other_loop_it_is_not_possible(pipe):
    wait = BlockingWait(pipe[0])
    wait.close()
    assert not wait.possible


@in_worker_loop(1)
async def test_awaited_descriptor_ends_the_wait(pipe):
    wait = BlockingWait(pipe[0])
    assert wait.possible
    os.write(pipe[1], b"x")
    assert wait.wait(LONG_S)
    assert not wait.wait(0)  # edge-triggered: each change is reported once
    os.write(pipe[1], b"x")
    assert wait.wait(LONG_S)
    wait.close()


@in_worker_loop(1)
async def test_the_time_limit_ends_it(pipe):
    wait = BlockingWait(pipe[0])
    assert not wait.wait(0.01)
    wait.close()


@in_worker_loop(1)
async def test_other_descriptors_of_the_loop_end_the_wait(pipe):
    loop = asyncio.get_running_loop()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        wait = BlockingWait(pipe[0])
        came = loop.create_future()
        loop.add_reader(ours, lambda: came.set_result(ours.recv(10)))
        theirs.send(b"news")
        assert not wait.wait(LONG_S)
        received = await came  # no byte was lost
        loop.remove_reader(ours)
        wait.close()
    assert received == b"news"


@pytest.mark.timing
@in_worker_loop(1)
async def test_another_thread_ends_it(pipe):
    loop = asyncio.get_running_loop()
    wait = BlockingWait(pipe[0])
    called = asyncio.Event()
    thread = threading.Thread(target=loop.call_soon_threadsafe, args=(called.set,))
    thread.start()
    began_s = time.monotonic()
    assert not wait.wait(LONG_S)
    assert time.monotonic() - began_s < LONG_S
    await called.wait()
    thread.join()
    wait.close()


@in_worker_loop(1)
async def test_not_while_a_task_of_the_users_wants_its_turn(pipe):
    wait = BlockingWait(pipe[0])
    seen = [wait.possible]
    task = asyncio.create_task(asyncio.sleep(0))
    seen.append(wait.possible)
    await task
    await asyncio.sleep(0)
    seen.append(wait.possible)
    wait.close()
    assert seen == [True, False, True]


@in_worker_loop(1)
async def test_a_worker_that_ends_forbids_it(pipe):
    loop = asyncio.get_running_loop()
    assert isinstance(loop, WorkerLoop)
    wait = BlockingWait(pipe[0])
    loop.own_tasks = 0
    assert not wait.possible
    wait.close()


class Received(asyncio.BufferedProtocol):
    """Keeps the bytes from a connection, whether the loop or the test has read them."""

    def __init__(self) -> None:
        self._buffer = bytearray(20)
        self.bytes = b""

    def get_buffer(self, _: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, n_bytes: int) -> None:
        self.bytes += self._buffer[:n_bytes]


@in_worker_loop(1)
async def test_the_loop_reads_no_connection_that_is_read_directly():
    """The loop must not watch a connection that is read directly, or bytes would end every wait."""
    loop = asyncio.get_running_loop()
    ours, theirs = socket.socketpair()
    with theirs:
        transport, received = await loop.create_connection(Received, sock=ours)
        reader = DirectReader(ours, transport)
        assert reader.take_over()
        theirs.send(b"news")
        assert reader.wait(LONG_S)
        assert reader.read()
        assert received.bytes == b"news"
        reader.give_back()
        theirs.send(b" and more")
        async with asyncio.timeout(LONG_S):
            while received.bytes != b"news and more":
                await asyncio.sleep(0)
        reader.close()
        transport.close()


@in_worker_loop(2)
async def test_tasks_take_turns(pipe):
    loop = asyncio.get_running_loop()
    turns, turn = loop.turns, Turn(loop)
    calls = []

    def call() -> None:
        calls.append(os.read(pipe[0], 9))
        turn.go_on()

    async def wait(deadline_s: float) -> bool:
        return await turns.wait(turn, deadline_s)

    turns.watch(pipe[0], call)
    first = asyncio.ensure_future(wait(time.monotonic() + LONG_S))
    await asyncio.sleep(0)
    os.write(pipe[1], b"x")
    assert await first
    os.write(pipe[1], b"y")
    assert await turns.wait(turn, time.monotonic() + LONG_S)
    assert calls == [b"x", b"y"]
    turns.forget(pipe[0])
    turns.forget(pipe[0])
    os.write(pipe[1], b"z")
    assert not await turns.wait(turn, time.monotonic()), "nobody watches any more"


@in_worker_loop(3)
async def test_all_that_are_ready_have_their_turn_and_then_comes_the_end(pipe):
    loop = asyncio.get_running_loop()
    turns, seen = loop.turns, []
    ours, theirs = socket.socketpair()

    async def wait(turn: Turn, name: str) -> None:
        await turn
        seen.append(name)
        turns.at_end(lambda: seen.append("end"))

    watched = {pipe[0]: Turn(loop), ours.fileno(): Turn(loop)}
    tasks = []
    for descriptor, turn in watched.items():
        turns.watch(descriptor, turn.go_on)
        tasks.append(asyncio.ensure_future(wait(turn, "turn")))
    await asyncio.sleep(0)
    os.write(pipe[1], b"x")
    theirs.send(b"x")
    await asyncio.wait(tasks)
    turns.at_end(lambda: seen.append("soon"))
    await asyncio.sleep(0)
    for descriptor in watched:
        turns.forget(descriptor)
    ours.close()
    theirs.close()
    assert seen == ["turn", "turn", "end", "end", "soon"]


@in_worker_loop(2)
async def test_a_call_for_the_end_of_turns_does_not_wait_until_asyncio_comes_by(pipe):
    loop = asyncio.get_running_loop()
    turns, seen = loop.turns, []
    own, of_player = Turn(loop), Turn(loop)

    async def play() -> None:
        for name in ("turn", "next turn"):
            await of_player
            os.read(pipe[0], 1)
            seen.append(name)
            os.write(pipe[1], b"x")
        own.go_on_soon()

    turns.watch(pipe[0], of_player.go_on)
    playing = asyncio.ensure_future(play())
    await asyncio.sleep(0)
    # Turns begin in asyncio's pass that calls `at_end`, as when asyncio has read a reset's reply.
    os.write(pipe[1], b"x")
    loop.call_soon(turns.at_end, lambda: seen.append("end"))
    await own
    await playing
    turns.forget(pipe[0])
    assert seen == ["turn", "end", "next turn"]


@in_worker_loop(2)
async def passes_of_asyncio(rounds: int, with_a_task: bool) -> int:
    """The number of asyncio's passes while a worker's own task and a second task take turns.

    Args:
        rounds: number of turns of each task.
        with_a_task: whether a third task runs, such as one that the user's code starts.
    """
    loop = asyncio.get_running_loop()
    doorbells = [socket.socketpair() for _ in range(2)]
    passes = 0

    def count() -> None:
        nonlocal passes
        passes += 1
        counting[0] = loop.call_soon(count)

    async def play(own: int) -> None:
        sock, turn = doorbells[own][0], Turn(loop)
        sock.setblocking(False)
        loop.turns.watch(sock.fileno(), turn.go_on)
        for _ in range(rounds):
            while True:
                try:
                    sock.recv(1)
                    break
                except BlockingIOError:
                    await loop.turns.wait(turn, time.monotonic() + LONG_S)
            doorbells[1 - own][1].send(b"x")
        loop.turns.forget(sock.fileno())

    counting = [loop.call_soon(count)]
    other = asyncio.create_task(asyncio.Event().wait()) if with_a_task else None
    players = [asyncio.create_task(play(own)) for own in range(2)]
    doorbells[0][1].send(b"x")
    await asyncio.wait(players)
    counting[0].cancel()
    if other is not None:
        other.cancel()
    for pair in doorbells:
        for sock in pair:
            sock.close()
    return passes


def test_turns_are_taken_without_asyncio_unless_a_task_of_the_users_wants_its_own():
    assert passes_of_asyncio(rounds=300, with_a_task=False) < 100
    assert passes_of_asyncio(rounds=300, with_a_task=True) > 300


@pytest.mark.parametrize("how", ["a timer", "another thread"])
@in_worker_loop(2)
async def test_asyncio_is_not_forgotten_meanwhile(pipe, how):
    loop = asyncio.get_running_loop()
    turn, called = Turn(loop), []

    async def play() -> None:
        os.write(pipe[1], b"x")  # starts the task's turn without asyncio
        await loop.turns.wait(turn, time.monotonic() + LONG_S)
        if how == "a timer":
            loop.call_later(0.02, end)
        else:
            thread.start()
        await loop.turns.wait(turn, time.monotonic() + LONG_S)

    def end() -> None:
        called.append(how)
        turn.go_on()

    thread = threading.Thread(target=loop.call_soon_threadsafe, args=(end,))
    loop.turns.watch(pipe[0], turn.go_on)
    await asyncio.create_task(play())
    assert called == [how]
    loop.turns.forget(pipe[0])
    if how != "a timer":
        thread.join()


@in_worker_loop(2)
async def test_one_that_is_forgotten_in_the_same_pass_is_not_called(pipe):
    loop = asyncio.get_running_loop()
    turns, called = loop.turns, []
    ours, theirs = socket.socketpair()
    watched = [pipe[0], ours.fileno()]

    def call(own: int) -> None:
        called.append(own)
        for descriptor in watched:
            turns.forget(descriptor)

    for descriptor in watched:
        turns.watch(descriptor, partial(call, descriptor))
    os.write(pipe[1], b"x")
    theirs.send(b"x")
    await asyncio.sleep(0.05)
    ours.close()
    theirs.close()
    assert len(called) == 1


# ---- a turn --------------------------------------------------------------------------------------


async def test_a_turn_runs_its_task_at_once_and_again():
    turn, seen = Turn(asyncio.get_running_loop()), []

    async def play() -> str:
        for _ in range(2):
            seen.append(await turn)
        return "over"

    turn.go_on()  # has no effect, because no task waits
    task = asyncio.ensure_future(play())
    await asyncio.sleep(0)
    assert turn.is_awaited
    loop = asyncio.get_running_loop()
    loop.call_soon(turn.go_on)
    loop.call_soon(lambda: seen.append("next"))
    loop.call_soon(lambda: turn.go_on(in_time=False))
    assert await task == "over"
    assert seen == [True, "next", False]
    assert not turn.is_awaited


async def test_a_task_that_waits_for_its_turn_can_be_cancelled():
    turn = Turn(asyncio.get_running_loop())

    async def play() -> bool:
        try:
            await turn
        except asyncio.CancelledError:
            return await turn  # the task waits again to clean up
        raise AssertionError("it was cancelled")

    assert not turn.cancel()
    task = asyncio.ensure_future(play())
    await asyncio.sleep(0)
    assert task.cancel()
    await asyncio.sleep(0)
    assert turn.is_awaited
    asyncio.get_running_loop().call_soon(turn.go_on)
    assert await task

    never_begun = asyncio.ensure_future(play())
    never_begun.cancel()
    with pytest.raises(asyncio.CancelledError):
        await never_begun

    async def play_for_ever() -> None:
        await turn

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(play_for_ever(), 0.01)


async def test_a_task_keeps_its_own_context():
    name = ContextVar("name", default="")
    turn = Turn(asyncio.get_running_loop())

    async def play() -> list[str]:
        name.set("its own")
        await turn
        return [name.get()]

    task = asyncio.ensure_future(play())
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_soon(turn.go_on)
    assert [*await task, name.get()] == ["its own", ""]
