"""The trainer's calls between steps: pauses of the games, and calls into the players' processes.

A paused game continues after as many resumes as pauses, or when its env is stepped or reset. A game
is stopped only while no reply of the game is pending. If one of the games cannot be stopped, the
pause raises an error and every game continues. A game that plays no episode is not stopped, but it
begins no episode until the pause ends. A spare that is held (stopped at its first observation until
an env takes it) stays held in spite of pauses and resumes.

Calls into the players' processes follow these rules:
* The trainer sends no call while it awaits a reply of the same instance. If trainer and worker both
  sent large messages, neither of them would read.
* If an instance dies before or during a call, its successor gets the call in the next episode.
* If the call itself hangs, the instance is replaced and the call is given up.
* An answer that arrives after its deadline is dropped.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from sc2pool.deadline import NEVER, Deadline
from sc2pool.errors import PauseError
from sc2pool.pool import messages
from sc2pool.pool.instances.event_loop import EventLoop
from sc2pool.pool.instances.instance import Instance
from sc2pool.pool.instances.seats import Seat
from sc2pool.pool.instances.states import AWAITED, STOPPED, State
from sc2pool.pool.ipc import pickle_for_worker, to_result
from sc2pool.pool.stepping import Stepping
from sc2pool.render import FRAME_SHAPE

_MOVING = (STOPPED - {State.HELD, State.PAUSED}) | {State.RESETTING}
"""A stop is complete when no game is in these states (being stopped, resumed or reset)."""

_GOING_ON = frozenset({State.RESUMING, State.RELEASING})
"""The states of a stopped game that is being resumed."""


class Pauses:
    """The pauses of a pool's envs and spares."""

    def __init__(self, loop: EventLoop) -> None:
        self._loop = loop
        self._supervisor = supervisor = loop.supervisor
        self._envs = supervisor.env_seats
        self._spares = supervisor.spare_seats
        self._counts: dict[int, int] = {}

    def forget(self) -> None:
        """Forget all pauses, because every instance is about to be replaced."""
        self._counts.clear()

    def pause(self, envs: Sequence[int], *, spares: bool) -> None:
        """Count one pause of these envs and stop their games; with `spares`, also stop spares."""
        for env in envs:
            self._counts[env] = self._counts.get(env, 0) + 1
        try:
            self._stop([self._envs[env] for env in envs] + (self._spares if spares else []))
        except PauseError:
            self._forget(envs)
            raise

    def resume(self, envs: Sequence[int], *, spares: bool) -> None:
        """Undo one pause of each env. With `spares`, resume the spares if no env stays paused."""
        for env in envs:
            self._counts[env] = max(0, self._counts.get(env, 0) - 1)
        awake = [env for env in envs if not self._counts[env]]
        seats = [self._envs[env] for env in awake]
        if spares and len(awake) == len(self._envs):
            seats += [spare for spare in self._spares if not self._is_held(spare)]
        self._let_go_on(seats)
        self._forget(awake)

    def end(self, envs: Iterable[int]) -> None:
        """End all pauses of these envs, which are about to be stepped or reset."""
        numbers = list(envs)
        self._let_go_on([self._envs[env] for env in numbers])
        for spare in self._spares:
            if spare.instance.state not in STOPPED:
                self._supervisor.resume(spare)
        self._forget(numbers)

    @contextmanager
    def suspended(self, envs: Iterable[int]) -> Iterator[None]:
        """Let paused envs continue during the block, but keep the counts of their pauses."""
        paused = [self._envs[env] for env in envs if env in self._counts]
        if paused:
            self._let_go_on(paused)
        try:
            yield
        finally:
            if paused and not self._supervisor.failed:
                self._stop(paused)

    def _forget(self, envs: Iterable[int]) -> None:
        for env in envs:
            self._counts.pop(env, None)

    @staticmethod
    def _is_held(spare: Seat) -> bool:
        """True if the spare's game is held at its first observation, even without a pause."""
        return spare.instance.holds and spare.instance.state in STOPPED

    def _stop(self, seats: Sequence[Seat]) -> None:
        """Stop each of these games as soon as no reply of the game is pending.

        If a game cannot be stopped, resume the games of all these seats and raise PauseError.
        """
        for seat in seats:
            seat.pause_asked()

        def stop_those_at_rest() -> bool:
            for seat in seats:
                if not seat.instance.pause_problem:
                    self._supervisor.pause(seat)
            return True  # recompute the next wake-up, because deadlines have changed

        self._loop.wait_until(
            lambda: not any(seat.instance.state in _MOVING for seat in seats),
            advance=stop_those_at_rest,
        )
        problems = [
            f"{seat.name}: {seat.instance.pause_problem}"
            for seat in seats
            if seat.instance.pause_problem
        ]
        if problems:
            self._let_go_on(seats)
            raise PauseError("; ".join(problems))

    def _let_go_on(self, seats: Sequence[Seat]) -> None:
        """Resume the stopped games of these seats, and wait until they run."""
        for seat in seats:
            self._supervisor.resume(seat)
        self._loop.wait_until(lambda: not any(seat.instance.state in _GOING_ON for seat in seats))


