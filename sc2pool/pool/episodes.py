"""Deals episodes to the envs: from one book for all of them, or each env counts by itself.

    EpisodeBook ─ next episodes ─► Spares: spare, spare, …   an env that is over takes the first
         └──────── next episode ─► an env, if no spare holds one

Rules of the book, of tasks:
- a task's episodes come from one book, in its order, so a seed determines all of them. Episodes are
  dealt in the order in which episodes end, ties by env index, so a seeded run is the same however
  long a reset takes. Seeds: numpy's `SeedSequence(seed, spawn_key=(number,))`, which gives
  independent streams for neighbouring numbers;
- before an episode is dealt out of order, those that spares hold go back into the book; so do
  episodes not yet played when the trainer resets, seeds, or sets options or attributes.

Rules of the spares, instances that are reset before an env needs them:
- spares hold consecutive episodes, beginning with the next to be played, so a seeded run is the
  same with any number of them;
- an env with attributes of its own plays its episode itself, because the spare's task object has
  not got them; so does an env whose spare is only being launched;
- a spare that is stopped stays so until an env takes it or its episode is taken back; in real time
  every spare is held from its first observation on. If games cannot be held there are no spares,
  because their episodes would begin without a player.

Rules of the others: envs of the user count their own episodes, have no spares, and get their seeds
from the reset. One that is made again continues with a seed that follows from the last. An instance
that has reached a soft limit is replaced before its next episode begins, on a reset of any kind.
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
    """Deals episodes for tasks: one book for all envs, numbered from 0; see `begin`."""

    def __init__(self, seed: int | Sequence[int] | None = None, seeded: int | None = None) -> None:
        self.begin(seed, seeded)

    def begin(self, seed: int | Sequence[int] | None, seeded: int | None = None) -> None:
        """Begin again with episode 0.

        Args:
            seed: the run's seed, or several that make up one; None deals episodes without a seed.
            seeded: how many episodes carry a seed; None for all.
        """
        self._seed = seed
        self._seeded = seeded
        self._next = 0
        self._again: list[int] = []
        """A heap of the numbers that were taken back."""

    def deal(self, options: Mapping[str, Any]) -> Episode:
        """The next episode, with the options of the reset that asks for it."""
        if self._again:
            number = heapq.heappop(self._again)
        else:
            number = self._next
            self._next += 1
        if self._seed is None or (self._seeded is not None and number >= self._seeded):
            return Episode(number, None, dict(options))
        return Episode(number, episode_seed(self._seed, number), dict(options))

    def take_back(self, numbers: Iterable[int]) -> None:
        """These episodes have not been played: they are dealt again, before all others."""
        for number in numbers:
            heapq.heappush(self._again, number)


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
        """The seed of an env of the user: the trainer's; if it is made again, one that follows."""
        if request.seed is not None:
            self._seeds[seat.index] = request.seed
        before = self._seeds[seat.index]
        if request.seed is not None or before is None or seat.instance.episodes:
            return request.seed
        return episode_seed(before, self._dealt[seat.index])
