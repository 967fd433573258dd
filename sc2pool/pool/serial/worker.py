"""A worker that is no process: its players live in the trainer's, in the event loop of its waits.

Rules: an instance that fails ends with its game, as in a process of its own; to end one is to wait
for its end, so nothing of it runs afterwards, but no longer than a limit.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sc2pool.deadline import Deadline
from sc2pool.pool.instances import workers
from sc2pool.pool.ipc.channel import Channel
from sc2pool.pool.ipc.messages import Leave
from sc2pool.pool.machine.worker_process import WorkerProcess
from sc2pool.pool.queues.common_doorbell import CommonDoorbells
from sc2pool.pool.serial.channel import LocalChannel
from sc2pool.pool.serial.waiter import SerialWaiter, run
from sc2pool.pool.worker.doorbells import Doorbells
from sc2pool.pool.worker.hosted_instance import HostedInstance
from sc2pool.pool.worker.own_task import OwnTask
from sc2pool.tasks.player import PlayerSpec

_ENDS_WITHIN_S = 2.0
"""How long the user's code may take to end, once it is cancelled."""
_POLL_INTERVAL_S = 0.01


class GivenSpec:
    """A spec that does not travel: the player is made of the user's own objects."""

    def __init__(self, spec: PlayerSpec) -> None:
        self._spec = spec

    def take(self) -> PlayerSpec:
        return self._spec

    def close(self) -> None:
        pass


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
        self._control: Any = Orders(self._leave)
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
            spec=GivenSpec(spec),
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
        """End its players and their games; their channels end."""
        super().kill()
        self._end_all()

    def _end_all(self) -> None:
        for number in list(self._hosted):
            self._leave(number)
        self._run_until_empty(Deadline.after(_ENDS_WITHIN_S))

    def _run_until_empty(self, deadline: Deadline, hurry: threading.Event | None = None) -> None:
        """Run the loop until its players have ended; not if it runs, and a hook has called this."""
        loop = self._loop
        while self._hosted or self._ending:
            hurries = hurry is not None and hurry.is_set()
            if hurries or deadline.expired() or loop.is_closed() or loop.is_running():
                return
            # One that was told to close may begin to end meanwhile.
            run(loop, deadline.remaining_s() if self._ending else _POLL_INTERVAL_S)


class Orders:
    """In place of a control socket."""

    def __init__(self, leave: Callable[[int], None]) -> None:
        self._leave = leave

    def send(self, order: Leave) -> None:
        self._leave(order.number)


class TrainersProcess(WorkerProcess):
    """The trainer's own process, in place of a worker's: it must not be killed.

    Args:
        run_until_empty: runs the players until they have ended, or until a deadline.
    """

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
