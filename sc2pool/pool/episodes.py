"""Deals (assigns) episodes to envs.

The book of episodes (`EpisodeBook`) is one numbered sequence that all envs of a task share. The
next episodes of the book begin on the spares. An env whose episode is over takes the first spare
or, if there is no spare, the next episode of the book. Rules:
* A task's episodes come from one book, in the order of their numbers, so one seed determines all
  episodes.
* The env whose episode ends first is dealt the next episode. If several episodes end together, the
  env with the lowest index comes first. So the duration of resets does not affect a seeded run.
* Episode seeds come from numpy's `SeedSequence(seed, spawn_key=(number,))`, which gives independent
  streams for neighbouring episode numbers.
* Before an episode is dealt out of order, the episodes of the spares go back into the book. All
  unplayed episodes go back when the trainer resets or seeds the envs, or sets options or
  attributes.

Rules of the spares (instances that are reset before an env needs them):
* Spares hold consecutive episodes, beginning with the next to be played, so a seeded run does not
  depend on the number of spares.
* An env whose attributes the trainer has set takes no spare, but resets its own instance, because a
  spare's task object lacks these attributes. An env does not take a spare that is still launching
  either.
* A stopped spare stays stopped until an env takes it or its episode goes back into the book. In
  real time every spare is held (stopped) from its first observation on. If games cannot be held,
  the pool has no spares, because a spare's game would continue without a player.

Envs of the user count their own episodes, have no spares, and get their seeds from the reset. If
the first reset of a new instance has no seed, a seed is derived from the env's last seed. An
instance that has reached a soft limit is always replaced before its next episode.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sc2pool.errors import ConfigError
from sc2pool.pool.instances.seats import Seat, exchange
from sc2pool.pool.instances.states import State
from sc2pool.pool.instances.supervisor import Supervisor
from sc2pool.tasks.player import Episode


def episode_seed(seed: int | Sequence[int], number: int) -> int:
    """The game seed of episode `number` in a run seeded with `seed`: 31 bits, never negative."""
    words = np.random.SeedSequence(seed, spawn_key=(number,)).generate_state(1)
    return int(words[0]) >> 1


class EpisodeBook:
    """Deals numbered episodes to all envs of a task; `begin` explains the arguments."""

    def __init__(self, seed: int | Sequence[int] | None = None, seeded: int | None = None) -> None:
        self.begin(seed, seeded)

    def begin(self, seed: int | Sequence[int] | None, seeded: int | None = None) -> None:
        """Begin the sequence of episodes again with episode 0.

        Without `seed` no episode has a seed; else the first `seeded` episodes (None: all) have one.
        """
        self._seed = seed
        self._seeded = seeded
        self._next = 0
        self._again: list[int] = []
        """A heap of the numbers of the episodes that came back unplayed."""

    def deal(self, options: Mapping[str, Any]) -> Episode:
        """The next episode, with the `options` of the reset that requests it."""
        if self._again:
            number = heapq.heappop(self._again)
        else:
            number = self._next
            self._next += 1
        if self._seed is None or (self._seeded is not None and number >= self._seeded):
            return Episode(number, None, dict(options))
        return Episode(number, episode_seed(self._seed, number), dict(options))

    def take_back(self, numbers: Iterable[int]) -> None:
        """Take back these unplayed episodes; they are dealt again before all others."""
        for number in numbers:
            heapq.heappush(self._again, number)


class Spares:
    """The spare seats of a pool, which hold the next episodes of the book."""

    def __init__(self, supervisor: Supervisor, book: EpisodeBook) -> None:
        self._supervisor = supervisor
        self._book = book
        self._holding: deque[Seat] = deque()

    @property
    def are_wanting(self) -> bool:
        """True if a spare holds no episode."""
        return len(self._holding) < len(self._supervisor.spare_seats)

    def prepare(self) -> None:
        """Give the next episodes to the spares that hold none.

        Call this while the envs step, if possible, because the trainer is idle during that time.
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
        """Bring an env's seat to the next episode; if a spare holds that episode, use the spare."""
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
            if seat.instance.state is State.IDLE:  # a pause has postponed the spare's reset
                supervisor.play(seat, episode)
            elif not seat.hold:
                supervisor.resume(seat)

    def _first_choice(self) -> Seat:
        """The spare with the next episode; if episodes have no seeds, preferably a ready spare."""
        first = self._holding[0]
        if first.episode is not None and first.episode.seed is not None:
            return first
        for seat in self._holding:  # no generator is used here, for the reason in `Fleet.seat_of`
            if seat.arrived:
                return seat
        return first

    def forget(self) -> None:
        """Drop the spares' episodes: before an interrupt, an env may have taken one of them."""
        self._holding.clear()

    def take_back(self) -> None:
        """Return the episodes of all spares to the book, which deals them again."""
        held = (seat.episode for seat in self._holding)
        self._book.take_back(episode.number for episode in held if episode is not None)
        for seat in self._holding:
            seat.taken_back()
        self._holding.clear()


