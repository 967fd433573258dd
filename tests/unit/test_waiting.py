"""When a loop may be blocked in, and what ends such a wait."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import threading
import time

import pytest

from sc2pool.waiting import BlockingWait, WorkerLoop

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is blocked in")
LONG_S = 10.0


def run(own_tasks: int, main):
    with asyncio.Runner(loop_factory=lambda: WorkerLoop(own_tasks)) as runner:
        return runner.run(main())


@pytest.fixture
def pipe():
    read, write = os.pipe()
    yield read, write
    os.close(read)
    os.close(write)


def test_in_any_other_loop_it_is_not_possible(pipe):
    async def main() -> bool:
        wait = BlockingWait(pipe[0])
        wait.close()
        return wait.possible

    assert not asyncio.run(main())


def test_what_is_waited_for_ends_it(pipe):
    async def main() -> None:
        wait = BlockingWait(pipe[0])
        assert wait.possible
        os.write(pipe[1], b"x")
        assert wait.wait(LONG_S)
        assert not wait.wait(0)  # a change, not a state: it was told once
        os.write(pipe[1], b"x")
        assert wait.wait(LONG_S)
        wait.close()

    run(1, main)


def test_the_time_limit_ends_it(pipe):
    async def main() -> None:
        wait = BlockingWait(pipe[0])
        assert not wait.wait(0.01)
        wait.close()

    run(1, main)


def test_whatever_the_loop_watches_ends_it_too(pipe):
    async def main() -> bytes:
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.setblocking(False)
            wait = BlockingWait(pipe[0])
            came = loop.create_future()
            loop.add_reader(ours, lambda: came.set_result(ours.recv(10)))
            theirs.send(b"news")
            assert not wait.wait(LONG_S)
            received = await came  # nothing was lost
            loop.remove_reader(ours)
            wait.close()
            return received

    assert run(1, main) == b"news"


@pytest.mark.timing
def test_another_thread_ends_it(pipe):
    async def main() -> None:
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

    run(1, main)


def test_not_while_a_task_of_the_users_wants_its_turn(pipe):
    async def main() -> list[bool]:
        wait = BlockingWait(pipe[0])
        seen = [wait.possible]
        task = asyncio.create_task(asyncio.sleep(0))
        seen.append(wait.possible)
        await task
        await asyncio.sleep(0)
        seen.append(wait.possible)
        wait.close()
        return seen

    assert run(1, main) == [True, False, True]


def test_a_worker_that_ends_forbids_it(pipe):
    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, WorkerLoop)
        wait = BlockingWait(pipe[0])
        loop.own_tasks = 0
        assert not wait.possible
        wait.close()

    run(1, main)


def test_tasks_take_turns(pipe):
    async def main() -> None:
        loop = asyncio.get_running_loop()
        turns = loop.turns
        ready = [loop.create_future() for _ in range(2)]
        calls = []

        def call() -> None:
            calls.append(os.read(pipe[0], 9))
            ready[len(calls) - 1].set_result(True)

        turns.watch(pipe[0], call)
        first = asyncio.ensure_future(turns.wait(ready[0], time.monotonic() + LONG_S))
        await asyncio.sleep(0)
        os.write(pipe[1], b"x")
        assert await first
        os.write(pipe[1], b"y")
        assert await turns.wait(ready[1], time.monotonic() + LONG_S)
        assert calls == [b"x", b"y"]
        turns.forget(pipe[0])
        turns.forget(pipe[0])
        os.write(pipe[1], b"z")
        late = loop.create_future()
        assert not await turns.wait(late, time.monotonic()), "nobody watches any more"

    run(2, main)
