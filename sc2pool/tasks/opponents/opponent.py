"""The opponent of a match that has one learner: it acts inside the worker.

Rule: an opponent travels to each worker, so it is cheap to pickle, and what is heavy is loaded when
its first episode begins.
"""

from __future__ import annotations

from typing import Protocol

from sc2pool.tasks.opponents.bots import PlainBot
from sc2pool.tasks.player import Episode
from sc2pool.tasks.queue_pair import QueuePair


class Opponent(Protocol):
    """Plays the other side of every episode of an env."""

    def begin(self, episode: Episode) -> tuple[str, QueuePair | PlainBot]:
        """Who plays this episode.

        Returns:
            Its name, for `sc2pool.opponent` in the last info, and who plays: a python-sc2 bot, or
            the pair that gets the opponent's transitions and gives its actions, by `put_rows` and
            `get_actions` those of all agents of its side, by `put` and `get_action` that of a
            single one. Both are of this episode alone.
        """
        ...
