"""Makes, launches, replaces and ends the instances of a pool, and owns their seats.

The supervisor decides when the fleet must act. Rules:
* Instance numbers are never reused.
* The fleet keeps every instance, even one without a seat, until the instance is retired.
* Only a limited number of games launch at the same time.
* When an instance is retired, the waiter no longer watches it, and its successor takes its slot. No
  two living instances share a slot.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from sc2pool.config import PoolConfig
from sc2pool.deadline import Deadline
from sc2pool.pool.instances.instance import Instance
from sc2pool.pool.instances.seats import Seat
from sc2pool.pool.instances.states import AT_REST, LIVE, STOPPED, State
from sc2pool.pool.instances.system import REAL, System
from sc2pool.pool.instances.workers import Worker, Workers
from sc2pool.pool.queues.doorbell import CommonDoorbells, Doorbell, Waiter
from sc2pool.pool.queues.slots import Slots
from sc2pool.pool.watchdog import Watched, bytes_of
from sc2pool.processes.spawn import uninterrupted
from sc2pool.processes.tree import usable_cores

QUICK_LAUNCH_S = 5.0
"""If the first launch is quicker than this limit, the disk does not slow down launches."""


class Fleet:
    """All seats of a pool: one per packed spec, and `spares` further seats with the first spec."""

    def __init__(
        self,
        specs: Sequence[Any],
        spares: int,
        config: PoolConfig,
        waiter: Waiter,
        slots: Slots,
        *,
        system: System = REAL,
    ) -> None:
        self.slots = slots
        self._limits = limits = config.limits
        self._waiter = waiter
        self._system = system
        self._run_dir = system.run_dir()
        self._common = common = CommonDoorbells(config.envs_per_worker or 1)
        self._workers = Workers(
            config.envs_per_worker or 1,
            limits.worker_grace_s,
            lambda: system.worker(self._run_dir.worker_dir(), slots.descriptor, waiter, common),
        )
        self._instances_made = 0
        self._living: dict[int, Instance] = {}
        """All instances that are not retired, even if an interrupt has left one without a seat."""
        self._first_launch_s: float | None = None
        self._cores = usable_cores()
        self.seats = [
            Seat(index, index >= len(specs), spec, self._make(spec, index))
            for index, spec in enumerate([*specs, *[specs[0]] * spares])
        ]

    @property
    def run(self) -> Path:
        return self._run_dir.path

    def _make(self, spec: Any, slot: int) -> Instance:
        number = self._instances_made
        self._instances_made += 1
        instance = self._living[number] = self._system.instance(number, spec, self.slots, slot)
        return instance

    def doorbells_of(self, instances: Sequence[Instance]) -> Sequence[Doorbell]:
        """The smallest set of doorbells that wakes these instances; valid until workers change."""
        return self._common.fewest(instance.queue.request_doorbell for instance in instances)

    def due(self) -> list[Seat]:
        """The seats whose new instance should start now."""
        now_s = time.monotonic()
        return [
            seat
            for seat in self.seats
            if seat.instance.state is State.NEW and now_s >= seat.instance.start_not_before_s
        ]

    def start(self, instance: Instance) -> OSError | None:
        """Start the instance in a worker; see `Instance.start`."""
        make_directory = partial(self._run_dir.instance_dir, instance.number)
        refusal = instance.start(make_directory, self._workers, self._limits.worker_start_s)
        self._run_dir.note_process(instance.number, instance.worker_pid)
        return refusal

    def launched(self, instance: Instance) -> None:
        """Record that an instance's player, with its games if it has any, has started."""
        if self._first_launch_s is None:
            self._first_launch_s = time.monotonic() - instance.asked_at_s
        for game in instance.games:
            self._run_dir.note_process(instance.number, game.pid)

    def kill_hung_workers(self) -> None:
        self._workers.kill_hung()

    def seat_of(self, instance: Instance) -> Seat | None:
        """The seat of this instance; None if the instance was replaced."""
        for seat in self.seats:  # no generator, because closing a generator could lose a Ctrl-C
            if seat.instance is instance:
                return seat
        return None

    def remove_departed(self, worker: Worker) -> None:
        uninterrupted(partial(self._workers.remove_departed, worker))

    def replace(self, seat: Seat, *, gently: bool = False) -> None:
        """Retire the seat's instance, and seat a new one for the same episode.

        With `gently`, the old instance, which must be idle, closes its env before its worker ends.
        """
        old = seat.instance
        new = self._make(seat.spec, old.queue.index)
        self._retire(old, partial(self._workers.succeed, old.number, new.number, gently=gently))
        seat.replaced(new)

    def dismiss(self, seat: Seat) -> None:
        """End the seat's instance, and seat no other instance."""
        instance = seat.instance
        if instance.live:
            self.retire(instance)
            instance.close()

    def retire(self, instance: Instance) -> None:
        """End an instance and free its slot."""
        self._retire(instance, partial(self._workers.dismiss, instance.number))

    def _retire(self, instance: Instance, leave: Callable[[], None]) -> None:
        uninterrupted(leave)
        instance.queue.close()
        self._living.pop(instance.number, None)

    def end_all(self) -> None:
        """Kill and retire every instance."""
        uninterrupted(self._workers.end_all)
        instances = list(self._living.values())
        self._living.clear()
        for instance in instances:
            instance.close()
        for instance in (*instances, *(seat.instance for seat in self.seats)):
            instance.queue.close()
            instance.queue.unmap()  # failed instances, which stay on their seats, also need this

    def start_anew(self) -> None:
        """End all instances and seat new ones."""
        self.end_all()
        for seat in self.seats:
            seat.begun_anew(self._make(seat.spec, seat.index))

    def ask_to_close(self, grace: Deadline, hurry: threading.Event) -> None:
        """Ask the players to close by themselves; wait until `grace` or until `hurry` is set."""
        started = [one for one in self._living.values() if one.live and one.worker_pid is not None]
        for instance in started:
            instance.ask_to_close()
        self._workers.wait_for_exit(grace, hurry)

    def close(self) -> None:
        """End all instances and delete the run's folder."""
        self.end_all()
        self._run_dir.close()

    def launch_next(self) -> None:
        """Launch waiting games, as many as the limit of concurrent launches allows."""
        limit, first_s = self._limits.concurrent_launches, self._first_launch_s
        most = launches_at_once(self._cores, first_s) if limit is None else limit
        launching = sum(seat.instance.state is State.LAUNCHING for seat in self.seats)
        for seat in self.seats:
            instance = seat.instance
            if launching >= most:
                return
            if instance.state is State.STARTING and instance.hello is not None:
                instance.launch(self._launch_timeout_s(), self._limits.worker_grace_s)
                launching += 1

    def _launch_timeout_s(self) -> float:
        """The time limit of a launch; doubled for the first launch, which may read the disk."""
        return self._limits.launch_s * (2 if self._first_launch_s is None else 1)

    def all_at_rest(self) -> bool:
        """True if the pool need not act before an instance sends a message."""
        states = {seat.instance.state for seat in self.seats}
        return states <= AT_REST and time.monotonic() < self.next_wake_s()

    def next_wake_s(self) -> float:
        """The time of the next deadline or delayed start, but at most an hour from now."""
        times = [time.monotonic() + 3600.0, self._workers.next_wake_s()]
        for seat in self.seats:
            times.append(seat.instance.deadline.instant_s)
            times.append(seat.instance.call_deadline.instant_s)
            if seat.instance.state is State.NEW:
                times.append(seat.instance.start_not_before_s)
        return min(times)

    def watched(self) -> list[Watched]:
        """The processes to watch; must change nothing, because it runs in the watchdog's thread."""
        limits = self._limits
        limits_s = {
            State.LAUNCHING: self._launch_timeout_s(),
            State.RESETTING: limits.create_join_s + limits.reset_s,
            State.STEPPING: limits.step_s,
        }
        watched = []
        for seat in self.seats:
            instance = seat.instance
            state = instance.state
            worker_pid = instance.worker_pid
            if state not in LIVE or worker_pid is None:
                continue
            game_pids = [game.root_pid for game in instance.games]
            awaited_s = instance.asked_at_s if state in limits_s else None
            watched.append(
                Watched(
                    instance.number,
                    worker_pid,
                    game_pids,
                    awaited_s,
                    limits_s.get(state, 0.0),
                    state in STOPPED or (state is State.RESETTING and instance.holds),
                    instance.pauses,
                    instance.worker is None or instance.worker.alone,
                    instance.episodes,
                )
            )
        return watched

    def first_games_bytes(self) -> list[int]:
        """The resident memory of each game of one launched instance; empty if it has no games."""
        for seat in self.seats:
            if seat.instance.games:
                return [bytes_of(game.root_pid) for game in seat.instance.games]
        return []


def launches_at_once(cores: int, first_launch_s: float | None) -> int:
    """The number of games to launch at the same time; each starting game uses a whole core."""
    quick = first_launch_s is not None and first_launch_s < QUICK_LAUNCH_S
    return max(2, cores) if quick else 2
