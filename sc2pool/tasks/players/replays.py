"""Which episodes of a player are worth a replay, and how it gets into the episode's last info.

    play ─ put ─► LastHeld ─► queue pair          all but the last transition go straight through
                     └ last ─► replay of the game, where wanted ─► last transition + replay

The replay is asked for before the last transition is put, not after: so the info can name a file
that exists, also where the trainer closes the pool with its very next call. Rules: an episode that
is not chosen costs nothing but a sum; a game that does not tell its replay in time loses the
replay, never the transition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sc2pool.config import ReplayPolicy
from sc2pool.tasks.player import Episode
from sc2pool.tasks.queue_pair import QueuePair, Transition

REPLAY = "sc2pool.replay"
"""The info's key: a `PlayedReplay` on its way to the trainer, who puts the file's path there."""


@dataclass(frozen=True)
class PlayedReplay:
    """The replay of an episode that was chosen."""

    episode: int
    episode_return: float
    by_number: bool
    """The episode's number chose it."""
    by_return: bool
    """It is the best this player has played; the trainer knows what the others have."""
    data: bytes
    """Empty where the game did not tell it."""


class LastHeld(QueuePair):
    """Passes everything on but the episode's last transition.

    Attributes:
        last: that transition, once it was put.
        episode_return: sum of the rewards so far.
    """

    def __init__(self, pair: QueuePair) -> None:
        self._pair = pair
        self.last: Transition | None = None
        self.episode_return = 0.0

    async def get_action(self) -> Any:
        return await self._pair.get_action()

    def put(self, transition: Transition) -> None:
        self.episode_return += transition.reward
        if transition.terminated or transition.truncated:
            self.last = transition
        else:
            self._pair.put(transition)


class Chooser:
    """Decides for one player which of its episodes are to be kept."""

    def __init__(self, policy: ReplayPolicy) -> None:
        self._policy = policy
        self._best_return = -float("inf")

    def choose(self, episode: Episode, episode_return: float) -> tuple[bool, bool]:
        """Whether the episode is chosen by its number, and whether by its return."""
        every = self._policy.every
        by_number = every is not None and episode.number % every == 0
        by_return = self._policy.best and episode_return > self._best_return
        self._best_return = max(self._best_return, episode_return)
        return by_number, by_return
