"""While a pool plays, leaves the interpreter in the way DOOR; run as `doors.py GAME DOOR`.

`test_trainer_ends.py` tests signals and `sys.exit`, and `classes/test_every_class.py` tests calls
of `close` at the interpreter's end.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psutil

from sc2pool.config import PoolConfig
from sc2pool.envs.shared_keywords import task_spec
from sc2pool.players.factory import TaskPlayerSpec
from sc2pool.pool.pool import Pool
from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon

Door = Callable[[Pool], Any]
DOORS: dict[str, Door] = {}
kept: list[Any] = []
"""Objects that live until the interpreter ends."""


def door(function: Door) -> Door:
    DOORS[function.__name__.replace("_", " ").strip()] = function
    return function


def step(pool: Pool) -> None:
    pool.send([0] * pool.n)
    pool.recv()


def step_for_ever(pool: Pool) -> None:
    while True:
        step(pool)


# The program comes to its end without calling `close`.


@door
def the_script_is_over(pool: Pool) -> None:
    kept.append(pool)


# The program ends at once.


@door
def os__exit(pool: Pool) -> None:
    os._exit(3)


@door
def another_program_takes_over(pool: Pool) -> None:
    os.execv("/bin/sleep", ["sleep", "3"])


# The program ends during a call of the pool.


@door
def a_signal_handler_exits_in_a_step(pool: Pool) -> None:
    signal.signal(signal.SIGALRM, lambda *_: sys.exit(5))
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    step_for_ever(pool)


@door
def a_thread_steps_when_the_script_is_over(pool: Pool) -> None:
    stepping = threading.Event()

    def play() -> None:
        while True:
            step(pool)
            stepping.set()

    threading.Thread(target=play, daemon=True).start()
    stepping.wait()


@door
def a_thread_outlives_the_script_and_closes(pool: Pool) -> None:
    def play() -> None:
        for _ in range(100):
            step(pool)
        pool.close()

    threading.Thread(target=play).start()


@door
def an_executor_steps(pool: Pool) -> None:
    executor = ThreadPoolExecutor(1)
    executor.submit(step, pool)
    sys.exit(0)


@door
def an_event_loop_is_left(pool: Pool) -> None:
    async def main() -> None:
        await asyncio.to_thread(step, pool)
        raise KeyboardInterrupt

    asyncio.run(main())


# The program uses the pool while the interpreter exits.


@door
def atexit_steps_and_raises(pool: Pool) -> None:
    def last() -> None:
        step(pool)
        raise ValueError("at the exit")

    atexit.register(last)


# The program ends after it has started other processes.


@door
def a_fork_outlives_it(pool: Pool) -> None:
    if os.fork() == 0:
        time.sleep(4.0)
        os._exit(0)


@door
def a_fork_exits_and_it_plays_on(pool: Pool) -> None:
    child = os.fork()
    if child == 0:
        sys.exit(0)  # runs all exit handlers
    os.waitpid(child, 0)
    step(pool)


@door
def it_becomes_a_daemon(pool: Pool) -> None:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(4.0)
        os._exit(0)
    os._exit(0)


@door
def a_program_of_its_outlives_it(pool: Pool) -> None:
    subprocess.Popen(["/bin/sleep", "4"], close_fds=False)


# The program ends without open descriptors, or without streams.


@door
def every_descriptor_is_closed(pool: Pool) -> None:
    os.closerange(3, 10_000)
    sys.exit(0)


@door
def its_streams_are_closed(pool: Pool) -> None:
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        stream.close()
    sys.exit(0)


def main(game: str, name: str) -> None:
    spec = TaskPlayerSpec(task_spec(MoveToBeacon, game, PoolConfig()))
    pool = Pool([spec], one_book=True, config=PoolConfig())
    pool.reset()
    children = [process.pid for process in psutil.Process().children(recursive=True)]
    print(json.dumps({"stage": "playing", "children": children}), flush=True)
    sys.stdin.readline()  # waits until the test knows the child processes
    DOORS[name](pool)


if __name__ == "__main__":
    main(*sys.argv[1:])
