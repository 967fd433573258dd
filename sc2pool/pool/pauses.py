"""Counts the trainer's pauses of each env; stops and resumes the games.

Rules: an env's game continues after as many resumes as pauses, or when the env is stepped or reset.
A game is stopped only while no reply of it is awaited. Either `pause` returns and every game is
stopped, or it raises and every game continues. A game that plays no episode is not stopped; instead
no episode begins in it until the pause ends. A spare that is held at its first observation stays
held.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from sc2pool.errors import PauseError
from sc2pool.pool.instances.event_loop import EventLoop
from sc2pool.pool.instances.seats import Seat
from sc2pool.pool.instances.states import STOPPED, State

_MOVING = (STOPPED - {State.HELD, State.PAUSED}) | {State.RESETTING}
"""The game is being stopped, or can be stopped after its reset."""

_GOING_ON = frozenset({State.RESUMING, State.RELEASING})
"""The game was stopped and is about to continue."""


class Pauses:
    """The pauses of a pool's envs and spares."""

    def __init__(self, loop: EventLoop) -> None:
        self._loop = loop
        self._supervisor = supervisor = loop.supervisor
        self._envs = supervisor.env_seats
        self._spares = supervisor.spare_seats
        self._counts: dict[int, int] = {}

    def __bool__(self) -> bool:
        return bool(self._counts)

    def forget(self) -> None:
        """Forget all pauses, as every instance is about to be replaced."""
        self._counts.clear()

    def pause(self, envs: Sequence[int], *, spares: bool) -> None:
        """Count one more pause of these envs, and stop their games, with `spares` also theirs.

        Raises:
            PauseError: a game could not be stopped; all of these games continue.
        """
        for env in envs:
            self._counts[env] = self._counts.get(env, 0) + 1
        try:
            self._stop([self._envs[env] for env in envs] + (self._spares if spares else []))
        except PauseError:
            self._forget(envs)
            raise

    def resume(self, envs: Sequence[int], *, spares: bool) -> None:
        """Count a resume; resume the games whose pauses are all undone.

        With `spares`, resume the spares too, if no env stays paused.
        """
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
        """Resume the paused ones of these envs for the block; the counts stay as they are."""
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
        """True if its game is held at its first observation, independent of pauses."""
        return spare.instance.holds and spare.instance.state in STOPPED

    def _stop(self, seats: Sequence[Seat]) -> None:
        """Stop the games of these seats, each once no reply of it is awaited.

        Raises:
            PauseError: a game could not be stopped; the games of all these seats continue.
        """
        for seat in seats:
            seat.pause_asked()

        def stop_those_at_rest() -> bool:
            for seat in seats:
                if not seat.instance.pause_problem:
                    self._supervisor.pause(seat)
            return True  # a stopping instance has a new deadline: recompute the next wake-up

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
