"""Deals episodes to the envs: from one book for all of them, or each env counts by itself.

Rules: a task's episodes come from one book, in its order, so a seed determines all of them, and
spares may hold the next ones; envs of the user count their own episodes, have no spares, and get
their seeds from the reset; one that is made anew goes on with a seed that follows from the last;
an instance that has reached a soft limit is replaced before its next episode begins, on a reset of
any kind; before an episode is dealt out of order, those that spares hold go back into the book.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sc2pool.errors import ConfigError
from sc2pool.pool.episode_book import EpisodeBook, episode_seed
from sc2pool.pool.instances.seats import Seat
from sc2pool.pool.instances.supervisor import Supervisor
from sc2pool.pool.spares import Spares
from sc2pool.tasks.player import Episode


@dataclass(frozen=True)
class Request:
    """An episode as a trainer's reset asks for it.

    Attributes:
        seed: for envs of the user the seed of their `reset`; for tasks it is None, or seeds this
            one episode (the book seeds the others).
        options: for the reset.
        both_keywords: see `Episode`.

    Raises:
        ConfigError: the options are no mapping.
    """

    seed: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    both_keywords: bool = False

    def __post_init__(self) -> None:
        check_options(self.options)


def check_options(options: object) -> None:
    """Refuse what is no mapping with a `ConfigError`."""
    if not isinstance(options, Mapping):
        raise ConfigError(f"options must be a dict, got {options!r}")


class Episodes:
    """Deals the episodes of one pool.

    Args:
        one_book: whether episodes come from one book for all envs.

    Attributes:
        spares: hold the next episodes of the book.
    """

    def __init__(self, supervisor: Supervisor, *, one_book: bool) -> None:
        self._supervisor = supervisor
        self._one_book = one_book
        self._book = EpisodeBook()
        self.spares = Spares(supervisor, self._book)
        self._dealt = [0] * len(supervisor.env_seats)
        self._seeds: list[int | None] = [None] * len(supervisor.env_seats)
        """Of envs of the user: the newest that the trainer gave to each."""
        self._ahead: list[Seat] = []
        """Those that `begin_ahead` has brought to their next episodes."""

    def seed(self, seed: int | Sequence[int] | None, seeded: int | None) -> None:
        """Begin the book again; see `EpisodeBook`."""
        self.take_back()
        self._book.begin(seed, seeded)

    def begin_next(self, seat: Seat) -> None:
        """Bring the env to its next episode, by a spare if one is ready."""
        if seat in self._ahead:
            self._ahead.remove(seat)
        elif self._one_book:
            self._supervisor.recycle_if_due(seat)
            self.spares.play_next(seat)
        else:
            self.begin(seat, Request())

    def begin_ahead(self, seat: Seat) -> None:
        """Begin the next episode before the trainer has seen that the last one is over."""
        if seat not in self._ahead:
            self.begin_next(seat)
            self._ahead.append(seat)

    def is_ahead(self, seat: Seat) -> bool:
        """True from `begin_ahead` until `begin_next`, or until its episode is taken back."""
        return seat in self._ahead

    def take_back(self) -> None:
        """Take back the episodes of spares and of envs that are ahead; they are dealt again."""
        self.spares.take_back()
        for seat in self._ahead:
            if self._one_book:
                assert seat.episode is not None, "the trainer has not taken it"
                self._book.take_back([seat.episode.number])
            else:
                self._dealt[seat.index] -= 1
        self._ahead.clear()

    def forget(self) -> None:
        """Every instance is about to be replaced; what was not played is not dealt again."""
        self.spares.forget()
        self._ahead.clear()

    def begin(self, seat: Seat, request: Request) -> None:
        """Bring the env to an episode that the trainer asks for, after `take_back`."""
        self._supervisor.recycle_if_due(seat)
        if self._one_book:
            episode = self._book.deal(request.options)
            number, seed = episode.number, episode.seed
            if request.seed is not None:
                seed = episode_seed(request.seed, 0)
        else:
            number, seed = self._dealt[seat.index], self._seed_of_env(seat, request)
            self._dealt[seat.index] += 1
        options = dict(request.options)
        self._supervisor.play(seat, Episode(number, seed, options, request.both_keywords))

    def _seed_of_env(self, seat: Seat, request: Request) -> int | None:
        """The seed of an env of the user: the trainer's; if it is made anew, one that follows."""
        if request.seed is not None:
            self._seeds[seat.index] = request.seed
        before = self._seeds[seat.index]
        if request.seed is not None or before is None or seat.instance.episodes:
            return request.seed
        return episode_seed(before, self._dealt[seat.index])
