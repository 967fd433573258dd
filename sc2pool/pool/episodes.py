"""Deals episodes to the envs: from one book for all of them, or each env counting by itself.

Rules: tasks play episodes of one book, in its order, so a seed determines all episodes, and spares
may hold the next ones; envs of the user count their own episodes, have no spares, and are seeded by
whoever resets them; before any episode is dealt out of the order, what spares hold goes back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sc2pool.pool.episode_book import EpisodeBook
from sc2pool.pool.instances.event_loop import EventLoop
from sc2pool.pool.instances.seats import Seat
from sc2pool.pool.spares import Spares
from sc2pool.tasks.player import Episode


class Episodes:
    """Deals for one pool.

    Args:
        supervisor: brings the seats to their episodes.
        one_book: whether episodes come from one book for all envs.
    """

    def __init__(self, supervisor: EventLoop, *, one_book: bool) -> None:
        self._supervisor = supervisor
        self._one_book = one_book
        self._book = EpisodeBook()
        self._spares = Spares(supervisor.spare_seats, supervisor)
        self._episodes = [0] * len(supervisor.seats)

    def seed(self, seed: int | Sequence[int] | None, seeded: int | None) -> None:
        """Begin a new book; see `EpisodeBook`."""
        self.take_back()
        self._book = EpisodeBook(seed, seeded)

    def episode(self, seat: Seat, seed: int | None, options: Mapping[str, Any]) -> Episode:
        """The env's next one; a seed is for envs without a book only."""
        if self._one_book:
            return self._book.deal(options)
        number = self._episodes[seat.index]
        self._episodes[seat.index] += 1
        return Episode(number, seed, dict(options))

    def deal(self, seats: Sequence[Seat]) -> None:
        """Bring envs that are over to their next episodes, by spares where those are ready."""
        for seat in seats:
            if self._one_book:
                self._supervisor.recycle_if_due(seat)
                self._spares.play_next(seat, self._book)
            else:
                self._supervisor.play(seat, self.episode(seat, None, {}))

    def prepare_spares(self) -> None:
        """Give every spare that holds no episode the next one.

        Best while envs step, when the trainer has nothing else to do: a spare that an env has
        taken is asked for its next episode by nobody who waits.
        """
        self._spares.prepare(self._book)

    def take_back(self) -> None:
        """Take back the episodes that spares hold; they are dealt anew."""
        self._spares.void(self._book)
