"""The instances of a pool and the seats they sit on: made, launched, replaced, ended.

It acts; the supervisor decides when. Rules: instance numbers are never used twice; no more games
launch at one time than the limits allow; a retired instance is removed from the waiter too.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from sc2pool.config import Limits
from sc2pool.deadline import NEVER, Deadline
from sc2pool.pool.instances.instance import Instance
from sc2pool.pool.instances.run_dir import RunDir
from sc2pool.pool.instances.seats import Seat
from sc2pool.pool.instances.states import LIVE, STOPPED, Event, State
from sc2pool.pool.instances.watchdog import Watched, bytes_below
from sc2pool.pool.ipc.waiter import Waiter


class Roster:
    """All seats of a pool, each with its instance.

    Args:
        specs: a pickled `PlayerSpec` for each env.
        spares: how many more seats to have, for players like the first.
        limits: of launches and replies.
        waiter: gets every instance's doorbell and channel, tagged (instance, is_bell).
    """

    def __init__(self, specs: Sequence[bytes], spares: int, limits: Limits, waiter: Waiter) -> None:
        self._limits = limits
        self._waiter = waiter
        self._run_dir = RunDir()
        self._instances_made = 0
        self.any_launched = False
        self.seats: list[Seat] = []
        try:
            for index, spec in enumerate([*specs, *[specs[0]] * spares]):
                instance = self._make(spec)
                self.seats.append(Seat(index, index >= len(specs), spec, instance))
        except BaseException:
            self.close()
            raise

    @property
    def run(self) -> Path:
        """The run's folder."""
        return self._run_dir.path

    def _make(self, spec: bytes) -> Instance:
        number = self._instances_made
        self._instances_made += 1
        instance = Instance(number, spec, self._run_dir.instance_dir(number))
        self._run_dir.note_process(number, instance.worker_pid)
        instance.deadline = Deadline.after(self._limits.worker_start_s)
        self._waiter.add_bell(instance.queue.reply_bell, (instance, True))
        self._waiter.add(instance.channel.fileno(), (instance, False))
        return instance

    def launched(self, instance: Instance) -> None:
        """Its player is up, with its game if it has one."""
        self.any_launched = True
        if instance.facts is not None:
            self._run_dir.note_process(instance.number, instance.facts.pid)

    def seat_of(self, instance: Instance) -> Seat | None:
        """The seat of this instance; None if another has taken its place."""
        return next((seat for seat in self.seats if seat.instance is instance), None)

    def replace(self, seat: Seat) -> None:
        """Retire the seat's instance and seat a new one; the seat's episode stays."""
        self.retire(seat.instance)
        seat.instance = self._make(seat.spec)

    def dismiss(self, seat: Seat) -> None:
        """End the instance that sits here, and do not replace it."""
        instance = seat.instance
        if instance.live:
            instance.deadline = NEVER
            self.retire(instance)
            instance.on(Event.CLOSE)

    def retire(self, instance: Instance) -> None:
        """End an instance and forget its descriptors."""
        self._forget(instance)
        instance.dispose()

    def _forget(self, instance: Instance) -> None:
        self._waiter.remove(instance.queue.reply_bell.listening)
        self._waiter.remove(instance.channel.fileno())

    def end_all(self) -> None:
        """Kill and retire every instance."""
        instances = [seat.instance for seat in self.seats]
        with ExitStack() as ending:  # each is ended, even if Ctrl-C interrupts another's end
            for instance in instances:
                ending.callback(instance.dispose)
            for instance in instances:
                instance.kill()
                if instance.live:
                    self._forget(instance)
                    instance.on(Event.CLOSE)
        for instance in instances:
            instance.queue.unmap()

    def ask_to_close(self, grace: Deadline) -> None:
        """Let the players close by themselves, until `grace` has passed."""
        live = [seat.instance for seat in self.seats if seat.instance.live]
        for instance in live:
            instance.ask_to_close()
        for instance in live:
            instance.wait_for_exit(grace)

    def close(self) -> None:
        """End all instances and delete the run's folder."""
        self.end_all()
        self._run_dir.close()

    def launch_next(self) -> None:
        """Launch games that wait for their turn, as many as may at one time."""
        launching = sum(seat.instance.state is State.LAUNCHING for seat in self.seats)
        now_s = time.monotonic()
        for seat in self.seats:
            instance = seat.instance
            if launching == self._limits.concurrent_launches:
                return
            if waits_for_launch(instance) and now_s >= instance.launch_not_before_s:
                instance.launch(self._launch_timeout_s(), self._limits.worker_grace_s)
                launching += 1

    def _launch_timeout_s(self) -> float:
        """The first launch may have to read the whole game from disk."""
        return self._limits.launch_s * (1 if self.any_launched else 2)

    def next_wake_s(self) -> float:
        """When the next deadline or delayed launch is due; an hour from now if none is."""
        times = [time.monotonic() + 3600.0]
        for seat in self.seats:
            times.append(seat.instance.deadline.instant_s)
            times.append(seat.instance.call_deadline.instant_s)
            if waits_for_launch(seat.instance):
                times.append(seat.instance.launch_not_before_s)
        return min(times)

    def watched(self) -> list[Watched]:
        """What the watchdog looks at; runs in its thread, so it only reads."""
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
            if state not in LIVE:
                continue
            game_pid = instance.facts.pid if instance.facts else None
            awaited_s = instance.asked_at_s if state in limits_s else None
            watched.append(
                Watched(
                    instance.number,
                    instance.worker_pid,
                    game_pid,
                    awaited_s,
                    limits_s.get(state, 0.0),
                    state in STOPPED or (state is State.RESETTING and instance.holds),
                    instance.pauses,
                )
            )
        return watched

    def first_game_bytes(self) -> int:
        """Resident memory of a game that has come up; 0 if players have none."""
        up = [seat.instance for seat in self.seats if seat.instance.facts is not None]
        return bytes_below(up[0].worker_pid) if up else 0


def waits_for_launch(instance: Instance) -> bool:
    """Whether its worker is up and its game has not been launched."""
    return instance.state is State.NEW and instance.hello is not None
