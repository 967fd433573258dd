"""Spares: instances that are reset before an env needs them, and hold the next episodes.

    book ─ next episodes ─► spare, spare, …   an env that is over takes the first of them

Rules:
- spares hold consecutive episodes, beginning with the next to be played, so a seeded run is the
  same with any number of them;
- an env with attributes of its own plays its episode itself, because the spare's task object has
  not got them; so does an env whose spare is only being launched;
- a spare that is stopped stays so until an env takes it or its episode is taken back; in real time
  every spare is held from its first observation on. If games cannot be held there are no spares,
  because their episodes would begin without a player;
- episodes not yet played go back into the book when the trainer resets, seeds, or sets options or
  attributes.
"""

from __future__ import annotations

from collections import deque

from sc2pool.pool.episode_book import EpisodeBook
from sc2pool.pool.instances.seats import Seat, exchange
from sc2pool.pool.instances.states import State
from sc2pool.pool.instances.supervisor import Supervisor


class Spares:
    """The spare seats of a pool and the episodes they hold, of this book."""

    def __init__(self, supervisor: Supervisor, book: EpisodeBook) -> None:
        self._supervisor = supervisor
        self._book = book
        self._holding: deque[Seat] = deque()

    @property
    def are_wanting(self) -> bool:
        """True if one of them holds no episode."""
        return len(self._holding) < len(self._supervisor.spare_seats)

    def prepare(self) -> None:
        """Give every spare that holds no episode the next one.

        Best while envs step, when the trainer has nothing else to do: no env waits for the next
        episode of a spare that has just been taken.
        """
        supervisor = self._supervisor
        if supervisor.cannot_hold:
            self.take_back()
            for seat in supervisor.spare_seats:
                supervisor.fleet.dismiss(seat)
            return
        for seat in supervisor.spare_seats:
            if seat not in self._holding:
                supervisor.play(seat, self._book.deal({}))
                self._holding.append(seat)

    def play_next(self, seat: Seat) -> None:
        """Bring an env's seat to the next episode, by a spare that holds it if there is one."""
        supervisor = self._supervisor
        if not self._holding:
            supervisor.play(seat, self._book.deal({}))
            return
        spare = self._first_choice()
        self._holding.remove(spare)
        episode = spare.episode
        assert episode is not None
        sooner_itself = seat.instance.state is State.OVER and not spare.arrives_soon
        if seat.attributes or sooner_itself or supervisor.cannot_hold:
            supervisor.play(seat, episode)
        else:
            exchange(seat, spare)
            if seat.instance.state is State.IDLE:  # it has put the episode off, in a pause
                supervisor.play(seat, episode)
            elif not seat.hold:
                supervisor.resume(seat)

    def _first_choice(self) -> Seat:
        """The holder of the next episode; without seeds, preferably one that is ready."""
        first = self._holding[0]
        if first.episode is not None and first.episode.seed is not None:
            return first
        for seat in self._holding:  # no generator, as in `Fleet.seat_of`
            if seat.arrived:
                return seat
        return first

    def forget(self) -> None:
        """Every instance is about to be replaced; what spares hold is not dealt again.

        An interrupt may have come just after an env had taken it.
        """
        self._holding.clear()

    def take_back(self) -> None:
        """Take back all episodes that spares hold; they are dealt again."""
        held = (seat.episode for seat in self._holding)
        self._book.take_back(episode.number for episode in held if episode is not None)
        for seat in self._holding:
            seat.taken_back()
        self._holding.clear()
