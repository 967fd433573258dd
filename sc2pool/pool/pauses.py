"""Which envs are paused, how often, and how their games are stopped and let go on.

Rules: pauses of an env are counted, and its game goes on with the last resume, or when the env is
played; a game is stopped only while it awaits no request, and is stopped when `pause` returns, or
all that were asked for go on; a game that plays no episode has nothing to lose: none is begun
until it may go on; a spare that is held from its first observation on stays so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from sc2pool.errors import PauseError
from sc2pool.pool.instances.event_loop import EventLoop
from sc2pool.pool.instances.seats import Seat
from sc2pool.pool.instances.states import State


class Pauses:
    """The pauses of a pool's envs and spares."""

    def __init__(self, supervisor: EventLoop) -> None:
        self._supervisor = supervisor
        self._counts: dict[int, int] = {}

    def __bool__(self) -> bool:
        return bool(self._counts)

    def pause(self, envs: Sequence[int], *, spares: bool) -> None:
        """Stop the games of these envs, and maybe the spares', once more.

        Raises:
            PauseError: one could not be stopped; all of these go on.
        """
        for env in envs:
            self._counts[env] = self._counts.get(env, 0) + 1
        try:
            self.stop([self._supervisor.seats[env] for env in envs], spares=spares)
        except PauseError:
            self._forget(envs)
            raise

    def resume(self, envs: Sequence[int], *, spares: bool) -> None:
        """Let those go on that were resumed as often as paused; the spares, if all envs do."""
        for env in envs:
            self._counts[env] = max(0, self._counts.get(env, 0) - 1)
        awake = [env for env in envs if not self._counts[env]]
        seats = [self._supervisor.seats[env] for env in awake]
        if spares and len(awake) == len(self._supervisor.seats):
            seats += [spare for spare in self._supervisor.spare_seats if not spare.instance.held]
        self.go_on(seats)
        self._forget(awake)

    def wake(self, envs: Iterable[int]) -> None:
        """These envs are about to be played: whoever has paused them has to do it anew."""
        numbers = list(envs)
        self.go_on([self._supervisor.seats[env] for env in numbers])
        for spare in self._supervisor.spare_seats:
            if spare.instance.state is not State.PAUSED:
                self._supervisor.let_go_on(spare)
        self._forget(numbers)

    @contextmanager
    def lifted(self, envs: Iterable[int]) -> Iterator[None]:
        """In the block those of these envs go on that are paused; it counts nothing."""
        paused = [self._supervisor.seats[env] for env in envs if env in self._counts]
        if paused:
            self.go_on(paused)
        try:
            yield
        finally:
            if paused and self._supervisor.failure is None:
                self.stop(paused)

    def _forget(self, envs: Iterable[int]) -> None:
        for env in envs:
            self._counts.pop(env, None)

    def stop(self, seats: Sequence[Seat], *, spares: bool = False) -> None:
        """Stop the games of these seats, as soon as each awaits no reply; it counts nothing.

        Raises:
            PauseError: one could not be stopped; those of all these seats go on.
        """
        if spares:
            seats = [*seats, *self._supervisor.spare_seats]
        for seat in seats:
            seat.held = True

        def at_rest() -> bool:
            for seat in seats:
                if seat.instance.state in (State.READY, State.PLAYING):
                    seat.instance.pause(self._supervisor.pause_deadline())
            return all(
                seat.instance.state is not State.RESETTING
                and (seat.instance.state is not State.PAUSED or seat.instance.at_rest is not None)
                for seat in seats
            )

        self._supervisor.wait_until(at_rest)
        problems = [
            f"{seat.name}: {rest.problem}"
            for seat in seats
            if (rest := seat.instance.at_rest) is not None
            and seat.instance.state is State.PAUSED
            and rest.problem
        ]
        if problems:
            self.go_on(seats)
            raise PauseError("; ".join(problems))

    def go_on(self, seats: Sequence[Seat]) -> None:
        """Let the paused games among these go on, and wait until they do; it counts nothing."""
        for seat in seats:
            self._supervisor.let_go_on(seat)
        self._supervisor.wait_until(
            lambda: all(seat.instance.state is not State.PAUSED for seat in seats)
        )
