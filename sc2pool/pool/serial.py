"""A pool without worker processes, for debugging: its players live in the trainer's process.

`serial_system` makes the `System` of a serial pool (see `sc2pool.pool.instances.system`). The
worker of a serial pool (`SerialWorker`) has no process of its own. The waiter (`SerialWaiter`)
waits by running the players' event loop. A `LocalChannel` replaces the sockets of
`sc2pool.pool.ipc` within the process.

The games are still processes. All other code is the code of every pool, so a serial pool plays the
same episodes with the same seeds and observations. No worker can be killed, and nothing watches
memory or hung code. The user's code has no deadline, because the user may be at a breakpoint.

Rules:
* The user's code runs inside the trainer's calls. If the user's code raises an error, the call
  raises the same error, with the traceback from the trainer's line to the line that failed.
* The receiver of a message on a channel gets copies of the objects, made by pickling.
* An instance that fails ends together with its game. To end an instance, the pool waits, up to a
  time limit, until none of the instance's code runs.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from sc2pool.config import PoolConfig
from sc2pool.deadline import Deadline
from sc2pool.pool.instances import workers
from sc2pool.pool.instances.system import System
from sc2pool.pool.instances.workers import WorkerProcess
from sc2pool.pool.ipc import Channel, ChannelClosedError, for_trainer, of_the_user
from sc2pool.pool.queues.doorbell import CommonDoorbells, Doorbell, Waiter
from sc2pool.pool.watchdog import Sample, Verdict, Watchdog
from sc2pool.pool.worker.hosted_instance import HostedInstance, OwnTask
from sc2pool.pool.worker.worker_end import Doorbells


class LocalChannel(Channel):
    """One end of a channel within one process; `pair` makes both ends. Sending never waits."""

    _peer: LocalChannel

    def __init__(self) -> None:
        self._inbox: deque[bytes] = deque()
        self._doorbell = Doorbell.create()
        """Rings when a message, or the end of the channel, can be received."""
        self._peer_closed = self._closed = False

    @classmethod
    def pair(cls) -> tuple[LocalChannel, LocalChannel]:
        """Make both ends; OSError if the system has no descriptors left."""
        ours, theirs = cls(), cls()
        ours._peer, theirs._peer = theirs, ours
        return ours, theirs

    def fileno(self) -> int:
        return self._doorbell.listening

    def readable(self, timeout_s: float) -> bool:  # noqa: ARG002 - nothing can arrive during a wait
        return bool(self._inbox) or self._peer_closed

    def send(self, message: Any) -> None:
        if self._peer_closed:
            raise ChannelClosedError("the other side is gone")
        self._peer._inbox.append(for_trainer(message))
        self._peer._doorbell.ring()

    def receive(self) -> list[Any]:
        return [pickle.loads(data) for data in self._taken()]

    def skip(self) -> bytes:
        return b"".join(self._taken())

    def _taken(self) -> list[bytes]:
        self._doorbell.quiet()
        taken = list(self._inbox)
        self._inbox.clear()
        if self._peer_closed:
            if not taken:
                raise ChannelClosedError("end of file")
            self._doorbell.ring()  # ring again, because only the next read raises the end of file
        return taken

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if not self._peer._closed:
            self._peer._peer_closed = True
            self._peer._doorbell.ring()
        self._doorbell.close()


_TASKS_END_WITHIN_S = 1.0
"""How long cancelled tasks may take to end, in seconds."""


class SerialWaiter(Waiter):
    """Waits by running the event loop of the players."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._loop = loop
        self._ready: dict[int, None] = {}
        self._raised: tuple[BaseException, Any] | None = None
        self._raised_in_close: BaseException | None = None

    def add(self, descriptor: int, tag: Any) -> None:
        self._tags[descriptor] = tag
        self._loop.add_reader(descriptor, self._on_ready, descriptor)

    def _on_ready(self, descriptor: int) -> None:
        self._ready[descriptor] = None
        self._loop.stop()

    def remove(self, descriptor: int) -> None:
        self._tags.pop(descriptor, None)
        self._doorbells.pop(descriptor, None)
        if not self._loop.is_closed():
            self._loop.remove_reader(descriptor)

    def note_raised(self, error: BaseException, tag: Any) -> None:
        """Record an error that the user's code raised in the instance with this tag."""
        self._raised = error, tag
        self._loop.stop()

    def take_raised(self) -> tuple[BaseException, Any] | None:
        raised, self._raised = self._raised, None
        return raised

    def note_end(self, ending: asyncio.Task[None]) -> None:
        """Record an instance's end; keep the first error that an env's own `close` has raised."""
        error = None if ending.cancelled() else ending.exception()
        if self._raised_in_close is None and error is not None:
            self._raised_in_close = of_the_user(error)

    def wait(self, timeout_s: float | None) -> list[Any]:
        self._ready.clear()
        run(self._loop, timeout_s)
        return self._answer([one for one in self._ready if one in self._tags])

    def close(self) -> None:
        """Close the waiter's descriptors; then raise the first error of an env's own `close`."""
        loop = self._loop
        if loop.is_closed() or loop.is_running():
            return
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        if tasks:
            asyncio.gather(*tasks, return_exceptions=True).add_done_callback(lambda _: loop.stop())
            run(loop, _TASKS_END_WITHIN_S)
        run(loop, 0.0)  # an aborted connection ends in the loop's next pass
        loop.close()
        error, self._raised_in_close = self._raised_in_close, None
        if error is None:
            return
        try:
            raise error
        finally:
            del error  # break a cycle: the error's traceback refers to this frame


