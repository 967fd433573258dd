"""Which envs the trainer has paused, and how often; stops their games and lets them go on.

Rules: pauses of an env are counted, and its game continues with the last resume, or when the env is
played. A game is stopped only while it awaits no request; when `pause` returns every game is
stopped, or it raises and every game continues. A game that plays no episode is not stopped, and
none begins in it until it may go on. A spare that is held from its first observation on stays so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from sc2pool.errors import PauseError
from sc2pool.pool.instances.event_loop import EventLoop
from sc2pool.pool.instances.seats import Seat
from sc2pool.pool.instances.states import STOPPED, State

_MOVING = (STOPPED - {State.HELD, State.PAUSED}) | {State.RESETTING}
"""The game is being stopped, or will soon be able to be stopped."""

_GOING_ON = frozenset({State.RESUMING, State.RELEASING})
"""The game was stopped and is about to go on; a game that is held only now is none of these."""


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
        """Every instance is about to be replaced: none is paused."""
        self._counts.clear()

    def pause(self, envs: Sequence[int], *, spares: bool) -> None:
        """Stop the games of these envs, and maybe the spares', once more.

        Raises:
            PauseError: one could not be stopped; all of these go on.
        """
        for env in envs:
            self._counts[env] = self._counts.get(env, 0) + 1
        try:
            self._stop([self._envs[env] for env in envs] + (self._spares if spares else []))
        except PauseError:
            self._forget(envs)
            raise

    def resume(self, envs: Sequence[int], *, spares: bool) -> None:
        """Let those go on that were resumed as often as paused; the spares, if all envs do."""
        for env in envs:
            self._counts[env] = max(0, self._counts.get(env, 0) - 1)
        awake = [env for env in envs if not self._counts[env]]
        seats = [self._envs[env] for env in awake]
        if spares and len(awake) == len(self._envs):
            seats += [spare for spare in self._spares if not self._is_held(spare)]
        self._let_go_on(seats)
        self._forget(awake)

    def end(self, envs: Iterable[int]) -> None:
        """These envs are about to be played: all their pauses are over."""
        numbers = list(envs)
        self._let_go_on([self._envs[env] for env in numbers])
        for spare in self._spares:
            if spare.instance.state not in STOPPED:
                self._supervisor.resume(spare)
        self._forget(numbers)

    @contextmanager
    def suspended(self, envs: Iterable[int]) -> Iterator[None]:
        """In the block those of these envs go on that are paused; it counts nothing."""
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
        """True if its game was stopped at its first observation, before any pause."""
        return spare.instance.holds and spare.instance.state in STOPPED

    def _stop(self, seats: Sequence[Seat]) -> None:
        """Stop the games of these seats, as soon as each awaits no reply; it counts nothing.

        Raises:
            PauseError: one could not be stopped; those of all these seats go on.
        """
        for seat in seats:
            seat.pause_asked()

        def stop_those_at_rest() -> bool:
            for seat in seats:
                if not seat.instance.pause_problem:
                    self._supervisor.pause(seat)
            return True  # each that is being stopped has a deadline

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
        """Let the stopped games among these go on, and wait until they do; it counts nothing."""
        for seat in seats:
            self._supervisor.resume(seat)
        self._loop.wait_until(lambda: not any(seat.instance.state in _GOING_ON for seat in seats))
