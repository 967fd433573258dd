"""The worker processes of a pool, and the instances that live in each.

A worker is a process with two doorbells and a control socket. A worker hosts some instances. Each
instance has a channel, a slot, a game and a folder.

If an instance fails, its worker continues with the other instances. Through one socket the worker
is ordered first to end the failed instance, then to host its successor, so the successor can take
over the slot. Rules:
* A worker ends together with its last instance. If the last instance must first close an env
  of the user, the worker exits by itself.
* A worker that does not release an instance in time is killed with all its instances.
* A worker's process leads a process group that contains its games. The group is killed before the
  worker is reaped, because reaping frees the group's number for reuse.
* Every wait in this module has a time limit.
* Only this module registers doorbells and channels with the waiter, and removes them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from sc2pool.deadline import NEVER, Deadline
from sc2pool.game.hang_detection import unless_stalled
from sc2pool.pool.ipc import Channel, ChannelClosedError, Control, socket_pair
from sc2pool.pool.messages import Close, Host, Leave
from sc2pool.pool.queues import memory
from sc2pool.pool.queues.doorbell import CommonDoorbells, Doorbell, Waiter
from sc2pool.processes.spawn import notices_children, signal_name
from sc2pool.processes.tree import created_at_s, is_alive
from sc2pool.processes.with_parent import Follower, start_follower

_OUTSIDE = ("SIGKILL", "SIGTERM")
"""Signals that come from other processes, not from an error in the process itself."""
_REAP_TIMEOUT_S = 5.0
_POLL_INTERVAL_S = 0.005


class WorkerProcess:
    """One worker's process."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self._process = follower.process
        self.pid = self._process.pid
        self._created_s = created_at_s(self.pid)

    def kill(self) -> None:
        """Kill the worker and all processes that it started, unless the worker was reaped."""
        self._follower.kill()

    def wait(self, deadline: Deadline, hurry: threading.Event) -> None:
        """Wait until the worker exits, the deadline has passed, or `hurry` is set. Reap nothing."""
        while not self.has_ended() and not deadline.expired():
            if hurry.wait(_POLL_INTERVAL_S):
                return

    def end(self) -> None:
        """Kill the worker and all that it has started; reap the worker. May be called again."""
        self.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_REAP_TIMEOUT_S)
        self._follower.close()

    def has_ended(self) -> bool:
        """True if the worker has exited; does not reap it."""
        if self._process.returncode is not None:
            return True
        return self._created_s is not None and not is_alive(self.pid, self._created_s)

    @property
    def was_killed(self) -> bool:
        """True if SIGKILL or SIGTERM ended the worker; call `end` first."""
        code = self._process.returncode
        return code is not None and code < 0 and signal_name(-code) in _OUTSIDE

    def how_it_ended(self) -> str:
        """Describe the worker's exit status or the signal that killed it; call `end` first."""
        code = self._process.returncode
        if code is None:
            return "closed its channel and could not be reaped"
        if code == 0 and not notices_children():
            return (
                "ended; its exit status is unknown, because this process ignores or handles SIGCHLD"
            )
        if code < 0:
            return f"was killed by {signal_name(-code)}"
        return f"exited with status {code}"


_SEND_TIMEOUT_S = 5.0


