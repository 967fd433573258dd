"""Which game loop a game is at, which its next observation may show, and how many it has played.

Rules: pure; after a request that moves the game to another loop (a loaded save) the loop is unknown
until an observation shows it; a game in real time may show any later loop.
"""

from __future__ import annotations

from typing import Final

from sc2pool.protocol import replies

_LAST_EPISODE_LOOPS: Final = 1 << 17
"""With fewer loops left before the last possible one, no episode should begin."""


class LoopCount:
    """The loops of one game.

    Attributes:
        now: the newest loop known; None if it is unknown.
        nothing_seen: whether the episode has shown no observation yet.
    """

    def __init__(self) -> None:
        self.now: int | None = None
        self.nothing_seen = False
        self._played = 0
        """Loops since create_game: a restart does not set them to 0."""

    @property
    def restartable(self) -> bool:
        """True if the game may still be restarted."""
        return self._played < replies.HARD_RESET_LOOP

    @property
    def used_up(self) -> bool:
        """True if the game should begin no further episode."""
        return self._played > replies.LAST_LOOP - _LAST_EPISODE_LOOPS

    def created(self) -> None:
        """A new game was created in the process."""
        self._played = 0

    def begin_episode(self) -> None:
        """The next observation is an episode's first."""
        self.now = 0
        self.nothing_seen = True

    def expected(self, loops: int, *, ended: bool, free: bool) -> tuple[int, int]:
        """The first and the last loop that an observation may show.

        Args:
            loops: how many were asked for since the newest observation.
            ended: whether it says that the game is over; a game that ends within a step stops.
            free: whether the game runs by itself.
        """
        if self.now is None or free:
            return self.now or 0, replies.LAST_LOOP
        target = self.now + loops
        if self.nothing_seen:
            return target, target + replies.FIRST_LOOP_MAX
        return (self.now if ended else target), target

    def see(self, loop: int) -> None:
        """An observation is of this loop."""
        self.now = loop
        self.nothing_seen = False

    def move(self, loops: int) -> None:
        """The game was stepped without an observation."""
        if self.now is not None:
            self.now += loops

    def play(self, loops: int, simulation_loop: int = 0) -> None:
        """Count loops that were played; `simulation_loop` is the game's own count, 0 if unknown."""
        self._played = max(self._played + loops, simulation_loop)
