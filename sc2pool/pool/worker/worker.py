"""A worker: one lean process that runs the players of one instance or of several.

    control socket ─► host, leave ─► HostedInstance, …   each: channel, player, game

Its one event loop waits for all of them together: the trainer (doorbell, control socket, channels),
the games' sockets, the games' ends. Rules: it imports nothing heavy that the user's own pickle does
not. It ends with the trainer, and all that it has started with it (`__main__`). Orders are carried
out one after the other. It ends by itself once its last instance was told to close, and leaves it
to the trainer to end it after a fault, because another instance may be on its way.

It also writes the newest observation of each game into its live files, while they are requested:

    thread: are they requested? (a `stat`, once a second) ─► event loop: write, four times a second

Why a thread: while steps go on, the worker's event loop may never get to a timer of its own; a call
from another thread always wakes it. Rules: without a request the step path does nothing for this.
The game's messages are read in the loop's thread only. An observation that cannot be written is no
fault of the game or of the worker.
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
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakKeyDictionary

from sc2pool.errors import Fault, FaultKind, Phase
from sc2pool.pool.ipc.channel import Channel, Control
from sc2pool.pool.ipc.messages import Evidence, Faulted, Host, Leave
from sc2pool.pool.queues import memory
from sc2pool.pool.queues.doorbell import Doorbell
from sc2pool.pool.report import live_files
from sc2pool.pool.report.stuck_hooks import HookWatch
from sc2pool.pool.worker.doorbells import Doorbells
from sc2pool.pool.worker.hosted_instance import HostedInstance, OwnTask, directory_of, until_done
from sc2pool.processes.exit import notice_children
from sc2pool.processes.shortage import start_thread
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


log = logging.getLogger("sc2pool")

_POLL_INTERVAL_S = 1.0
_WRITE_EVERY_S = 0.25


class LiveView:
    """Writes the live files of one worker.

    Args:
        players: returns the players that there are, each with the folder of its instance.
    """

    def __init__(self, run: Path, players: Callable[[], Sequence[tuple[Path, Player]]]) -> None:
        self._run = run
        self._players = players
        self._under_way = threading.Event()
        self._broken = False
        self._maps: WeakKeyDictionary[Player, tuple[object, str]] = WeakKeyDictionary()
        """The map that was written for each player, and its key."""

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to look for requests; it continues until the process ends."""
        start_thread(self._poll, "sc2pool-live-view", loop)

    def _poll(self, loop: asyncio.AbstractEventLoop) -> None:
        while not self._broken:
            requested = live_files.is_requested(self._run)
            if requested and not self._under_way.is_set():  # a busy loop is not called twice
                self._under_way.set()
                try:
                    loop.call_soon_threadsafe(self._write)
                except RuntimeError:
                    return  # the loop is closed: the worker ends
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
        # Only now: a worker without a game never loads the protocol.
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
