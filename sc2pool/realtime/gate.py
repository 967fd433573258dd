"""The pause gate: pauses and resumes a game, for example while the learner updates the policy.

`PauseGate(game.pid)` stops the game's processes.
`PauseGate(pause=press_p, resume=press_p, ticks=read_tick)` presses a pause key and reads ticks.
`PauseGate(pause=press_p, resume=press_p, picture=grab)` presses a pause key and reads a picture.
`PausableEnv(MyGame(), gate)` is paused by `PauseCallback`, and resumed by its own next step.

A `PauseGate` is for games that no pool has started. Call `env.pause()` to pause a pool's games.

Each pause and resume is checked. For a stopped game, the system reports which processes are
stopped. For a game that pauses itself, the gate reads the game's tick or picture. While the game
runs, the tick or picture changes; in a pause it stands still. Pauses are counted: a game that was
paused twice needs two calls of `resume`. Before a pause, receive the replies to all requests,
because a paused game does not reply.

If the program that paused the game ends, `Guard` kills a stopped process tree. Without `Guard` the
processes would stay stopped for ever, because a stopped process handles no SIGTERM. A game that has
paused itself stays alive, because its user sees the pause menu, and can resume or close the game.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import gymnasium
import numpy as np
import psutil
from gymnasium.core import ActType, ObsType
from numpy.typing import NDArray

from sc2pool.deadline import Deadline
from sc2pool.errors import ClosedError, ConfigError, FaultKind, GameFault, PauseError
from sc2pool.pool.statistics import PauseStats, PoolStats
from sc2pool.processes.guard import Guard
from sc2pool.processes.tree import STOPS_WITHIN_S, ProcessTree, created_at_s, is_alive
from sc2pool.realtime.env import RealTimeEnv

_log = logging.getLogger(__name__)

_REACTS_WITHIN_S: Final = 3.0
"""Time limit for the next tick, and for a game's reaction to its pause key, such as a slow menu."""
_POLL_S: Final = 0.01


class PauseGate:
    """Pauses one game; safe to use from several threads.

    Give either `pid` alone, or `pause` and `resume` together with `ticks` or `picture`. If you give
    `pid` with `pause`, the pid only shows whether the game has ended.

    Args:
        pid: The pid of the root of the game's process tree.
        pause: A function that pauses the game, for example by its pause key. It is called only if
            the game seems to run, so it may press a key that both pauses and resumes.
        resume: A function that resumes the game; it may be the same function as `pause`.
        ticks: A function that returns the game's tick, a number that changes while the game runs.
        picture: A function that returns a picture of the game, or of a part of it, as an array. All
            pictures in a pause must be equal, so leave out blinking parts of a pause menu.
        still_s: The seconds for which ticks or picture must stand still to show a pause. Choose
            more than the time between two ticks, or between two changes of the picture.

    Raises:
        ConfigError: The arguments do not fit together, or the process to stop is this program.
        PauseError: The process does not exist.
    """

    def __init__(
        self,
        pid: int | None = None,
        *,
        pause: Callable[[], object] | None = None,
        resume: Callable[[], object] | None = None,
        ticks: Callable[[], float] | None = None,
        picture: Callable[[], NDArray[Any]] | None = None,
        still_s: float = 0.25,
    ) -> None:
        self._root = None if pid is None else _root_of(pid)
        self._game: _StoppedByTheSystem | _PausesItself
        if pause is None and resume is None and ticks is None and picture is None:
            if self._root is None:
                raise ConfigError(
                    "PauseGate needs the pid of a game, or pause=, resume= and ticks= or picture="
                )
            self._game = _StoppedByTheSystem(self._root)
        else:
            self._game = _PausesItself(pause, resume, ticks, picture, still_s)
        self._pauses = 0
        self._closed = False
        self._began_s = 0.0
        self._stats = PauseStats(0, 0.0, 0)
        self._lock = threading.Lock()

    @property
    def paused(self) -> bool:
        """True while the game is paused."""
        return self._pauses > 0

    def stats(self) -> PauseStats:
        """The sums over past pauses; `loops` counts the ticks that passed in pauses, if known."""
        return self._stats

    def pause(self) -> None:
        """Pause the game, or count one more pause if the game is paused already.

        Raises:
            PauseError: The game does not run, or was not paused in time. Processes that were
                stopped are resumed. A game that pauses itself is not resumed.
            GameFault: The game has ended.
            ClosedError: The gate is closed.
        """
        with self._lock:
            if self._closed:
                raise ClosedError("the pause gate is closed")
            if self._pauses:
                self._pauses += 1
                return
            try:
                self._check_alive("before a pause")
                self._game.pause()
                # Count the pause before the check, so that `close` resumes after an interrupt.
                self._pauses, self._began_s = 1, time.monotonic()
                self._game.check_paused()
            except Exception:
                self._pauses = 0
                self._check_alive("before a pause")
                raise

    def resume(self) -> None:
        """Undo one call of `pause`, if any. The game resumes when all pauses are undone.

        Raises:
            PauseError: The game did not resume in time, so it still counts as paused.
            GameFault: The game has ended.
        """
        with self._lock:
            if self._pauses == 1:
                self._resume()
            else:
                self._pauses = max(0, self._pauses - 1)

    @contextmanager
    def pausing(self) -> Iterator[None]:
        """Pause the game while the block runs."""
        self.pause()
        try:
            yield
        finally:
            self.resume()

    def close(self) -> None:
        """Resume the game, regardless of the number of pauses. May be called again.

        Raises:
            PauseError: The game did not resume in time.
        """
        with self._lock:
            if self._closed:
                return
            self._closed = True
            try:
                if self._pauses:
                    with suppress(GameFault):  # a game that has ended cannot be resumed
                        self._resume()
            finally:
                self._pauses = 0
                self._game.close()

    def _resume(self) -> None:
        try:
            ticks_passed = self._game.resume()
        except Exception:
            self._check_alive("in a pause")
            raise
        paused_s = time.monotonic() - self._began_s
        self._pauses = 0
        self._stats = PauseStats(
            self._stats.count + 1,
            self._stats.paused_s + paused_s,
            self._stats.loops + ticks_passed,
        )
        self._check_alive("in a pause")

    def _check_alive(self, when: str) -> None:
        if self._root is not None and not is_alive(*self._root):
            raise GameFault(
                FaultKind.GAME_EXITED, f"the game, process {self._root[0]}, has ended {when}"
            )

    def __enter__(self) -> PauseGate:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        try:
            self.close()
        except PauseError as failed:
            if error is None:
                raise
            error.add_note(f"PauseGate: {failed}")


