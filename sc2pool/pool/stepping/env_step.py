"""The record of one env's step.

IDLE ─ send ─► SENT ─ reply or fault ─┬─ not over ────────────────► SETTLED ─ recv ─► IDLE
 │                                    └─ over ─► ANSWERED ─► BEGINNING ─► SETTLED
 └ begin an episode ───────────────────────────────────────► BEGINNING ─► SETTLED
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sc2pool.pool.instances.seats import Seat
from sc2pool.pool.queues.trainer_end import TrainerEnd
from sc2pool.pool.stepping.batch import Outcome


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
