"""Spares: instances that are reset before anyone needs them, and hold the next tickets.

    book ─ next tickets ─► spare, spare, …   an env that is over takes the first of them

Rules: spares hold consecutive tickets, beginning with the next to be played, so a seeded run is
the same with any number of them; an env with attributes of its own plays its ticket itself,
because the spare's task object has not got them, and so does one whose spare is only being
launched; a spare that is paused stays so until an env takes it or its ticket is void, and one whose
game does not wait is paused from its first observation on (see `messages.Reset`); where that cannot
be done there are no spares, for the episodes they hold would have begun without anyone; tickets not
yet played go back into the book when the trainer resets, seeds, or sets options or attributes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from sc2pool.pool.seats import Seat, exchange
from sc2pool.pool.states import State
from sc2pool.pool.supervisor import Supervisor
from sc2pool.pool.tickets import TicketBook


class Spares:
    """The spare seats of a pool and the tickets they hold."""

    def __init__(self, seats: Sequence[Seat], supervisor: Supervisor) -> None:
        self._seats = seats
        self._supervisor = supervisor
        self._holding: deque[Seat] = deque()

    def prepare(self, book: TicketBook) -> None:
        """Give every spare that holds no ticket the next one."""
        if self._supervisor.cannot_hold:
            self._dismiss_all(book)
            return
        for seat in self._seats:
            if seat not in self._holding:
                self._supervisor.play(seat, book.deal({}))
                self._holding.append(seat)

    def play_next(self, seat: Seat, book: TicketBook) -> None:
        """Bring an env's seat to the next ticket, by a spare that holds it where there is one."""
        if not self._holding:
            self._supervisor.play(seat, book.deal({}))
            return
        spare = self._first_choice()
        self._holding.remove(spare)
        assert spare.ticket is not None
        sooner_itself = seat.instance.state is State.OVER and not spare.on_its_way
        if seat.attributes or sooner_itself or self._supervisor.cannot_hold:
            self._supervisor.play(seat, spare.ticket)
        else:
            exchange(seat, spare)
            if not seat.waits:
                self._supervisor.let_go_on(seat)

    def _first_choice(self) -> Seat:
        """The holder of the next ticket; without seeds, rather one that is ready."""
        first = self._holding[0]
        if first.ticket is not None and first.ticket.seed is not None:
            return first
        return next((seat for seat in self._holding if seat.arrived), first)

    def _dismiss_all(self, book: TicketBook) -> None:
        self.void(book)
        for seat in self._seats:
            self._supervisor.roster.dismiss(seat)

    def void(self, book: TicketBook) -> None:
        """Take back all tickets that spares hold."""
        numbers = [seat.ticket.number for seat in self._holding if seat.ticket is not None]
        if numbers:
            book.rewind(min(numbers))
        for seat in self._holding:
            seat.ticket = None
        self._holding.clear()
