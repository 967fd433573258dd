"""The book of a task's episodes: which number and which seed comes next.

Rule: episodes are dealt in the order in which episodes end, ties by env index, so a seeded run is
the same however long a reset takes. Seeds: numpy's `SeedSequence(seed, spawn_key=(number,))`,
which gives independent streams for neighbouring numbers.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

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
