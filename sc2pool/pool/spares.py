"""Spares: instances that are reset before anyone needs them, and hold the next episodes.

    book ─ next episodes ─► spare, spare, …   an env that is over takes the first of them

Rules: spares hold consecutive episodes, beginning with the next to be played, so a seeded run is
the same with any number of them; an env with attributes of its own plays its episode itself,
because the spare's task object has not got them, and so does one whose spare is only being
launched; a spare that is paused stays so until an env takes it or its episode is void, and one
whose game does not wait is paused from its first observation on (see `messages.Reset`);
where that cannot be done there are no spares, for the episodes they hold would have begun without
anyone; episodes not yet played go back into the book when the trainer resets, seeds, or sets
options or attributes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from sc2pool.pool.episode_book import EpisodeBook
from sc2pool.pool.instances.event_loop import EventLoop
from sc2pool.pool.instances.seats import Seat, exchange
from sc2pool.pool.instances.states import State


class Spares:
    """The spare seats of a pool and the episodes they hold."""

    def __init__(self, seats: Sequence[Seat], supervisor: EventLoop) -> None:
        self._seats = seats
        self._supervisor = supervisor
        self._holding: deque[Seat] = deque()

    def prepare(self, book: EpisodeBook) -> None:
        """Give every spare that holds no episode the next one."""
        if self._supervisor.cannot_hold:
            self._dismiss_all(book)
            return
        for seat in self._seats:
            if seat not in self._holding:
                self._supervisor.play(seat, book.deal({}))
                self._holding.append(seat)

    def play_next(self, seat: Seat, book: EpisodeBook) -> None:
        """Bring an env's seat to the next episode, by a spare that holds it where there is one."""
        if not self._holding:
            self._supervisor.play(seat, book.deal({}))
            return
        spare = self._first_choice()
        self._holding.remove(spare)
        assert spare.episode is not None
        sooner_itself = seat.instance.state is State.OVER and not spare.on_its_way
        if seat.attributes or sooner_itself or self._supervisor.cannot_hold:
            self._supervisor.play(seat, spare.episode)
        else:
            exchange(seat, spare)
            if not seat.waits:
                self._supervisor.let_go_on(seat)

    def _first_choice(self) -> Seat:
        """The holder of the next episode; without seeds, rather one that is ready."""
        first = self._holding[0]
        if first.episode is not None and first.episode.seed is not None:
            return first
        return next((seat for seat in self._holding if seat.arrived), first)

    def _dismiss_all(self, book: EpisodeBook) -> None:
        self.void(book)
        for seat in self._seats:
            self._supervisor.roster.dismiss(seat)

    def void(self, book: EpisodeBook) -> None:
        """Take back all episodes that spares hold."""
        numbers = [seat.episode.number for seat in self._holding if seat.episode is not None]
        if numbers:
            book.rewind(min(numbers))
        for seat in self._holding:
            seat.episode = None
        self._holding.clear()
