"""Chooses the episodes whose replay is kept, and puts the replay into the episode's last info.

    Play ─ put ─► LastHeld ─► queue pair (all but the last transition).
                     └ last ─► replay of the game, if chosen ──► last transition + replay.

The game saves the replay before the last transition is put. So the file that the info names exists
even if the trainer's next call closes the pool. Rules: a step of an episode that is not chosen
costs one addition. If the game does not send its replay in time, only the replay is lost. In an env
of several rows, the first row's return decides, and the first row's info has the replay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sc2pool.config import ReplayPolicy
from sc2pool.tasks.player import Episode
from sc2pool.tasks.queue_pair import QueuePair, Transition

REPLAY = "sc2pool.replay"
"""The info's key for the `PlayedReplay`, which the trainer replaces by the file's path."""


@dataclass(frozen=True)
class PlayedReplay:
    """The replay of a chosen episode."""

    episode: int
    episode_return: float
    by_number: bool
    """True if the episode's number was chosen."""
    by_return: bool
    """True if the return is this player's best. (The trainer compares the players' returns.)"""
    data: bytes
    """The replay file's content; empty if the game did not send it."""


class LastHeld(QueuePair):
    """Passes on all transitions except each row's `last`, and sums the first row's rewards."""

    def __init__(self, pair: QueuePair) -> None:
        self._pair = pair
        self.last: Sequence[Transition] = ()
        self.episode_return = 0.0

    async def get_action(self) -> Any:
        return await self._pair.get_action()

    def put(self, transition: Transition) -> None:
        self.episode_return += transition.reward
        if transition.terminated or transition.truncated:
            self.last = [transition]
        else:
            self._pair.put(transition)

    async def get_actions(self) -> Sequence[Any]:
        return await self._pair.get_actions()

    def put_rows(self, transitions: Sequence[Transition]) -> None:
        first = transitions[0]
        self.episode_return += first.reward
        if first.terminated or first.truncated:
            self.last = transitions
        else:
            self._pair.put_rows(transitions)


class Chooser:
    """Decides which replays of one player's episodes are kept."""

    def __init__(self, policy: ReplayPolicy) -> None:
        self._policy = policy
        self._best_return = -float("inf")

    def choose(self, episode: Episode, episode_return: float) -> tuple[bool, bool]:
        """Return two flags: chosen by the episode's number, and chosen by the episode's return."""
        every = self._policy.every
        by_number = every is not None and episode.number % every == 0
        by_return = self._policy.best and episode_return > self._best_return
        self._best_return = max(self._best_return, episode_return)
        return by_number, by_return