class _StoppedByTheSystem:
    """A process tree that the system stops; `root` has the pid and creation time of its root."""

    def __init__(self, root: tuple[int, float]) -> None:
        self._root = root
        self._tree = ProcessTree(root[0])
        self._guard = Guard()

    def pause(self) -> None:
        # Inform the guard before the processes stop, because this program may end at any moment.
        self._guard.note(self._root)
        try:
            self._tree.stop(Deadline.after(STOPS_WITHIN_S))
        except BaseException:
            self._guard.note(None)
            raise

    def check_paused(self) -> None:
        """Do nothing, because `stop` has checked that the process tree is stopped."""

    def resume(self) -> int:
        self._tree.resume()
        self._guard.note(None)
        return 0

    def close(self) -> None:
        self._tree.resume()
        self._guard.dismiss()


class _PausesItself:
    """A game that a function of the user pauses; its ticks or picture show if it is paused."""

    def __init__(
        self,
        pause: Callable[[], object] | None,
        resume: Callable[[], object] | None,
        ticks: Callable[[], float] | None,
        picture: Callable[[], NDArray[Any]] | None,
        still_s: float,
    ) -> None:
        given = {"pause": pause, "resume": resume, "ticks": ticks, "picture": picture}
        wrong = [name for name, one in given.items() if one is not None and not callable(one)]
        if wrong:
            raise ConfigError(f"PauseGate: {wrong[0]}={given[wrong[0]]!r} cannot be called")
        read = picture if ticks is None else ticks
        if pause is None or resume is None or read is None or None not in (ticks, picture):
            there = ", ".join(f"{name}=" for name, one in given.items() if one is not None)
            raise ConfigError(
                "a game that pauses itself needs pause=, resume= and one of ticks= and picture=, "
                f"got {there}"
            )
        if not still_s > 0:
            raise ConfigError(f"PauseGate: still_s={still_s!r}, expected a positive number")
        self._press_pause = pause
        self._press_resume = resume
        self._read_sign: Callable[[], Any] = read
        self._has_ticks = ticks is not None
        self._sign = "tick" if ticks is not None else "picture"
        self._still_s = still_s
        self._runs = False
        self._before: Any = None
        self._while_paused: Any = None

    def pause(self) -> None:
        """Check that the game runs, and then pause it."""
        self._before = self._read()
        # A running game's picture may stand still. On a busy machine its ticks may stand still too.
        within_s = _REACTS_WITHIN_S if self._has_ticks else self._still_s
        self._runs = self._changes_from(self._before, within_s)
        if self._has_ticks and not self._runs:
            raise PauseError(
                f"the game does not run: its ticks stood still at {self._before} for {within_s} s; "
                "it was not paused, because the key of a paused game resumes it"
            )
        self._press_pause()

    def check_paused(self) -> None:
        """Wait until the game is paused, or raise `PauseError`."""
        deadline = Deadline.after(_REACTS_WITHIN_S + self._still_s)
        self._while_paused = self._before  # `resume` needs a value if this check is interrupted
        last = self._read()
        while self._changes_from(last, self._still_s):
            if deadline.expired():
                raise PauseError(
                    f"the game was not paused: its {self._sign} still changes "
                    f"{_REACTS_WITHIN_S} s after pause()"
                )
            last = self._read()
        if not self._runs and np.array_equal(last, self._before):
            raise PauseError(
                "nobody knows if the game is paused: its picture changed neither before nor after "
                "pause(); choose a part of the picture that moves, or that the pause changes"
            )
        self._while_paused = last

    def resume(self) -> int:
        """Resume the game, and return the number of ticks that passed in the pause."""
        paused, now = self._while_paused, self._read()
        if not np.array_equal(now, paused) and self._changes_from(now, self._still_s):
            # If a user has resumed the game already, the key would pause it again.
            _log.warning("the game ran before resume(): its %s changed in the pause", self._sign)
        else:
            self._press_resume()
            if not self._changes_from(now, _REACTS_WITHIN_S):
                at = f" at {now}" if self._has_ticks else ""
                raise PauseError(
                    f"the game did not resume: its {self._sign} stood still{at} for "
                    f"{_REACTS_WITHIN_S} s after resume()"
                )
        return int(now - paused) if self._has_ticks else 0

    def close(self) -> None:
        """Do nothing, because nothing is open."""

    def _read(self) -> Any:
        """A copy of the game's tick or picture, because a capture may reuse its array."""
        return np.array(self._read_sign())

    def _changes_from(self, value: Any, within_s: float) -> bool:
        """True as soon as the tick or picture differs from `value`; False after `within_s`."""
        deadline = Deadline.after(within_s)
        while np.array_equal(self._read(), value):
            if deadline.expired():
                return False
            time.sleep(_POLL_S)
        return True


