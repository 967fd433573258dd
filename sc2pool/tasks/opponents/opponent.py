"""The opponent of a match that has one learner: it acts inside the worker.

Rule: an opponent travels to each worker, so it is cheap to pickle, and what is heavy is loaded when
its first episode begins.
"""

from __future__ import annotations

from typing import Protocol

from sc2pool.tasks.player import Episode
from sc2pool.tasks.queue_pair import QueuePair


class Opponent(Protocol):
    """Plays the other side of every episode of an env."""

    def begin(self, episode: Episode) -> tuple[str, QueuePair]:
        """Who plays this episode.

        Returns:
            Its name, for `sc2pool.opponent` in the last info, and the pair that gets the opponent's
            transitions and gives its actions. The pair is of this episode alone.
        """
        ...
