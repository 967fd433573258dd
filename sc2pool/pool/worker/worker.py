"""A worker: one lean process that runs the players of one instance or of several.

    control socket ─► host, leave ─► HostedInstance, …   each: channel, player, game

Its one event loop waits for all of them together: the trainer (doorbell, control socket, channels),
the games' sockets, the games' ends. Rules: it imports nothing heavy that the user's own pickle does
not; it ends with the trainer, and all that it has started with it (`__main__`); orders are carried
out one after the other; it ends by itself once its last instance was told to close, and leaves it
to the trainer to end it after a fault, because another instance may be on its way.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import socket
import sys
from collections import deque
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from sc2pool.errors import Fault, FaultKind, Phase
from sc2pool.pool.ipc.channel import Channel, Control
from sc2pool.pool.ipc.messages import Evidence, Faulted, Host, Leave
from sc2pool.pool.queues import memory
from sc2pool.pool.queues.doorbell import Doorbell
from sc2pool.pool.report.stuck_hooks import HookWatch
from sc2pool.pool.worker.doorbells import Doorbells
from sc2pool.pool.worker.hosted_instance import HostedInstance, directory_of
from sc2pool.pool.worker.live_view import LiveView
from sc2pool.pool.worker.own_task import OwnTask, until_done
from sc2pool.processes.exit import notice_children
from sc2pool.processes.spawn import leave_interrupts_to_parent
from sc2pool.tasks.player import Player, PlayerSpec
from sc2pool.waiting import WorkerLoop

_OWN_TASKS = 3
"""Our own tasks: `Worker.serve`, its waiter, an episode. A fourth is another's, and needs turns."""


@dataclass(frozen=True)
class Over:
    """An instance has ended by itself: `closed` if it was told to."""

    number: int
    closed: bool


class SentSpec:
    """The pickled spec of a player, in a memory of its own."""

    def __init__(self, descriptor: int, size_bytes: int) -> None:
        self._descriptor = descriptor
        self._size_bytes = size_bytes

    def take(self) -> PlayerSpec:
        content = memory.read(self._descriptor, self._size_bytes)
        self.close()
        spec: PlayerSpec = pickle.loads(content)
        return spec

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class Worker:
    """Hosts instances until the last one was told to close."""

    def __init__(
        self, loop: WorkerLoop, control: Control, doorbells: Doorbells, memory_fd: int
    ) -> None:
        self._loop = loop
        self._control = control
        self._doorbells = doorbells
        self._memory_fd = memory_fd
        self._hosted: dict[int, HostedInstance] = {}
        self._orders: deque[tuple[Host | Leave | Over, list[int]]] = deque()
        """What is to be done, each with the descriptors that came with it."""
        self._ordered = asyncio.Event()

    def players(self) -> list[tuple[Path, Player]]:
        """The players that there are, each with its instance's folder."""
        hosted = list(self._hosted.values())
        return [(one.directory, one.player) for one in hosted if one.player is not None]

    def report(self, error: BaseException) -> None:
        """Every instance tells the trainer what has ended this worker: its cause is not known."""
        for hosted in self._hosted.values():
            hosted.report(error)

    async def serve(self) -> None:
        """Carry out orders until the end."""
        while True:
            self._loop.add_reader(self._control.fileno(), self._on_control)
            await self._ordered.wait()
            self._ordered.clear()
            while self._orders:
                order, descriptors = self._orders.popleft()
                if isinstance(order, Host):
                    self._host(order, *descriptors)
                    continue
                hosted = self._hosted.pop(order.number, None)
                if hosted is not None:
                    await hosted.end()
                if isinstance(order, Over) and order.closed and not self._hosted:
                    return
            self._loop.own_tasks = _OWN_TASKS

    def _on_control(self) -> None:
        # Not the next one before this one is carried out: its descriptors may have no room before.
        self._loop.remove_reader(self._control.fileno())
        for order, descriptors in self._control.receive() or ():  # None: the trainer has gone
            self._order(order, descriptors)

    def _order(self, order: Host | Leave | Over, descriptors: Sequence[int] = ()) -> None:
        self._orders.append((order, [*descriptors]))
        self._loop.own_tasks = 0  # no other task may keep it from its turn
        self._ordered.set()

    def _host(self, order: Host, channel: int = -1, spec: int = -1) -> None:
        if spec < 0:
            self._refuse(channel)
            return
        self._hosted[order.number] = HostedInstance(
            order.number,
            self._loop,
            self._doorbells,
            Channel(socket.socket(fileno=channel)),
            order.directory,
            spec=SentSpec(spec, order.spec_bytes),
            memory_fd=self._memory_fd,
            is_over=lambda closed: self._order(Over(order.number, closed)),
        )

    @staticmethod
    def _refuse(channel: int) -> None:
        """There was no room for the descriptors of an instance: another worker must host it."""
        if channel < 0:
            os._exit(1)
        detail = "the worker has no descriptors left"
        fault = Fault(FaultKind.LAUNCH_FAILED, Phase.LAUNCHING, detail, refused=True)
        with closing(Channel(socket.socket(fileno=channel))) as told:
            told.send(Faulted(fault, Evidence()))


def main(control_fd: int, request_fd: int, reply_fd: int, memory_fd: int) -> None:
    """Run one worker, with these descriptors; see `__main__`."""
    leave_interrupts_to_parent()
    notice_children()
    doorbells = Doorbells(
        Doorbell.inherited(listening=request_fd), Doorbell.inherited(ringing=reply_fd)
    )
    loop = WorkerLoop(_OWN_TASKS)
    worker = Worker(loop, Control(socket.socket(fileno=control_fd)), doorbells, memory_fd)
    # The trainer made TMPDIR a folder of the run's.
    LiveView(Path(os.environ["TMPDIR"]).parent, worker.players).begin(loop)
    HookWatch(directory_of).begin()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        try:
            runner.run(until_done(OwnTask(worker.serve(), loop)))
        except BaseException as error:  # of a signal handler or a callback of the user's
            worker.report(error)
    # Nothing of the user's may keep the process alive now: not a thread, not an atexit handler, and
    # not a stream that is missing or closed, or whose reader is gone.
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):
            stream.flush()
    os._exit(0)
