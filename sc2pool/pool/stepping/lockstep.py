"""The record of one env's step, and the fast path of nearly every batch.

    IDLE ─ send ─► SENT ─ reply or fault ─┬─ not over ────────────────► SETTLED ─ recv ─► IDLE
     │                                    └─ over ─► ANSWERED ─► BEGINNING ─► SETTLED
     └ begin an episode ───────────────────────────────────────► BEGINNING ─► SETTLED

The fast path (`Lockstep`): all envs step at once, and all replies are plain.
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
    """Where an env's step is."""

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
    """The episode is over, and the next one has not been dealt yet."""
    BEGINNING = "beginning"
    """An episode was dealt; its first observation is awaited."""
    SETTLED = "settled"
    """The outcome is complete; `recv` takes it."""


@dataclass(eq=False, slots=True)
class EnvStep:
    """One env's step. Its deadline is its instance's: the same field bounds launches and resets.

    Attributes:
        seat: the env's place in the pool.
        stage: how far it has come.
        outcome: what it brought so far; None for a plain reply.
        queue: the queue pair that holds the newest observation, of an instance that may be gone
            already; None before the first.
        is_reset: the trainer asked for an episode, not for a step.
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
    """The fast path: all envs step at once, and every reply is an observation and a reward.

    All is done for all of them at once: in the slots, and by doorbells that several workers hear.
    The records are stale meanwhile. `hand_over` brings them up to date as a block of the
    bookkeeping begins, so nobody else finds them stale. Until then another thread sees "playing",
    not "stepping": as long as the trainer does not wait for the step, or has waited less than one
    poll interval.
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
        """False if anything may have happened to the envs since they were all found waiting."""
        self._instances: list[Instance] = []
        """The envs', when they were."""
        self._doorbells: Sequence[Doorbell] = []
        """The doorbells of their workers."""
        self._actions: deque[Array] = deque(maxlen=ACTIONS_KEPT)
        """The newest actions of these instances that their records do not have."""
        self._bookkeeping.bring_up_to_date = self.hand_over

    def forget(self) -> None:
        """Nothing is pending."""
        self._flight = None
        self._is_arranged = False
        self._actions.clear()

    @property
    def under_way(self) -> bool:
        """True from the sending of a step to all envs until it is received, or handed over."""
        return self._flight is not None

    @property
    def is_arranged(self) -> bool:
        """True if all envs were found waiting, and nothing but their steps has happened since."""
        return self._is_arranged

    def arrange(self) -> bool:
        """Arrange the slots for a step of all envs, if all wait for one.

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
        """Send each row its action, of an array that fits an action space of one array.

        `arrange` must have returned True.
        """
        actions = actions.copy()  # the trainer may write into them
        if self._rows > 1:
            actions = actions.reshape(len(self._steps), self._rows, *actions.shape[1:])
        self._bookkeeping.torn = True  # as a `with` block, but on the path of each step
        self._slots.batch.send(actions)
        for doorbell in self._doorbells:
            doorbell.ring()
        # Noted last: if this process is stopped before it rings, that is not the workers' time.
        self._flight = Flight(actions, time.monotonic())
        self._bookkeeping.torn = False

    def recv(self) -> Batch | None:
        """The batch of all envs; None, with nothing taken, if anything but plain replies came."""
        flight = self._flight
        if flight is None or self._loop.look_for_more():
            return None
        slots = self._slots  # not its batch: a traceback must not keep the memory
        while unanswered := slots.batch.unanswered():
            # The last one asked is mostly the last to answer.
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
        """Note in the records what was sent; a step that is under way is theirs from now on."""
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
