"""A simulation of the operating system that a pool uses; see `sc2pool.pool.instances.system`.

`Instance`, `Workers`, `Worker` and `EpollWaiter` decide by the pool's own code, but their requests
to the kernel go to the simulated `World`.
"""

from __future__ import annotations

import errno
import select
from collections import deque
from functools import partial
from pathlib import Path
from typing import Any

from sc2pool.errors import ConfigError
from sc2pool.pool import messages
from sc2pool.pool.instances import workers as instances
from sc2pool.pool.instances.event_loop import _POLL_INTERVAL_S
from sc2pool.pool.instances.instance import Instance
from sc2pool.pool.instances.system import System
from sc2pool.pool.ipc import ChannelClosedError
from sc2pool.pool.queues.doorbell import Doorbell, EpollWaiter, Waiter
from sc2pool.pool.queues.slots import Slots
from tests.support.simulation.worker import Worker
from tests.support.simulation.world import World

SPINS = 50
"""Number of polls in a row that the trainer may make without waiting."""
CLOCK_S = 0.001
"""The simulated clock advances by less than this from the planning of a wait to its start."""


class Interest:
    """The kernel's part of an epoll: its descriptors, and the descriptors that have rung."""

    def __init__(self) -> None:
        self.levels: dict[int, Any] = {}
        self.edges: dict[int, Any] = {}
        self.rung: dict[int, None] = {}

    @property
    def readable(self) -> bool:
        if self.rung:
            return True
        for what in self.levels.values():  # noqa: SIM110 - often called, and `any` is slower
            if what.readable:
                return True
        return False

    def ready(self) -> list[int]:
        return [*self.rung, *(number for number, what in self.levels.items() if what.readable)]


class Epoll:
    """An epoll that is edge-triggered for doorbells, and level-triggered for other descriptors."""

    def __init__(self, world: World) -> None:
        self._open = False
        world.point()
        world.refuse("epoll")
        self._world = world
        self._interest = Interest()
        self._number = world.open(self._interest)
        self._open = True
        self._spins = 0

    def __del__(self) -> None:
        self.close()

    def fileno(self) -> int:
        return self._number

    def register(self, number: int, flags: int) -> None:
        self._world.point()
        interest = self._interest
        if number in interest.levels or number in interest.edges:
            raise FileExistsError(17, "File exists")
        what = self._world.descriptors[number]
        self._world.refuse("descriptor")
        if flags & select.EPOLLET:
            interest.edges[number] = what
            what.heard_by.append(interest)
            if what.readable:
                interest.rung[number] = None
        else:
            interest.levels[number] = what

    def unregister(self, number: int) -> None:
        self._world.point()
        interest = self._interest
        what = interest.edges.pop(number, None)
        if what is not None:
            what.heard_by.remove(interest)
            interest.rung.pop(number, None)
        elif interest.levels.pop(number, None) is None:
            raise FileNotFoundError(2, "No such file or directory")

    def poll(self, timeout_s: float, _: int = -1) -> list[tuple[int, int]]:
        world, interest = self._world, self._interest
        if timeout_s > max(_POLL_INTERVAL_S, world.next_wake_s() - world.now_s + CLOCK_S):
            raise world.broken("the trainer would wait beyond what is due")
        world.point()
        ready = interest.ready()
        if not ready and timeout_s > 0:
            deadline_s = world.now_s + timeout_s
            waits = True
            while waits and not ready:
                waits = world.advance(deadline_s)
                ready = interest.ready()
        if ready or timeout_s > 0:
            self._spins = 0
        else:
            self._spins += 1
            if self._spins > SPINS:
                raise world.broken("the trainer waits without a pause")
        interest.rung.clear()
        world.point()  # after an interrupt at this point, ready descriptors are not reported again
        return [(number, select.EPOLLIN) for number in ready]

    def close(self) -> None:
        if not self._open:
            return
        self._open = False
        for what in self._interest.edges.values():
            what.heard_by.remove(self._interest)
        self._world.close(self._number)