@dataclass(frozen=True)
class Request:
    """A trainer's request for an episode; ConfigError if the options are not a mapping.

    For an env of the user, the seed is the argument of its `reset`. For a task, the seed applies to
    this one episode; with None, the book gives the seed. The class `Episode` explains
    `both_keywords`.
    """

    seed: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    both_keywords: bool = False

    def __post_init__(self) -> None:
        check_options(self.options)


def check_options(options: object) -> None:
    """Raise `ConfigError` unless the options are a mapping."""
    if not isinstance(options, Mapping):
        raise ConfigError(f"options must be a dict, got {options!r}")


class Episodes:
    """Deals the episodes of one pool. If `one_book`, all envs share one book."""

    def __init__(self, supervisor: Supervisor, *, one_book: bool) -> None:
        self._supervisor = supervisor
        self._one_book = one_book
        self._book = EpisodeBook()
        self.spares = Spares(supervisor, self._book)
        self._dealt = [0] * len(supervisor.env_seats)
        self._seeds: list[int | None] = [None] * len(supervisor.env_seats)
        """The newest seed that the trainer gave to each env of the user."""
        self._ahead: list[Seat] = []
        """The seats that `begin_ahead` has brought to their next episodes."""

    def seed(self, seed: int | Sequence[int] | None, seeded: int | None) -> None:
        """Begin the book again from episode 0; see `EpisodeBook.begin`."""
        self.take_back()
        self._book.begin(seed, seeded)

    def begin_next(self, seat: Seat) -> None:
        """Bring the env to its next episode, on a spare if a spare is ready."""
        if seat in self._ahead:
            self._ahead.remove(seat)
        elif self._one_book:
            self._supervisor.recycle_if_due(seat)
            self.spares.play_next(seat)
        else:
            self.begin(seat, Request())

    def begin_ahead(self, seat: Seat) -> None:
        """Begin the seat's next episode before the trainer has seen the end of the last episode."""
        if seat not in self._ahead:
            self.begin_next(seat)
            self._ahead.append(seat)

    def is_ahead(self, seat: Seat) -> bool:
        """True if `begin_ahead` has begun the seat's next episode, and no env has taken it."""
        return seat in self._ahead

    def take_back(self) -> None:
        """Take back all episodes that spares or `begin_ahead` have begun; deal them again later."""
        self.spares.take_back()
        for seat in self._ahead:
            if self._one_book:
                assert seat.episode is not None, "the trainer has not taken it"
                self._book.take_back([seat.episode.number])
            else:
                self._dealt[seat.index] -= 1
        self._ahead.clear()

    def forget(self) -> None:
        """Drop the episodes begun by spares and by `begin_ahead`; they are not dealt again."""
        self.spares.forget()
        self._ahead.clear()

    def begin(self, seat: Seat, request: Request) -> None:
        """Bring the env to the episode that the trainer requests; call `take_back` first."""
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
        """The request's seed; if it has none, a new instance gets one from the env's last seed."""
        if request.seed is not None:
            self._seeds[seat.index] = request.seed
        before = self._seeds[seat.index]
        if request.seed is not None or before is None or seat.instance.episodes:
            return request.seed
        return episode_seed(before, self._dealt[seat.index])