class PausableEnv(gymnasium.Wrapper[ObsType, ActType, ObsType, ActType]):
    """An env with a `pause` method, for `PauseCallback`, `RLlibPauseCallback` or your own loop.

        env = PausableEnv(MyGame(), PauseGate(game_pid))
        model = PPO("CnnPolicy", env)
        model.learn(100_000, callback=PauseCallback())

    The next `step` or `reset` resumes the game before the action takes effect. So the game also
    waits while the policy computes the first action after an update. The clock of a `RealTimeEnv`
    does not count the pause.

    Args:
        env: The env of one game.
        gate: The `PauseGate` of this game; the env's `close` also closes the gate.
    """

    def __init__(self, env: gymnasium.Env[ObsType, ActType], gate: PauseGate) -> None:
        super().__init__(env)
        self._gate = gate
        self._holds = False

    def pause(self) -> None:
        """Pause the game until the next `step`, `reset` or `resume`; see `PauseGate.pause`."""
        if not self._holds:
            self._gate.pause()
            self._holds = True

    def resume(self) -> None:
        """Resume the game, if `pause` has paused it; see `PauseGate.resume`."""
        if self._holds:
            before_s = self._gate.stats().paused_s
            self._gate.resume()
            self._holds = False
            game = self.env.unwrapped
            if isinstance(game, RealTimeEnv):
                game.exclude_pause(self._gate.stats().paused_s - before_s)

    def stats(self) -> PauseStats:
        """The sums over past pauses; see `PauseGate.stats`."""
        return self._gate.stats()

    def step(self, action: ActType) -> tuple[ObsType, Any, bool, bool, dict[str, Any]]:
        self.resume()
        return self.env.step(action)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[ObsType, dict[str, Any]]:
        self.resume()
        return self.env.reset(seed=seed, options=options)

    def close(self) -> None:
        """Close the gate, which resumes the game, and then close the env."""
        try:
            self._gate.close()
        finally:
            self.env.close()


def pause_figures(every: Iterable[PoolStats | PauseStats]) -> dict[str, float]:
    """The sums over all pauses, for a log; `every` has the `stats()` of each pausable env."""
    pauses = [stats if isinstance(stats, PauseStats) else stats.pauses for stats in every]
    return {
        "paused_s": sum(pause.paused_s for pause in pauses),
        "loops_passed": sum(pause.loops for pause in pauses),
    }


def _root_of(pid: int) -> tuple[int, float]:
    """Pid and creation time of a process; raises if this program cannot or must not stop it."""
    if not isinstance(pid, int) or pid <= 0:
        raise ConfigError(f"PauseGate: pid={pid!r}, expected the pid of a process")
    if pid == os.getpid() or pid in (parent.pid for parent in psutil.Process().parents()):
        raise ConfigError(f"PauseGate: process {pid} is this program or a parent of it")
    created_s = created_at_s(pid)
    if created_s is None:
        raise PauseError(f"process {pid} has ended")
    return pid, created_s