def run(loop: asyncio.AbstractEventLoop, timeout_s: float | None) -> None:
    """Run the loop until it is stopped, for at most `timeout_s` (None: no limit).

    Another loop may already run in this thread, as in a notebook. The call of `run` blocks that
    other loop, like any code that does not await. The players' loop must run in this thread,
    because the players' hooks must run in the user's thread.
    """
    timer = None if timeout_s is None else loop.call_later(max(0.0, timeout_s), loop.stop)
    try:
        with _without_running_loop():
            loop.run_forever()
    finally:
        if timer is not None:
            timer.cancel()


@contextmanager
def _without_running_loop() -> Iterator[None]:
    """During the block, hide this thread's running event loop, so that another loop can run."""
    outer = asyncio._get_running_loop()
    if outer is None:
        yield
        return
    task = asyncio.current_task(outer)
    if task is not None:
        asyncio.tasks._leave_task(outer, task)  # see "Extending" in asyncio's documentation
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        asyncio._set_running_loop(outer)
        if task is not None:
            asyncio.tasks._enter_task(outer, task)


_CODE_ENDS_WITHIN_S = 2.0
"""How long the user's code may take to end after it is cancelled."""
_POLL_INTERVAL_S = 0.01


class SerialWorker(workers.Worker):
    """Hosts players in the trainer's process."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        directory: Path,
        memory_fd: int,
        waiter: SerialWaiter,
        common: CommonDoorbells,
    ) -> None:
        self._loop = loop
        self._memory_fd = memory_fd
        self._hosted: dict[int, HostedInstance] = {}
        self._ending: set[OwnTask] = set()
        super().__init__(directory, memory_fd, waiter, common)
        self._note_raised = waiter.note_raised
        self._note_end = waiter.note_end

    def _make(self, directory: Path, memory_fd: int) -> None:  # noqa: ARG002
        owned = self._owned
        self._make_doorbells()
        self._doorbells = Doorbells(self.request_doorbell, self.reply_doorbell)
        self.process = TrainersProcess(self._run_until_empty)
        owned.callback(self._stop_listening)
        owned.callback(self._end_all)

    def host(self, instance: workers.Resident, directory: Path, spec: Any) -> Channel:
        ours, theirs = LocalChannel.pair()
        number = instance.number
        self._hostings[number] = workers.Hosting(self, directory, ours)
        self._waiter.add(ours.fileno(), instance)
        self._hosted[number] = HostedInstance(
            number,
            self._loop,
            self._doorbells,
            theirs,
            directory,
            spec=lambda: spec,  # not pickled: the player is made of the user's own objects
            owned=ExitStack(),
            memory_fd=self._memory_fd,
            is_over=lambda _: self._leave(number),
            raised=lambda error: self._note_raised(error, instance),
        )
        return ours

    def _leave(self, number: int) -> None:
        hosted = self._hosted.pop(number, None)
        if hosted is not None:
            ending = OwnTask(hosted.end(), self._loop)
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)
            ending.add_done_callback(self._note_end)
            ending.add_done_callback(lambda _: self._loop.stop())

    def _stop_listening(self) -> None:
        if not self._loop.is_closed():
            self._loop.remove_reader(self.request_doorbell.listening)

    def kill(self) -> None:
        """End the worker's players and their games, which also ends the players' channels."""
        super().kill()
        self._end_all()

    def _end_all(self) -> None:
        for number in list(self._hosted):
            self._leave(number)
        self._run_until_empty(Deadline.after(_CODE_ENDS_WITHIN_S))

    def _run_until_empty(self, deadline: Deadline, hurry: threading.Event | None = None) -> None:
        """Run the loop until its players end or the deadline passes; do nothing inside a hook."""
        loop = self._loop
        while self._hosted or self._ending:
            hurries = hurry is not None and hurry.is_set()
            if hurries or deadline.expired() or loop.is_closed() or loop.is_running():
                return
            # If no player is ending, run only briefly, because a player may begin to end.
            run(loop, deadline.remaining_s() if self._ending else _POLL_INTERVAL_S)


class TrainersProcess(WorkerProcess):
    """Represents the trainer's own process as a worker's process, but never kills it."""

    def __init__(self, run_until_empty: Callable[[Deadline, threading.Event], None]) -> None:
        self.pid = os.getpid()
        self._run_until_empty = run_until_empty

    def kill(self) -> None:
        pass

    def end(self) -> None:
        pass

    def wait(self, deadline: Deadline, hurry: threading.Event) -> None:
        self._run_until_empty(deadline, hurry)

    def has_ended(self) -> bool:
        return False

    @property
    def was_killed(self) -> bool:
        return False

    def how_it_ended(self) -> str:
        return "has ended its player"


_NO_LIMIT_S = 1e9


def serial_system() -> System:
    """The system of one serial pool."""
    loop = asyncio.SelectorEventLoop()
    return System(
        packed=lambda spec: spec,
        waiter=lambda: SerialWaiter(loop),
        worker=partial(SerialWorker, loop),
        watchdog=NoWatchdog,
    )


def without_deadlines(config: PoolConfig) -> PoolConfig:
    """This configuration without the time limits for the user's code."""
    limits = replace(
        config.limits, worker_start_s=_NO_LIMIT_S, worker_grace_s=_NO_LIMIT_S, call_s=_NO_LIMIT_S
    )
    return replace(config, limits=limits)


class NoWatchdog(Watchdog):
    """Watches nothing."""

    def __init__(self, *_: Any) -> None:
        self.cpu_s = 0.0
        self.doorbell = Doorbell.create()
        self._open = True

    def verdicts(self) -> list[Verdict]:
        return []

    def samples(self) -> dict[int, Sample]:
        return {}

    @property
    def is_this_thread(self) -> bool:
        return False

    def close(self) -> None:
        if self._open:
            self._open = False
            self.doorbell.close()
