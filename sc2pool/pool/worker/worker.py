"""A worker: one lean process that runs the players of one or several instances.

The control socket brings the orders to host an instance and to end it. Each hosted instance
(`HostedInstance`) has its own channel, player and game. The worker's one event loop waits for the
trainer (doorbell, control socket, channels), the games' sockets and the games' exits. Rules:
* The worker imports no heavy module, unless the user's pickled code imports one.
* The worker ends with the trainer, and so do all processes that it has started (`__main__`).
* Orders are carried out one after the other.
* The worker exits after the trainer has asked its last instance to close. If an instance ends with
  a fault, only the trainer may end the worker, because another instance may come next.

On request the worker also writes the newest observation of each game into its live files. Once a
second a thread checks for a request (with a `stat`). If files are requested, the event loop writes
four times a second. A thread is needed, because during steps the event loop may never run a timer,
but a call from another thread always wakes it. Without a request the step path does no work for
live files. Only the loop's thread reads the game's messages. If an observation cannot be written,
that is not a fault.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakKeyDictionary

from sc2pool.errors import Fault, FaultKind, Phase
from sc2pool.pool.ipc import Channel, Control
from sc2pool.pool.messages import Evidence, Faulted, Host, Leave
from sc2pool.pool.queues import memory
from sc2pool.pool.queues.doorbell import Doorbell
from sc2pool.pool.report import live_files
from sc2pool.pool.report.stuck_hooks import HookWatch
from sc2pool.pool.worker.hosted_instance import HostedInstance, OwnTask, directory_of, until_done
from sc2pool.pool.worker.worker_end import Doorbells
from sc2pool.processes.spawn import leave_interrupts_to_parent, notice_children, start_thread
from sc2pool.tasks.player import Player
from sc2pool.waiting import WorkerLoop

_OWN_TASKS = 3
"""Up to this many tasks (`serve`, its waiter and one episode) run without taking turns."""


@dataclass(frozen=True)
class Over:
    """An instance is over; `closed` is False after a fault, but True after any other end."""

    number: int
    closed: bool


class WorkerProcess:
    """Hosts instances until the last one was asked to close."""

    def __init__(
        self, loop: WorkerLoop, control: Control, doorbells: Doorbells, memory_fd: int
    ) -> None:
        self._loop = loop
        self._control = control
        self._doorbells = doorbells
        self._memory_fd = memory_fd
        self._hosted: dict[int, HostedInstance] = {}
        self._orders: deque[tuple[Host | Leave | Over, list[int]]] = deque()
        """The pending orders, each with the descriptors that were sent with the order."""
        self._ordered = asyncio.Event()

    def players(self) -> list[tuple[Path, Player]]:
        """All players, each with its instance's folder."""
        hosted = list(self._hosted.values())
        return [(one.directory, one.player) for one in hosted if one.player is not None]

    def report(self, error: BaseException) -> None:
        """For every instance send the error that ends the worker: any instance may be the cause."""
        for hosted in self._hosted.values():
            hosted.report(error)

    async def serve(self) -> None:
        """Carry out orders until the last instance has closed."""
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
        # Receive one order at a time, because two orders together could need too many descriptors.
        self._loop.remove_reader(self._control.fileno())
        for order, descriptors in self._control.receive() or ():  # None: the trainer has exited
            self._order(order, descriptors)

    def _order(self, order: Host | Leave | Over, descriptors: Sequence[int] = ()) -> None:
        self._orders.append((order, [*descriptors]))
        self._loop.own_tasks = 0  # forbid blocking waits, so that `serve` gets its turn
        self._ordered.set()

    def _host(self, order: Host, channel: int = -1, spec: int = -1) -> None:
        if spec < 0:
            self._refuse(channel)
            return
        owned = ExitStack()
        owned.callback(os.close, spec)
        self._hosted[order.number] = HostedInstance(
            order.number,
            self._loop,
            self._doorbells,
            Channel(socket.socket(fileno=channel)),
            order.directory,
            spec=lambda: pickle.loads(memory.read(spec, order.spec_bytes)),
            owned=owned,
            memory_fd=self._memory_fd,
            is_over=lambda closed: self._order(Over(order.number, closed)),
        )

    @staticmethod
    def _refuse(channel: int) -> None:
        """Report that an instance's descriptors did not arrive, so that another worker hosts it."""
        if channel < 0:
            os._exit(1)
        detail = "the worker has no descriptors left"
        fault = Fault(FaultKind.LAUNCH_FAILED, Phase.LAUNCHING, detail, refused=True)
        with closing(Channel(socket.socket(fileno=channel))) as told:
            told.send(Faulted(fault, Evidence()))