def worker_environment(temp_dir: Path) -> dict[str, str]:
    """The environment variables to add for a worker that puts temporary files into `temp_dir`.

    NumPy would start a thread for each core in each worker. The variables limit NumPy to one
    thread, unless the user has set another number.
    """
    environment = {"TMPDIR": str(temp_dir)}
    if not {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"} & os.environ.keys():
        environment["OPENBLAS_NUM_THREADS"] = "1"
    return environment


class Resident(Protocol):
    """The part of an instance that `Worker` uses."""

    @property
    def number(self) -> int: ...


@dataclass(frozen=True)
class Death:
    """A worker's death; all its instances fail, but only the failure of `charged` counts.

    `cause` includes the env's name. `stack` is the main thread's stack if a hook was stuck, else
    empty.
    """

    charged: int
    cause: str
    stack: str


class Worker:
    """One worker process and its instances.

    The waiter watches the reply doorbell, with this object as its tag, and the channels. A
    channel's tag is its instance, or its `Hosting` after the instance was dismissed.

    Attributes:
        expected: the numbers of the instances that the worker hosts or will soon host.
        deadline: the time by which all dismissed instances must have left.
        doomed: whether the worker was killed or exits by itself; it may not have exited yet.
        used_up: whether the worker gets no further instances.
        death: why the worker has died or will be killed; else None.

    Raises:
        OSError: the system refuses a process or descriptors; resources made so far are released.
    """

    process: WorkerProcess
    request_doorbell: Doorbell
    reply_doorbell: Doorbell
    _control: Control

    def __init__(
        self, directory: Path, memory_fd: int, waiter: Waiter, common: CommonDoorbells
    ) -> None:
        self.expected: set[int] = set()
        self.deadline = NEVER
        self.doomed = False
        self.used_up = False
        self.death: Death | None = None
        self._closes = False
        self._waiter = waiter
        self._common = common
        self._hostings: dict[int, Hosting] = {}
        self._leaving: dict[int, Hosting] = {}
        self._owned = ExitStack()
        with ExitStack() as undo:
            undo.callback(self._owned.close)
            self._owned.callback(shutil.rmtree, directory, ignore_errors=True)
            self._make(directory, memory_fd)
            self._owned.callback(waiter.remove, self.reply_doorbell.listening)
            waiter.add_doorbell(self.reply_doorbell, self)
            undo.pop_all()

    def _make(self, directory: Path, memory_fd: int) -> None:
        owned = self._owned
        self._make_doorbells()
        self._control, theirs = Control.pair()
        owned.callback(self._control.close)
        with theirs:
            owned.callback(self._common.leave, self.request_doorbell)
            with self._common.joined(self.request_doorbell) as listening:
                doorbells = listening, self.reply_doorbell.ringing
                follower = start_follower(
                    "sc2pool.pool.worker",
                    (theirs.fileno(), *doorbells),
                    worker_environment(directory),
                    file=memory_fd,
                )
        self._control.peer_pid = follower.process.pid
        self.process = WorkerProcess(follower)
        owned.callback(self.process.end)

    def _make_doorbells(self) -> None:
        self.request_doorbell = Doorbell.create()
        self._owned.callback(self.request_doorbell.close)
        self.reply_doorbell = Doorbell.create()
        self._owned.callback(self.reply_doorbell.close)

    @property
    def alone(self) -> bool:
        """True if the worker hosts, or will soon host, at most one instance."""
        return len(self.expected) <= 1

    @property
    def goes_on(self) -> bool:
        """True if the worker can host another instance."""
        return not (self.doomed or self.used_up or self.process.has_ended())

    def use_up(self) -> None:
        """Let the worker host no further instance."""
        self.used_up = True

    def note_death(self, death: Death) -> None:
        """Record why the worker died or will be killed."""
        self.death = death

    def kill(self) -> None:
        """Kill the worker and all that it has started, which ends its instances' channels."""
        self.doomed = True
        self.deadline = NEVER
        self.process.kill()

    def host(self, instance: Resident, directory: Path, spec: Any) -> Channel:
        """Order the worker to host an instance; return the channel to it.

        This object owns the channel and, from now on, the directory for temporary files. The spec
        is packed, and a worker process gets the spec as pickled bytes. Raises OSError if the worker
        has exited or does not read, or if the system refuses memory or descriptors.
        """
        ours, theirs = socket_pair()
        channel = Channel(ours, _SEND_TIMEOUT_S)
        self._hostings[instance.number] = Hosting(self, directory, channel)
        with ExitStack() as sent, theirs:
            descriptor = memory.create()
            sent.callback(os.close, descriptor)
            memory.write(descriptor, spec)
            self._waiter.add(channel.fileno(), instance)
            order = Host(instance.number, directory, len(spec))
            self._control.send(order, theirs, descriptor)
        return channel

    @property
    def is_needless(self) -> bool:
        """True if no instance is assigned to the worker, and none is still closing."""
        return not self.expected and not (self._closes and self._leaving)

    def dismiss(self, number: int, grace_s: float, *, gently: bool) -> None:
        """Order the worker to end an instance, which must leave within `grace_s`.

        The worker gets no order to end its last instance, because the caller ends the whole worker.
        But with `gently`, the last instance closes its env, and the worker exits by itself.
        """
        self.expected.discard(number)
        if not self.expected and not gently:
            return
        hosting = self._hostings.pop(number, None)
        if hosting is None:
            return  # the instance was never hosted
        self._leaving[number] = hosting
        if self.deadline == NEVER:
            self.deadline = Deadline.after(grace_s)
        self._waiter.retag(hosting.channel.fileno(), hosting)
        try:
            if self.expected:
                self._leave(number)
            else:
                self.doomed = self._closes = True
                hosting.channel.send(Close())
        except (OSError, ChannelClosedError):  # the worker has exited, or no longer reads
            self.kill()

    def _leave(self, number: int) -> None:
        """Order the worker to end an instance."""
        self._control.send(Leave(number))

    def remove_departed(self) -> None:
        """Release the resources of dismissed instances that have left the worker."""
        for number, hosting in list(self._leaving.items()):
            if hosting.has_left():
                del self._leaving[number]
                self._give_back(hosting)
        if not self._leaving:
            self.deadline = NEVER

    def _give_back(self, hosting: Hosting) -> None:
        self._waiter.remove(hosting.channel.fileno())
        hosting.channel.close()
        shutil.rmtree(hosting.directory, ignore_errors=True)

    def end(self) -> None:
        """Kill the worker, and release all its resources. May be called again."""
        self._owned.close()
        self.deadline = NEVER
        hostings = [*self._hostings.values(), *self._leaving.values()]
        self._hostings.clear()
        self._leaving.clear()
        for hosting in hostings:
            self._give_back(hosting)


@dataclass(frozen=True)
class Hosting:
    """A worker's resources for one instance; the channel ends when the instance has left."""

    worker: Worker
    directory: Path
    channel: Channel

    def has_left(self) -> bool:
        """True if the worker has released the instance; drops the instance's remaining messages."""
        while self.channel.readable(0.0):
            try:
                self.channel.skip()
            except ChannelClosedError:
                return True
        return False


class Workers:
    """The workers of one pool, and the assignment of instances to workers."""

    def __init__(self, most_each: int, leave_s: float, make: Callable[[], Worker]) -> None:
        self._most_each = most_each
        self._leave_s = leave_s
        self._make = make
        self._workers: list[Worker] = []
        self._worker_of: dict[int, Worker] = {}

    def worker_for(self, number: int) -> Worker:
        """The instance's worker, else a worker with room, else a new worker; may raise OSError."""
        worker = self._worker_of.get(number)
        if worker is not None and not worker.goes_on:
            self.dismiss(number)
            worker = None
        if worker is None:
            worker = self._worker_of[number] = self._with_room()
            worker.expected.add(number)
        return worker

    def _with_room(self) -> Worker:
        for worker in self._workers:
            if len(worker.expected) < self._most_each and worker.goes_on:
                return worker
        worker = self._make()
        self._workers.append(worker)
        return worker

    def succeed(self, number: int, successor: int, *, gently: bool = False) -> None:
        """Dismiss an instance; if its worker has other instances, the worker gets the successor."""
        worker = self._worker_of.get(number)
        if worker is not None and not worker.alone and worker.goes_on:
            worker.expected.add(successor)
            self._worker_of[successor] = worker
        self.dismiss(number, gently=gently)

    def dismiss(self, number: int, *, gently: bool = False) -> None:
        """Order an instance to leave its worker; the last instance's worker ends too.

        With `gently`, the last instance first closes its env; else its worker is killed
        immediately.
        """
        worker = self._worker_of.pop(number, None)
        if worker is not None:
            worker.dismiss(number, self._leave_s, gently=gently)
            self._end_if_needless(worker)

    def remove_departed(self, worker: Worker) -> None:
        """Release all resources of dismissed instances that have left this worker."""
        worker.remove_departed()
        self._end_if_needless(worker)

    def _end_if_needless(self, worker: Worker) -> None:
        if worker.is_needless and worker in self._workers:
            self._workers.remove(worker)
            worker.end()

    def next_wake_s(self) -> float:
        """The earliest deadline by which a dismissed instance must have left."""
        return min((one.deadline.instant_s for one in self._workers), default=NEVER.instant_s)

    def kill_hung(self) -> None:
        """Kill the workers that have not released an instance in time."""
        for worker in self._workers:
            if worker.deadline.expired():
                worker.deadline = unless_stalled(worker.deadline, self._leave_s)
            if worker.deadline.expired():
                worker.kill()

    def wait_for_exit(self, deadline: Deadline, hurry: threading.Event) -> None:
        """Wait until all workers have exited, the deadline has passed, or `hurry` is set."""
        for worker in self._workers:
            worker.process.wait(deadline, hurry)

    def end_all(self) -> None:
        """Kill all workers, and release their resources."""
        workers, self._workers = self._workers, []
        self._worker_of.clear()
        for worker in workers:  # kill all before the first wait, so that they end in parallel
            worker.kill()
        for worker in workers:
            worker.end()
