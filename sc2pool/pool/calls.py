"""Calls into the players' processes: an operation's name and arguments there, its result back.

Rules: no call is sent while a reply of the same instance is awaited, for it may be large, and if
both sides send, none reads; if an instance dies during a call, its successor is asked; an answer
that comes after its deadline is dropped.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Sequence
from typing import Any

from sc2pool.deadline import NEVER, Deadline
from sc2pool.pool.instances.event_loop import EventLoop
from sc2pool.pool.instances.instance import Instance
from sc2pool.pool.instances.seats import Seat
from sc2pool.pool.instances.states import AWAITED
from sc2pool.pool.ipc import messages
from sc2pool.pool.ipc.remote_errors import to_result


class Calls:
    """The calls of one pool."""

    def __init__(self, loop: EventLoop) -> None:
        self._loop = loop
        self._answers = loop.supervisor.answers
        self._made = 0

    def run(
        self, seats: Sequence[Seat], operation: str, payload: bytes, deadline: Deadline = NEVER
    ) -> list[Any]:
        """Run an operation of `sc2pool.tasks.players.operations` on these seats' targets.

        Args:
            seats: whose; one may be asked more than once.
            operation: its name.
            payload: its pickled arguments.
            deadline: until when all must have answered.

        Returns:
            The results, in the order of the seats.

        Raises:
            multiprocessing.TimeoutError: not all have answered in time.
            Exception: what the operation raised.
        """
        asked: dict[int, tuple[Instance, int]] = {}
        answers: dict[int, messages.Answer] = {}

        def answered() -> bool:
            for place, seat in enumerate(seats):
                instance, number = asked.get(place, (None, -1))
                if number in self._answers:
                    answers[place] = self._answers.pop(number)
                if place in answers or instance is seat.instance:
                    continue
                if seat.instance.hello is not None and seat.instance.state not in AWAITED:
                    self._made += 1
                    asked[place] = (seat.instance, self._made)
                    seat.instance.call(self._made, operation, payload)
            return len(answers) == len(seats)

        self._loop.wait_until(answered, deadline)
        if len(answers) < len(seats):
            raise multiprocessing.TimeoutError(
                f"{len(seats) - len(answers)} of {len(seats)} envs have not answered in time"
            )
        return [to_result(answers[place]) for place in range(len(seats))]