def main(control_fd: int, request_fd: int, reply_fd: int, memory_fd: int) -> None:
    """Run one worker with these inherited descriptors (see `__main__`)."""
    leave_interrupts_to_parent()
    notice_children()
    doorbells = Doorbells(
        Doorbell.inherited(listening=request_fd), Doorbell.inherited(ringing=reply_fd)
    )
    loop = WorkerLoop(_OWN_TASKS)
    worker = WorkerProcess(loop, Control(socket.socket(fileno=control_fd)), doorbells, memory_fd)
    # The environment variable TMPDIR names this worker's folder, inside the run's folder.
    LiveView(Path(os.environ["TMPDIR"]).parent, worker.players).begin(loop)
    HookWatch(directory_of).begin()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        try:
            runner.run(until_done(OwnTask(worker.serve(), loop)))
        except BaseException as error:  # raised by a signal handler or a callback of the user
            worker.report(error)
    # After this line the user's threads and atexit handlers must not keep the process alive.
    # A stream that is missing, closed or without a reader must not keep the process alive either.
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):
            stream.flush()
    os._exit(0)


log = logging.getLogger("sc2pool")

_POLL_INTERVAL_S = 1.0
_WRITE_EVERY_S = 0.25


class LiveView:
    """Writes a worker's live files; `players` returns each player with its instance's folder."""

    def __init__(self, run: Path, players: Callable[[], Sequence[tuple[Path, Player]]]) -> None:
        self._run = run
        self._players = players
        self._under_way = threading.Event()
        self._broken = False
        self._maps: WeakKeyDictionary[Player, tuple[object, str]] = WeakKeyDictionary()
        """The map that was written last for each player, with the map's key."""

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the thread that checks for requests until the process ends."""
        start_thread(self._poll, "sc2pool-live-view", loop)

    def _poll(self, loop: asyncio.AbstractEventLoop) -> None:
        while not self._broken:
            requested = live_files.is_requested(self._run)
            if requested and not self._under_way.is_set():  # start only one write at a time
                self._under_way.set()
                try:
                    loop.call_soon_threadsafe(self._write)
                except RuntimeError:
                    return  # the event loop is closed, because the worker ends
            time.sleep(_WRITE_EVERY_S if requested else _POLL_INTERVAL_S)

    def _write(self) -> None:
        try:
            for directory, player in self._players():
                self._write_newest(directory, player)
        except Exception:
            self._broken = True
            log.exception("the newest observation could not be written")
        finally:
            self._under_way.clear()

    def _write_newest(self, directory: Path, player: Player) -> None:
        latest_view = player.latest_view()
        if latest_view is None:
            return
        # A late import, so that a worker without a game never loads the protocol.
        from sc2pool.players.view import map_of, view_of  # noqa: PLC0415

        observation, game_info = latest_view
        written_map, key = self._maps.get(player, (None, ""))
        if game_info is not written_map:
            described = map_of(game_info)
            self._maps[player] = game_info, described["key"]
            if described["key"] != key:
                key = described["key"]
                live_files.write(directory / live_files.MAP_FILE, described)
        view = {**view_of(observation), "map": key}
        live_files.write(directory / live_files.VIEW_FILE, view)