class SimulatedDoorbell(Doorbell):
    """A simulated eventfd."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.readable = False
        self.heard_by: list[Interest] = []
        number = world.open(self)
        super().__init__(ringing=number, listening=number)

    def ring(self) -> None:
        self.readable = True
        for interest in self.heard_by:
            interest.rung[self.listening] = None

    def quiet(self) -> None:
        self.readable = False

    def close(self) -> None:
        self._world.close(self.listening)


class RequestDoorbell(SimulatedDoorbell):
    """A doorbell that the trainer rings; each ring is a point at which an event can happen."""

    def ring(self) -> None:
        self._world.point()
        self.readable = True
        self._world.point()


class SimulatedSlots(Slots):
    """The memory that trainer and workers share; in the simulation it is memory of this process."""

    def __init__(self, world: World, n_slots: int) -> None:
        self._world = world
        super().__init__(n_slots)

    def _create(self) -> int:
        return self._world.open(self)

    def _map(self, size_bytes: int) -> Any:
        try:
            self._world.refuse("memory")
        except OSError as error:
            raise ConfigError(f"cannot claim memory: {error.strerror}") from error
        self.memory = bytearray(size_bytes)
        return self.memory

    def _release(self, descriptor: int) -> None:
        self._world.close(descriptor)


class Socket:
    """The trainer's end of a worker's socket pair."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    @property
    def readable(self) -> bool:
        return bool(self._worker.outbox) or not self._worker.alive


class Channel:
    """The trainer's end of a worker's channel."""

    def __init__(self, world: World, worker: Worker) -> None:
        self._world = world
        self._worker = worker
        self._socket = Socket(worker)
        self._number = world.open(self._socket)

    def fileno(self) -> int:
        return self._number

    def readable(self, timeout_s: float) -> bool:
        world = self._world
        deadline_s = world.now_s + timeout_s
        while not self._socket.readable and world.advance(deadline_s):
            pass
        return self._socket.readable

    def send(self, message: Any) -> None:
        self._world.point()
        if not self._worker.alive:
            raise ChannelClosedError("broken pipe")
        self._worker.inbox.append(message)
        self._world.point()

    def receive(self) -> list[Any]:
        self._world.point()
        worker = self._worker
        if not self._socket.readable:
            raise self._world.broken("a channel is read that is not readable, which blocks")
        if not worker.outbox:
            raise ChannelClosedError("end of file")
        received = list(worker.outbox)
        worker.outbox.clear()
        return received

    def skip(self) -> bytes:
        self.receive()
        return b""

    def close(self) -> None:
        self._world.close(self._number)


class Process:
    """The trainer's view of a worker's process.

    Attributes:
        hosted: All instances that the process was ever ordered to host.
        orders: The trainer's open orders: an instance, and True to end it or False to host it.
        reply_doorbell: The doorbell that the hosted instances ring.
    """

    def __init__(self, world: World, reply_doorbell: SimulatedDoorbell) -> None:
        world.refuse("process")
        self._world = world
        self.hosted: list[Worker] = []
        self.orders: deque[tuple[Worker, bool]] = deque()
        self.reply_doorbell = reply_doorbell
        self.alive = True
        self.hung = False
        self.reaped = False
        world.processes.append(self)
        self.pid = 10_000 + len(world.processes)

    def die(self) -> None:
        """The process is killed, at an instant that the schedule chooses."""
        self.alive = False
        for hosted in self.hosted:
            hosted.die()

    def ends_if_empty(self) -> None:
        """An instance has closed: end the process if it was the last instance."""
        if not any(hosted.alive for hosted in self.hosted):
            self.alive = False

    def has_ended(self) -> bool:
        return not self.alive

    def kill(self) -> None:
        self._world.point()
        self.die()

    def wait(self, deadline: Any, _: Any) -> None:
        while self.alive and self._world.advance(deadline.instant_s):
            pass

    def end(self) -> None:
        self.kill()
        self.reaped = True

    @property
    def was_killed(self) -> bool:
        return True

    def how_it_ended(self) -> str:
        return "was killed by SIGKILL"


