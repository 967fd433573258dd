"""Joins the steps of a VecEnv into complete episodes.

Rule: a step costs one copy of the batch. A row is extracted only when its episode is over.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np


@dataclass(frozen=True)
class RecordedEpisode:
    """A complete episode of one row, of T steps."""

    observations: Any
    """Arrays with a first axis of length T + 1, in the structure of the space."""
    actions: Any
    """Arrays with a first axis of length T, in the structure of the space."""
    rewards: np.ndarray[Any, np.dtype[np.float64]]
    terminated: bool
    """Whether the last step terminated the episode; else it was truncated."""
    fault: str | None
    """The kind of the fault that ended the episode; None without a fault."""

    @property
    def steps(self) -> int:
        """The number of steps, T."""
        return len(self.rewards)


class _Step(NamedTuple):
    observations: Any
    """The observations before the actions."""
    actions: Any
    rewards: Any


class EpisodeCollector:
    """Calls `take` with each complete episode of all rows. It drops unfinished episodes.

    Args:
        take: called with each episode.
        keeps_faulty: whether to pass on episodes that a fault ended, too.
    """

    def __init__(
        self, take: Callable[[RecordedEpisode], None], *, keeps_faulty: bool = False
    ) -> None:
        self._take = take
        self._keeps_faulty = keeps_faulty
        self._steps: deque[_Step] = deque()
        self._ages: list[int] = []
        """The length of each row's running episode, in steps."""
        self._midway: set[int] = set()
        """The rows whose running episode had begun before `begin`."""

    def begin(self, observations: Any, *, midway: bool = False) -> None:
        """Note the first observations of all rows.

        Args:
            observations: the observations of all rows.
            midway: whether the episodes may have begun earlier. Then the running ones are dropped.
        """
        self._steps.clear()
        self._now = over_leaves(np.array, observations)
        n_rows = len(next(leaves_of(observations)))
        self._ages = [0] * n_rows
        self._midway = set(range(n_rows)) if midway else set()

    def step(
        self,
        actions: Any,
        observations: Any,
        rewards: Any,
        over: Any,
        infos: Sequence[dict[str, Any]],
    ) -> None:
        """Note a step of all rows: the argument and the results of `VecEnv.step`.

        Actions of `Dict` or `Tuple` spaces are a list, with one action per row.
        """
        actions = over_leaves(np.array, _in_structure(actions))
        self._steps.append(_Step(self._now, actions, np.array(rewards, np.float64)))
        self._now = over_leaves(np.array, observations)
        self._ages = [age + 1 for age in self._ages]
        ended = np.flatnonzero(over).tolist()
        for row in ended:
            if row not in self._midway:
                self._end(row, infos[row])
            self._midway.discard(row)
            self._ages[row] = 0
        if ended:
            for _ in range(len(self._steps) - max(self._ages)):
                self._steps.popleft()

    def _end(self, row: int, info: dict[str, Any]) -> None:
        fault = info.get("sc2pool.fault")
        if fault is not None and not self._keeps_faulty:
            return

        def played(*batches: Any) -> Any:
            return np.stack([batch[row] for batch in batches])

        def seen(*batches_and_last: Any) -> Any:
            *batches, last = batches_and_last
            return np.stack([*(batch[row] for batch in batches), last])

        steps = list(self._steps)[-self._ages[row] :]
        observations = [step.observations for step in steps]
        self._take(
            RecordedEpisode(
                over_leaves(seen, *observations, info["terminal_observation"]),
                over_leaves(played, *(step.actions for step in steps)),
                np.array([step.rewards[row] for step in steps]),
                terminated=not info["TimeLimit.truncated"],
                fault=None if fault is None else str(fault["kind"]),
            )
        )


def _in_structure(actions: Any) -> Any:
    """The actions of all rows as arrays whose first axis is the row."""
    if isinstance(actions, list) and isinstance(actions[0], dict | tuple):
        return over_leaves(lambda *parts: np.stack(parts), *actions)
    return actions


def over_leaves(function: Callable[..., Any], *structures: Any) -> Any:
    """Apply a function to the arrays at each place of equal structures, and return the structure
    of its results."""
    first = structures[0]
    if isinstance(first, dict):
        return {key: over_leaves(function, *(one[key] for one in structures)) for key in first}
    if isinstance(first, tuple):
        return tuple(over_leaves(function, *parts) for parts in zip(*structures, strict=True))
    return function(*structures)


def leaves_of(structure: Any) -> Iterator[Any]:
    """All arrays of a structure."""
    if isinstance(structure, dict | tuple):
        for part in structure.values() if isinstance(structure, dict) else structure:
            yield from leaves_of(part)
    else:
        yield structure
