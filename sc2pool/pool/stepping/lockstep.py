"""The record of one env's step, and the fast path of nearly every batch.

    IDLE ─ send ─► SENT ─ reply or fault ─┬─ not over ────────────────► SETTLED ─ recv ─► IDLE
     │                                    └─ over ─► ANSWERED ─► BEGINNING ─► SETTLED
     └ begin an episode ───────────────────────────────────────► BEGINNING ─► SETTLED

The fast path (`Lockstep`) handles batches in which all envs step together and all replies are
plain.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from sc2pool.pool.instances.event_loop import EventLoop
from sc2pool.pool.instances.instance import ACTIONS_KEPT, Instance
from sc2pool.pool.instances.seats import Seat
from sc2pool.pool.instances.states import State
from sc2pool.pool.queues.doorbell import Doorbell
from sc2pool.pool.queues.layout import Array
from sc2pool.pool.queues.slots import Flag
from sc2pool.pool.queues.trainer_end import TrainerEnd
from sc2pool.pool.stepping.batch import Batch, Gatherer, Outcome


class Stage(StrEnum):
    """The stage of an env's step."""

    NEW = "new"
    """No episode has begun yet."""
    IDLE = "idle"
    """An episode runs, and the trainer may send an action."""
    OVER = "over"
    """The episode is over, and the trainer may begin the next one."""
    QUEUED = "queued"
    """Waits until fewer envs are busy (`max_concurrency`)."""
    SENT = "sent"
    """An action was sent."""
    ANSWERED = "answered"
    """The episode is over, and the next one is not dealt yet."""
    BEGINNING = "beginning"
    """An episode was dealt; its first observation is awaited."""
    SETTLED = "settled"
    """The outcome is complete; `recv` takes it."""


@dataclass(eq=False, slots=True)
class EnvStep:
    """One env's step or reset. Its deadline is the instance's, which also bounds launches.

    Attributes:
        seat: the env's place in the pool.
        stage: how far the step is.
        outcome: the outcome so far. None for a plain reply.
        queue: the queue pair that holds the newest observation. Its instance may have ended. None
            before the first observation.
        is_reset: True if the trainer asked for an episode, not for a step.
    """

    seat: Seat
    stage: Stage = Stage.NEW
    outcome: Outcome | None = None
    queue: TrainerEnd | None = None
    is_reset: bool = False


@dataclass(slots=True)
class Flight:
    """A step of all envs that is under way."""

    actions: Array
    sent_at_s: float


class Lockstep:
    """The fast path: all envs step together, and every reply is an observation and a reward.

    Actions and replies of all envs are copied together, and common doorbells wake several workers
    each. The records of the envs are not updated then. `hand_over` updates them when a bookkeeping
    block begins, so all other code in the trainer's thread finds them up to date. Until then
    another thread sees the state "playing" instead of "stepping". This lasts while the trainer does
    not wait for the step, or has waited for less than one poll interval.
    """

    def __init__(
        self, steps: Sequence[EnvStep], loop: EventLoop, gatherer: Gatherer, rows: int = 1
    ) -> None:
        self._steps = steps
        self._loop = loop
        self._slots = loop.fleet.slots
        self._bookkeeping = loop.bookkeeping
        self._supervisor = loop.supervisor
        self._fleet = loop.fleet
        self._gatherer = gatherer
        self._rows = rows
        self._n_rows = len(steps) * rows
        self._flight: Flight | None = None
        self._is_arranged = False
        """See `is_arranged`."""
        self._instances: list[Instance] = []
        """The envs' instances at the last `arrange`."""
        self._doorbells: Sequence[Doorbell] = []
        """The doorbells that wake their workers."""
        self._actions: deque[Array] = deque(maxlen=ACTIONS_KEPT)
        """The newest actions of these instances that their records lack."""
        self._bookkeeping.bring_up_to_date = self.hand_over

    def forget(self) -> None:
        """Forget the pending step."""
        self._flight = None
        self._is_arranged = False
        self._actions.clear()

    @property
    def under_way(self) -> bool:
        """True from `send` until the step is received or handed over."""
        return self._flight is not None

    @property
    def is_arranged(self) -> bool:
        """True if `arrange` succeeded, and since then the envs were only stepped together."""
        return self._is_arranged

    def arrange(self) -> bool:
        """Arrange the slots for a step of all envs, if every env waits for an action.

        Returns:
            True if `send` may be called; False if an env is busy, paused, over or has failed.
        """
        if self._flight is not None:
            return False
        if not self._is_arranged and self._all_wait():
            self._instances = [step.seat.instance for step in self._steps]
            self._slots.arrange([instance.queue.index for instance in self._instances])
            self._doorbells = self._fleet.doorbells_of(self._instances)
            self._is_arranged = True
        return self._is_arranged

    def _all_wait(self) -> bool:
        for step in self._steps:
            if step.stage is not Stage.IDLE or step.seat.instance.state is not State.PLAYING:
                return False
        return bool(self._steps)

    def send(self, actions: Array) -> None:
        """Send each row its action; `arrange` must have returned True.

        Args:
            actions: (n * rows, …), for an action space of one array.
        """
        actions = actions.copy()  # the trainer may overwrite them
        if self._rows > 1:
            actions = actions.reshape(len(self._steps), self._rows, *actions.shape[1:])
        self._bookkeeping.torn = True  # instead of a `with` block, which is slower
        self._slots.batch.send(actions)
        for doorbell in self._doorbells:
            doorbell.ring()
        # Noted last: if this process is stopped before it rings, the workers lose no time.
        self._flight = Flight(actions, time.monotonic())
        self._bookkeeping.torn = False

    def recv(self) -> Batch | None:
        """The batch of all envs; None, with nothing taken, if not all replies are plain.

        None also if another event happened, or a poll is due: then the general path receives.
        """
        flight = self._flight
        if flight is None or self._loop.look_for_more():
            return None
        slots = self._slots  # no reference to its batch: a traceback would keep the memory
        while unanswered := slots.batch.unanswered():
            # The last env is usually the last to answer.
            if not self._loop.wait_for_ring(self._instances[unanswered[-1]]):
                return None
        if slots.batch.flags() & Flag.TELLING:
            return None
        self._bookkeeping.torn = True
        self._flight = None
        self._actions.append(flight.actions)
        self._supervisor.stats.env_steps += self._n_rows
        self._bookkeeping.torn = False
        return self._gatherer.gather_plain(slots.batch)

    def hand_over(self) -> None:
        """Bring the envs' records up to date, and leave a pending step to the general path."""
        flight, self._flight = self._flight, None
        self._is_arranged = False
        for place, instance in enumerate(self._instances):
            instance.played(actions[place] for actions in self._actions)
        self._actions.clear()
        self._instances = []
        if flight is None or self._bookkeeping.closed:
            return
        deadline = self._supervisor.step_deadline(flight.sent_at_s)
        for step, action in zip(self._steps, flight.actions, strict=True):
            step.seat.instance.begin_step(action, flight.sent_at_s, deadline)
            step.stage = Stage.SENT
            step.is_reset = False