Target = tuple[Seat, int]
"""The target of a call: an env's seat, and the number of one of the env's rows."""


class Calls:
    """Makes the calls of one pool, each with a time limit; `Pool` documents their errors."""

    def __init__(
        self, loop: EventLoop, stepping: Stepping, pauses: Pauses, rows: int, limit_s: float
    ) -> None:
        self._loop = loop
        self._seats = loop.supervisor.env_seats
        self._stepping = stepping
        self._pauses = pauses
        self._rows = rows
        self._limit_s = limit_s
        self._answers = loop.supervisor.answers
        self._made = 0
        self._frames: dict[int, Any] = {}
        """The newest frame of each row."""

    def call(
        self, rows: Sequence[int], operation: str, *arguments: Any, timeout_s: float | None = None
    ) -> list[Any]:
        """Run an operation on the targets of these rows; return the results in the rows' order."""
        payload = pickle_for_worker(arguments)
        deadline = Deadline.after(timeout_s)
        envs = list(dict.fromkeys(row // self._rows for row in rows))
        resumed = self._pauses.suspended(envs) if operation == "env_method" else nullcontext()
        with self._loop.bookkeeping, resumed:
            answers = self._run(self._targets(rows), operation, payload, deadline)
        return [to_result(answer) for answer in answers]

    def render(self, rows: Sequence[int], *, is_task: bool) -> list[Any]:
        """A frame of each of these rows; if a task's game has died, the row's previous frame."""
        frames = self.call(rows, "render")
        for place, row in enumerate(rows):
            if frames[place] is not None:
                self._frames[row] = frames[place]
            elif is_task:
                frames[place] = self._frames.get(row, np.zeros(FRAME_SHAPE, np.uint8))
        return frames

    def set_attr(self, rows: Sequence[int], name: str, value: Any) -> None:
        """Set an attribute of these rows' targets, in their present and all later instances."""
        targets = self._targets(rows)
        before = [(seat, seat.attributes) for seat, _ in targets]
        pickled = pickle_for_worker(value)  # pickle now: the caller may change the value later
        for seat, row in targets:  # store the value now: an episode may begin during the call
            seat.attribute_set(row, name, pickled)
        try:
            self.call(rows, "set_attr", name, value)
        except BaseException:
            for seat, attributes in before:
                seat.attributes_put_back(attributes)
            raise

    def _targets(self, rows: Sequence[int]) -> list[Target]:
        return [(self._seats[row // self._rows], row % self._rows) for row in rows]

    def _run(
        self, targets: Sequence[Target], operation: str, payload: bytes, deadline: Deadline
    ) -> list[messages.Answer]:
        """Run an operation of `sc2pool.players.operations`; return each target's result or error.

        One target may be given twice. Raises `multiprocessing.TimeoutError` if a target has not
        answered at the deadline. Without a deadline (`NEVER`), only the limit of each single call
        applies.
        """
        self._answers.clear()  # drop late answers to calls that were given up
        asked: dict[int, tuple[Instance, int]] = {}
        answers: dict[int, messages.Answer] = {}
        hung: set[int] = set()

        # A render must not begin an episode of which the trainer does not know yet.
        needs_episode = operation != "render"

        def can_answer(seat: Seat) -> bool:
            ready = not needs_episode or self._stepping.can_be_called(seat)
            instance = seat.instance
            return ready and instance.hello is not None and instance.state not in AWAITED

        def ask() -> bool:
            has_asked = False
            for place, (seat, row) in enumerate(targets):
                instance, number = asked.get(place, (None, -1))
                if number in self._answers:
                    answers[place] = self._answers.pop(number)
                if place in answers or place in hung or instance is seat.instance:
                    continue
                if instance is not None and instance.call_deadline.expired():
                    hung.add(place)
                    continue
                if needs_episode:
                    has_asked |= self._stepping.begin_if_dead(seat)
                if can_answer(seat):
                    self._made += 1
                    asked[place] = (seat.instance, self._made)
                    limit = self._limit(deadline)
                    seat.instance.call(self._made, row, operation, payload, limit)
                    has_asked = True
            return has_asked

        self._loop.wait_until(
            lambda: len(answers) + len(hung) == len(targets), deadline, advance=ask
        )
        if hung:
            names = ", ".join(dict.fromkeys(targets[place][0].name for place in sorted(hung)))
            raise multiprocessing.TimeoutError(
                f"{operation}: {names} did not answer within {self._limit_s:g} s (Limits.call_s); "
                "each continues with a new instance"
            )
        if len(answers) < len(targets):
            raise multiprocessing.TimeoutError(
                f"{len(targets) - len(answers)} of {len(targets)} envs have not answered in time"
            )
        return [answers[place] for place in range(len(targets))]

    def _limit(self, deadline: Deadline) -> Deadline:
        """The time, later than the caller's deadline, at which a silent instance counts as hung."""
        if deadline == NEVER:
            return Deadline.after(self._limit_s)
        return Deadline(deadline.instant_s + self._limit_s)
