"""Calls into the players' processes: an operation's name and arguments there, its result back.

Rules: no call is sent while a reply of the same instance is awaited, for it may be large, and if
both sides send, none reads; if an instance dies before or during a call, its successor is asked, in
the env's next episode, but if the call hangs, the instance is replaced and the call given up; an
answer that comes after its deadline is dropped.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence

from sc2pool.deadline import NEVER, Deadline
from sc2pool.pool.instances.event_loop import EventLoop
from sc2pool.pool.instances.instance import Instance
from sc2pool.pool.instances.seats import Seat
from sc2pool.pool.instances.states import AWAITED
from sc2pool.pool.ipc import messages

Target = tuple[Seat, int]
"""An env's seat, and one of the env's rows."""


class Calls:
    """The calls of one pool.

    Args:
        loop: of the pool.
        may_be_called: whether a seat's task or env can answer; see `Stepping.may_be_called`.
        limit_s: how long an instance may take to answer a call.
    """

    def __init__(
        self, loop: EventLoop, may_be_called: Callable[[Seat], bool], limit_s: float
    ) -> None:
        self._loop = loop
        self._may_be_called = may_be_called
        self._limit_s = limit_s
        self._answers = loop.supervisor.answers
        self._made = 0

    def run(
        self, targets: Sequence[Target], operation: str, payload: bytes, deadline: Deadline
    ) -> list[messages.Answer]:
        """Run an operation of `sc2pool.tasks.players.operations` on these targets.

        Args:
            targets: one may be asked more than once.
            operation: its name.
            payload: its pickled arguments.
            deadline: until when all must have answered; `NEVER` for the limit of each call.

        Returns:
            The answers, in the order of the targets; each is a result or an error.

        Raises:
            multiprocessing.TimeoutError: not all have answered in time.
        """
        self._answers.clear()  # to calls that were given up
        asked: dict[int, tuple[Instance, int]] = {}
        answers: dict[int, messages.Answer] = {}
        hung: set[int] = set()

        def may_answer(seat: Seat) -> bool:
            # A frame of an episode that the trainer does not know of yet is not asked for.
            ready = operation == "render" or self._may_be_called(seat)
            instance = seat.instance
            return ready and instance.hello is not None and instance.state not in AWAITED

        def answered() -> bool:
            for place, (seat, row) in enumerate(targets):
                instance, number = asked.get(place, (None, -1))
                if number in self._answers:
                    answers[place] = self._answers.pop(number)
                if place in answers or place in hung or instance is seat.instance:
                    continue
                if instance is not None and instance.call_deadline.expired():
                    hung.add(place)
                elif may_answer(seat):
                    self._made += 1
                    asked[place] = (seat.instance, self._made)
                    limit = self._limit(deadline)
                    seat.instance.call(self._made, row, operation, payload, limit)
            return len(answers) + len(hung) == len(targets)

        self._loop.wait_until(answered, deadline)
        if hung:
            names = ", ".join(dict.fromkeys(targets[place][0].name for place in sorted(hung)))
            raise multiprocessing.TimeoutError(
                f"{operation}: {names} did not answer within {self._limit_s:g} s (Limits.call_s) "
                "and will go on with a new instance"
            )
        if len(answers) < len(targets):
            raise multiprocessing.TimeoutError(
                f"{len(targets) - len(answers)} of {len(targets)} envs have not answered in time"
            )
        return [answers[place] for place in range(len(targets))]

    def _limit(self, deadline: Deadline) -> Deadline:
        """When an instance that is asked now hangs: later than the caller's own deadline."""
        if deadline == NEVER:
            return Deadline.after(self._limit_s)
        return Deadline(deadline.instant_s + self._limit_s)
