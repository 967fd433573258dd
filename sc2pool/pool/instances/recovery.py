"""Handles failed instances: records the fault, and replaces the instance.

After a fault, a new instance on the same seat begins the same episode. The trainer sees a fault
once. If an env has several faults before its next transition, the trainer sees only the first of
them. An error of the user's code, a set-up error or too many failures end the pool, because a new
instance would not help. The error that ends the pool is returned to the caller, which raises it.
Each fault, and each error of the user's code, also gets a fault report.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from pathlib import Path

from sc2pool.config import PoolConfig
from sc2pool.errors import ConfigError, CrashLoopError, Fault, FaultKind, SC2PoolError
from sc2pool.game.program.process import log_left_in
from sc2pool.pool import messages
from sc2pool.pool.instances import restart
from sc2pool.pool.instances.fleet import Fleet
from sc2pool.pool.instances.seats import FaultReport, Seat
from sc2pool.pool.instances.states import AWAITED, Event
from sc2pool.pool.instances.workers import Death, Worker
from sc2pool.pool.ipc import to_exception
from sc2pool.pool.report import fault_reports, stuck_hooks
from sc2pool.pool.report.logs import log_instance
from sc2pool.pool.report.replays import ReplayFolder
from sc2pool.pool.report.stuck_hooks import StuckHook
from sc2pool.pool.statistics import Counters


class Recovery:
    """Handles the faults of one pool. The limit of the number of failures grows with `n_envs`."""

    def __init__(
        self,
        config: PoolConfig,
        fleet: Fleet,
        stats: Counters,
        replays: ReplayFolder | None,
        n_envs: int,
    ) -> None:
        self._policy = config.restart
        self._fault_report_dir = Path(config.fault_report_dir or fault_reports.default_dir())
        self._fleet = fleet
        self._stats = stats
        self._replays = replays
        self._n_envs = n_envs
        self._failures_s: list[float] = []

    def of_fault(
        self,
        seat: Seat,
        fault: Fault,
        evidence: messages.Evidence | None = None,
        *,
        of_worker: bool = False,
    ) -> SC2PoolError | None:
        """Record the fault, and replace the instance or return the error that ends the pool.

        `of_worker` is True if the whole worker has failed with all instances that live in it.
        """
        instance = seat.instance
        now_s = time.monotonic()
        about = (logging.WARNING, seat.name, instance.number, fault.phase)
        death = None
        if of_worker and instance.worker is not None:
            death = self._death_of(instance.worker, seat, fault, now_s)
            fault = _explained(fault, instance.number, death)
        instance.kill(with_worker=of_worker)
        if evidence is None:  # the worker has died or does not answer, so it sent no evidence
            log_tail = log_left_in(self._fleet.run / str(instance.number))
            evidence = messages.Evidence(log_tail, death.stack if death else "")
        folder = self._write_report(seat, fault, evidence)
        instance.on(Event.FAULT)
        self._stats.count_fault(seat.name, instance.number, fault)
        seat.failed(FaultReport(fault, instance.number, now_s, folder))
        counts = death is None or death.charged == instance.number
        hopeless = self._hopeless(seat, now_s) if counts else None
        unplayable = restart.unplayable(seat.setups_failed, fault, self._was_ready)
        if hopeless or unplayable:
            log_instance(*about, "%s", fault)
            instance.on(Event.PERMANENT)
            self._fleet.retire(instance)
            if unplayable:
                return ConfigError(f"{seat.name}: {unplayable}")
            causes = "\n".join(f"  {cause}" for cause in seat.causes)
            tail = evidence.log_tail and f"\nEnd of the game's log:\n{evidence.log_tail}"
            return CrashLoopError(f"{seat.name}: {hopeless}; the last causes:\n{causes}{tail}")
        if fault.refused and instance.worker is not None:
            instance.worker.use_up()  # the system would refuse this worker the resource again
        self._fleet.replace(seat)
        successor = successor_of(len(instance.games))
        end = "\n" if "\n" in fault.detail else "; "  # the detail may end with lines of the log
        log_instance(*about, "%s%s%s", fault, end, successor)
        wait_s = restart.backoff_s(self._policy, seat.failures_s, now_s, refused=fault.refused)
        seat.instance.wait_before_start(now_s + wait_s)
        return None

    @property
    def _was_ready(self) -> bool:
        """True if any instance of the pool has ever reached a first observation."""
        return self._stats.resets > 0

    def is_blocked(self, seat: Seat) -> bool:
        """True if a hook of the user is stuck in the worker of the seat's instance."""
        return any(self._stuck_in(one) for one in self._housemates(seat))

    def _housemates(self, seat: Seat) -> list[Seat]:
        """The seats of all instances that live in the same worker, including this seat."""
        worker = seat.instance.worker
        return [
            one for one in self._fleet.seats if one.instance.worker is worker and one.instance.live
        ]

    def _stuck_in(self, seat: Seat) -> StuckHook | None:
        return stuck_hooks.read(self._fleet.run / str(seat.instance.number))

    def _death_of(self, worker: Worker, seat: Seat, fault: Fault, now_s: float) -> Death:
        """The record of a worker's death, made at the first fault of one of its instances."""
        if worker.death is not None:
            return worker.death
        window_s = self._policy.per_env_window_s
        seats = {one.instance.number: one for one in self._housemates(seat)}
        stuck = {number: self._stuck_in(one) for number, one in seats.items()}
        charged = restart.charged(
            [
                restart.Housemate(
                    number,
                    len(restart.recent(one.failures_s, window_s, now_s)),
                    stuck[number] is not None,
                    one.instance.state in AWAITED,
                )
                for number, one in seats.items()
            ],
            killed=fault.kind is FaultKind.STOPPED
            or (fault.kind is FaultKind.WORKER_EXITED and worker.process.was_killed),
        )
        hook = stuck[charged]
        cause = f"{seats[charged].name}: {hook}" if hook else f"{seat.name}: {fault.detail}"
        death = Death(charged, cause, hook.stack if hook else "")
        worker.note_death(death)
        return death

    def _hopeless(self, seat: Seat, now_s: float) -> str | None:
        """Count this failure; return the reason to make no new instance, or None."""
        policy = self._policy
        of_env, of_pool = policy.per_env_window_s, policy.per_pool_window_s
        seat.note_failure(now_s, of_env)
        self._failures_s = [*restart.recent(self._failures_s, of_pool, now_s), now_s]
        hopeless = restart.hopeless(seat.causes, any_was_ready=self._was_ready)
        return hopeless or restart.restarts_exceeded(
            policy, self._n_envs, seat.failures_s, self._failures_s, now_s
        )

    def of_raised(self, seat: Seat, message: messages.Raised) -> SC2PoolError:
        """Write a fault report about an error of the user's code; return the error to raise."""
        evidence = message.evidence
        fault = Fault(FaultKind.USER_CODE, seat.instance.phase(), message.summary)
        folder = self._write_report(seat, fault, evidence)
        if self._replays is not None:
            episode = seat.instance.episode
            number = None if episode is None else episode.number
            self._replays.keep_faulty(seat.name, number, evidence.replay)
        return to_exception(message, seat.name, folder)

    def _write_report(self, seat: Seat, fault: Fault, evidence: messages.Evidence) -> str | None:
        instance = seat.instance
        about = fault_reports.FaultedInstance(
            seat=seat.name,
            instance=instance.number,
            state=str(instance.state),
            episode=instance.episode,
            reset_kind=instance.reset_kind,
            games=instance.games,
            last_actions=list(instance.last_actions),
        )
        return fault_reports.write(self._fault_report_dir, fault, about, evidence)


def _explained(fault: Fault, instance: int, death: Death) -> Fault:
    """The fault; if a worker's death caused the fault, its detail names the cause of the death."""
    is_silent = death.stack and fault.kind in (FaultKind.DEADLINE, FaultKind.HUNG)
    is_dragged_along = fault.kind is FaultKind.WORKER_EXITED and instance != death.charged
    if is_silent or is_dragged_along:
        return replace(fault, detail=f"{fault.detail} ({death.cause})")
    return fault


def successor_of(games: int) -> str:
    """A clause that says what replaces an instance with this many games."""
    if games > 1:
        return f"{games} new games take over"
    return "a new game takes over" if games else "a new instance takes over"
