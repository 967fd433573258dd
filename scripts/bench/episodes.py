"""Counts the steps that are left of an episode, so that no episode ends within a round.

In a round, the time of resets would outweigh that of the steps. The case *resets* measures resets.
"""

from __future__ import annotations

WARM_UP_S = 0.1
"""The duration of the warm-up before a round, if the side does not count its warm-up in steps."""
WARM_UP_STEPS = 20


class EpisodeBudget:
    """Counts the steps of one side's episodes, which begin and end together.

    Args:
        episode_steps: the steps until the episode of every env ends.
    """

    def __init__(self, episode_steps: int) -> None:
        self._episode_steps = episode_steps - 1  # the last step ends the episode
        self._left = 0
        self._longest_run = 0

    def needs_reset(self) -> bool:
        """True if the rest of the episode may be too short for another round."""
        return self._left <= 2 * self._longest_run + WARM_UP_STEPS

    def reset(self) -> None:
        """Record that a new episode has begun."""
        self._left = self._episode_steps

    @property
    def left(self) -> int:
        """The number of steps that the episode still allows."""
        return self._left

    def spend(self, steps: int) -> None:
        """Subtract a number of steps from the number of steps that the episode still allows."""
        self._left -= steps
        self._longest_run = max(self._longest_run, steps)
