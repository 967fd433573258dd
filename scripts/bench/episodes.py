"""How many steps are left of an episode, so that none ends within a round.

Resets are measured by a case of their own: a side whose reset takes seconds would else be compared
by its resets alone.
"""

from __future__ import annotations

WARM_UP_STEPS = 20


class EpisodeBudget:
    """Of the episodes of one side, which are stepped together.

    Args:
        episode_steps: steps until an episode ends, of every env.
    """

    def __init__(self, episode_steps: int) -> None:
        self._episode_steps = episode_steps - 1  # the last step is the episode's end
        self._left = 0
        self._longest_run = 0

    def needs_reset(self) -> bool:
        """Whether another round like those before may not fit into the episode."""
        return self._left <= 2 * self._longest_run + WARM_UP_STEPS

    def reset(self) -> None:
        """A new episode has begun."""
        self._left = self._episode_steps

    @property
    def left(self) -> int:
        """Steps that can still be made."""
        return self._left

    def spend(self, steps: int) -> None:
        """So many steps were made."""
        self._left -= steps
        self._longest_run = max(self._longest_run, steps)