class SimulatedWorker(instances.Worker):
    """A worker whose process is simulated."""

    def __init__(self, world: World, directory: Path, memory_fd: int, *others: Any) -> None:
        self._world = world
        super().__init__(directory, memory_fd, *others)

    def _make(self, _: Path, __: int) -> None:
        world, owned = self._world, self._owned
        world.point()
        self.request_doorbell = RequestDoorbell(world)
        owned.callback(self.request_doorbell.close)
        self.reply_doorbell = SimulatedDoorbell(world)
        owned.callback(self.reply_doorbell.close)
        self.process: Any = Process(world, self.reply_doorbell)
        self._control: Any = Control(self.process)
        owned.callback(self.process.end)

    def host(self, instance: Any, directory: Path, _: bytes) -> Any:
        world, number = self._world, instance.number
        worker = Worker(world, number, instance.slots, self.process)
        channel: Any = Channel(world, worker)
        self._hostings[number] = instances.Hosting(self, directory, channel)
        world.refuse("memory")  # the system may refuse the memory that holds the spec
        self._waiter.add(channel.fileno(), instance)
        world.point()
        if not self.process.alive:
            raise OSError(errno.ECONNREFUSED, "Connection refused")
        world.workers[number] = worker
        self.process.hosted.append(worker)
        self.process.orders.append((worker, False))
        return channel


class Control:
    """The trainer's end of a control socket."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def send(self, order: messages.Leave) -> None:
        number = order.number
        if not self._process.alive:
            raise OSError(errno.ECONNREFUSED, "Connection refused")
        for hosted in self._process.hosted:
            if hosted.number == number and hosted.alive:
                self._process.orders.append((hosted, True))


class SimulatedInstance(Instance):
    """An instance that lives in a simulated worker."""

    def __init__(
        self, world: World, number: int, spec: bytes, slots: SimulatedSlots, slot: int
    ) -> None:
        super().__init__(number, spec, slots, slot)
        self._world = world
        self.slots = slots

    def _make(self, *arguments: Any) -> None:
        self._world.point()
        super()._make(*arguments)

    def kill(self, *, with_worker: bool) -> None:
        super().kill(with_worker=with_worker)
        if self.worker is not None and self.number in self._world.workers:
            self._world.workers[self.number].game_dies()


class Watchdog:
    """The watchdog's thread, whose verdicts come from the schedule."""

    cpu_s = 0.0
    is_this_thread = False

    def __init__(self, world: World, *_: Any) -> None:
        self._world = world
        self.doorbell = SimulatedDoorbell(world)
        world.on_verdict = self.doorbell.ring

    def verdicts(self) -> list[Any]:
        taken = self._world.verdicts[:]
        self._world.verdicts.clear()
        return taken

    def samples(self) -> dict[int, Any]:
        return {}

    def close(self) -> None:
        self._world.on_verdict = lambda: None
        self.doorbell.close()


class RunDir:
    """The folder of a run; the simulation writes no files."""

    path = Path("/nowhere")

    def __init__(self, world: World) -> None:
        self._world = world
        world.refuse("folder")
        self._number = world.open(self)
        self._open = True

    def worker_dir(self) -> Path:
        self._world.point()
        self._world.refuse("folder")
        return self.path / "worker"

    def instance_dir(self, number: int) -> Path:
        self._world.point()
        self._world.refuse("folder")
        return self.path / str(number)

    def note_process(self, *_: object) -> None:
        self._world.point()

    def close(self) -> None:
        if self._open:
            self._open = False
            self._world.close(self._number)


def system(world: World) -> System:
    """The simulated operating system of this world."""

    def waiter() -> Waiter:
        return EpollWaiter(partial(Epoll, world))  # type: ignore[arg-type]

    return System(
        require_descriptors=lambda *_: None,
        available_bytes=lambda: 1 << 40,
        waiter=waiter,
        slots=partial(SimulatedSlots, world),
        run_dir=partial(RunDir, world),
        worker=partial(SimulatedWorker, world),
        instance=partial(SimulatedInstance, world),
        watchdog=partial(Watchdog, world),
    )
