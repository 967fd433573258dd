"""A game's current loop, the number of loops it has played, and the CPU time of a loop.

    LoopCount   the current loop, the possible loops of the next observation, the loops played
    LoopCost    CPU time per loop, in the newest episodes and in the first ones

Rules: all functions are pure. After a request that moves the game to another loop (a loaded save)
the loop is unknown until an observation shows it. A game in real time may show any later loop.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from sc2pool.protocol import replies

_LAST_EPISODE_LOOPS: Final = 1 << 17
"""No episode should begin with fewer loops left before the last possible one."""


class LoopCount:
    """The loops of one game.

    Attributes:
        now: the newest known loop. None if unknown.
        nothing_seen: True before the episode's first observation.
    """

    def __init__(self) -> None:
        self.now: int | None = None
        self.nothing_seen = False
        self._played = 0
        """Loops since create_game; a restart does not reset them."""
        self._before_create = 0
        """Loops of earlier games of the process."""

    @property
    def restartable(self) -> bool:
        """True if the game may still be restarted."""
        return self._played < replies.HARD_RESET_LOOP

    @property
    def used_up(self) -> bool:
        """True if the game should not begin a further episode."""
        return self._played > replies.LAST_LOOP - _LAST_EPISODE_LOOPS

    @property
    def in_all(self) -> int:
        """The number of loops that the process has played."""
        return self._before_create + self._played

    def created(self) -> None:
        """Note that a new game was created in the process."""
        self._before_create += self._played
        self._played = 0

    def begin_episode(self) -> None:
        """Note that the next observation is an episode's first."""
        self.now = 0
        self.nothing_seen = True

    def expected(self, loops: int, *, ended: bool, free: bool) -> tuple[int, int]:
        """The first and the last loop that an observation may show.

        Args:
            loops: how many loops were requested since the newest observation.
            ended: whether the observation says that the game is over. A game that ends within a
                step stops early.
            free: whether the game runs by itself.
        """
        if self.now is None or free:
            return self.now or 0, replies.LAST_LOOP
        target = self.now + loops
        if self.nothing_seen:
            return target, target + replies.FIRST_LOOP_MAX
        return (self.now if ended else target), target

    def see(self, loop: int) -> None:
        """Note the loop of an observation."""
        self.now = loop
        self.nothing_seen = False

    def move(self, loops: int) -> None:
        """Note that the game was stepped without an observation."""
        if self.now is not None:
            self.now += loops

    def play(self, loops: int, simulation_loop: int = 0) -> None:
        """Count played loops; `simulation_loop` is the game's own count, 0 if unknown."""
        self._played = max(self._played + loops, simulation_loop)


class _Use(NamedTuple):
    """The CPU time and loops of some episodes."""

    cpu_s: float
    loops: int
    episodes: int

    def plus(self, cpu_s: float, loops: int, episodes: int) -> _Use:
        return _Use(self.cpu_s + cpu_s, self.loops + loops, self.episodes + episodes)

    @property
    def cost(self) -> float:
        """CPU seconds per loop."""
        return self.cpu_s / self.loops

    @property
    def is_enough(self) -> bool:
        return self.cpu_s >= _ENOUGH_CPU_S and self.episodes >= _ENOUGH_EPISODES and self.loops > 0


_NOTHING: Final = _Use(0.0, 0, 0)
_ENOUGH_CPU_S: Final = 1.0
"""The least CPU time for a comparison, as CPU time is counted in hundredths of a second."""
_ENOUGH_EPISODES: Final = 4
"""The least number of episodes for a comparison, as episodes differ."""
_LOOK_EVERY_S: Final = 0.5
"""The interval of readings. Reading a process's CPU time costs some tenths of a millisecond, as
much as a short step."""


class LoopCost:
    """Compares a game's CPU time per loop with the time in its first episodes.

    According to reports, processes of the real game become slower over hours. CPU time is compared
    and not wall time, because a busy machine does not make a game older.

    Attributes:
        growth: the newest cost divided by the first one, the smaller of the two newest comparisons.
            None before two comparisons.
    """

    def __init__(self) -> None:
        self.growth: float | None = None
        self._ratio: float | None = None
        self._first: _Use | None = None
        self._recent = _NOTHING
        self._episodes = 0
        self._read: tuple[float, int, float] | None = None
        """The newest reading: CPU time, loops played, and the time of the reading."""

    def count_episode(self) -> None:
        """Note that an episode has ended."""
        self._episodes += 1

    def is_due(self, now_s: float) -> bool:
        """True if the CPU time should be read, for `note`."""
        return self._read is None or now_s - self._read[2] >= _LOOK_EVERY_S

    def note(self, cpu_s: float, loops: int, now_s: float) -> None:
        """Note the CPU time that the game has used and the loops that it has played in all."""
        before, self._read = self._read, (cpu_s, loops, now_s)
        episodes, self._episodes = self._episodes, 0
        if before is None:
            return  # leave out the launch and the first map
        self._recent = self._recent.plus(cpu_s - before[0], loops - before[1], episodes)
        if not self._recent.is_enough:
            return
        newest, self._recent = self._recent, _NOTHING
        if self._first is None:
            self._first = newest
        else:
            before_ratio, self._ratio = self._ratio, newest.cost / self._first.cost
            if before_ratio is not None:
                self.growth = min(before_ratio, self._ratio)
