"""`RealTimeEnv` turns a live program, which does not wait for actions, into a `gymnasium.Env`.

    `step(action)` ─► `act`: the action takes effect ─► the period passes ─► `observe` ─► return.

A subclass implements `begin`, `act` and `observe`, and sets the two spaces and the length of a
decision period. `RealTimeEnv` keeps the clock (`sc2pool.game.clock`, the clock of StarCraft II in
real time). A policy that answers in time acts once per period. An action that is late by less than
a period shortens its own period. If an action is late by a period or more, whole periods are lost.

* The clock counts the game's ticks, if the game reports them (`ticks`, `period_ticks`). If not, the
  clock counts seconds, except the seconds for which the process `game_pid` was stopped or a
  `PausableEnv` had paused the game. So a pause is never counted as a late action.
* If a game has ended or is frozen, a `GameFault` is raised, and a pool replaces env and game.
* Every wait notices the end of the game.

`GameProcess` checks from outside whether and how the game's process has ended. The exit code is
only read, not collected, so the `Popen` object of the game's owner still gets the code.

`RunningClock` counts the time for which a process was not stopped. A pool that pauses an env stops
the child processes of the env's worker, and a `PauseGate` stops the game's process tree. In both
cases the system reports the game's process as stopped, so the clock needs no message about pauses.
No system counts for how long a process is stopped. So a thread reads the process's state many times
per decision period. Each beginning and each end of a pause makes the clock wrong by at most the
time between two readings.
"""

from __future__ import annotations

import logging
import os
import pickle
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

import gymnasium
import numpy as np
import psutil
from gymnasium import spaces
from gymnasium.error import ResetNeeded

from sc2pool.deadline import Deadline
from sc2pool.errors import ActionError, ClosedError, ConfigError, FaultKind, GameFault
from sc2pool.game.clock import ElasticClock, Tick
from sc2pool.platform import WINDOWS
from sc2pool.processes.spawn import describe_exit, start_thread
from sc2pool.processes.tree import UNREADABLE, created_at_s, is_alive

log = logging.getLogger("sc2pool")

ObsT = TypeVar("ObsT")
ActT = TypeVar("ActT")

_MICROSECONDS: Final = 1_000_000
"""The clock's ticks per second for a game that reports no ticks."""
_LOOKS_PER_PERIOD: Final = 20
_LOOK_S: Final = (0.002, 0.02)
"""Shortest and longest time, in seconds, between two checks whether a process is stopped."""
_SLEEP_S: Final = (0.001, 0.02)
"""Shortest and longest sleep, in seconds, between two checks of a game's ticks or of its end."""
_END_FOLLOWS_S: Final = 0.5
"""Time limit, after a broken connection, for the system's report that the game has ended."""
_WAIT_POLL_S: Final = 0.01
"""Sleep between two calls of `wait_until`'s function, which may capture the screen."""


@dataclass(frozen=True)
class StepResult(Generic[ObsT]):
    """The result of `RealTimeEnv.observe` if it returns more than an observation.

    Attributes:
        observation: An element of the observation space.
        reward: The reward of the step, which is ignored at the beginning of an episode.
        terminated: True if the episode has ended by the game's rules.
        truncated: True if the episode ends for another reason, for example a time limit.
        info: More data about the step.
    """

    observation: ObsT
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    info: Mapping[str, Any] = field(default_factory=dict)


class _Unset:
    """A class attribute that raises an error until a subclass or an instance sets it."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, env: object | None, owner: type) -> Any:
        if env is None:
            return self
        raise ConfigError(
            f"{owner.__name__} has no {self._name}; set it in the class or in __init__"
        )


class RealTimeEnv(gymnasium.Env[ObsT, ActT]):
    """Base class for an env whose game runs by itself.

    A subclass sets the following attributes, in the class or in `__init__`.

    * `observation_space` and `action_space` are the spaces of the env.
    * `period_s`: The length of a decision period in seconds, at the game's usual speed.
    * `period_ticks`: The length of a decision period in ticks; None if the game reports no ticks.
    * `game_pid`: The pid of the game's process, if it has one. With a pid, the end of the game is
      noticed immediately, and the clock stands still while the process is stopped. Without pid and
      ticks, only `PausableEnv` can pause the clock; any other pause counts as a late action.
    * `frozen_after_s`: The number of seconds after which unchanged ticks (or observations, if the
      game has no ticks) mean that the game is frozen. None switches this check off.

    A subclass writes `begin`, `act` and `observe`, and if needed `ticks`, `log_tail`, `render` and
    `close`. The method `close` must call `super().close()`.

    Each step's info gets two keys. `sc2pool.gap_s` is the time in seconds from the last observation
    to this step's action, without pauses. `sc2pool.lost_periods` is the number of whole periods
    that ended without a new action. A pool sums up gaps and lost periods in `stats().realtime`.

    Attributes:
        gap_s: The newest action's `sc2pool.gap_s`, which `act` can already read.
        lateness: The lateness of the newest step; None before the first step of an episode.
        slow_acts: The number of calls of `act` that took a whole period or longer.

    Raises:
        ConfigError: An attribute is missing or has a wrong value.
        ActionError: An action is not in the action space, so the game has not received it.
        GameFault: The game has ended or is frozen.
        gymnasium.error.ResetNeeded: `step` was called before the first reset, or after a fault.
    """

    observation_space: spaces.Space[ObsT] = _Unset()  # type: ignore[assignment]
    action_space: spaces.Space[ActT] = _Unset()  # type: ignore[assignment]
    period_s: float = _Unset()  # type: ignore[assignment]
    period_ticks: int | None = None
    game_pid: int | None = None
    frozen_after_s: float | None = 5.0

    gap_s = 0.0
    lateness: Tick | None = None
    slow_acts = 0
    _game: GameProcess | None = None
    _running: RunningClock | None = None
    _clock: ElasticClock | None = None
    """The clock of the decision periods; None before the first `reset`."""
    _closed = False
    _observed_s = 0.0
    _seen_s = 0.0
    """The `time.monotonic()` at which the ticks were last read, if the game reports ticks."""
    _seen_tick = 0
    _game_s = 0.0
    _excluded_s = 0.0
    """The seconds of all pauses that neither the ticks nor the process's state showed."""
    _stopped_s = 0.0
    """The total time for which the process had been stopped until the newest observation."""
    _same: tuple[int, int] = (0, 0)
    """Hash of the newest observation, and the number of periods in which it stayed the same."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        for name, check in _CHECKS.items():
            if name in vars(cls):
                check(cls.__name__, vars(cls)[name])

    # ---- methods of a subclass -------------------------------------------------------------------

    def begin(self, options: dict[str, Any]) -> None:
        """Bring the game to the beginning of a new episode, and return as soon as the game runs.

        Args:
            options: The options that `reset` received.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method begin")

    def act(self, action: ActT) -> None:
        """Let an action take effect, for example hold keys down, and return without waiting."""
        raise NotImplementedError(f"{type(self).__name__} has no method act")

    def observe(self) -> ObsT | StepResult[ObsT]:
        """Return the current observation, or a `StepResult` that also has a reward."""
        raise NotImplementedError(f"{type(self).__name__} has no method observe")

    def ticks(self) -> int:
        """The number of ticks that the game has played; only needed if `period_ticks` is set."""
        raise NotImplementedError(f"{type(self).__name__} has period_ticks, but no method ticks")

    def log_tail(self) -> str:
        """The last lines of the game's log, for the error if the game fails; may be empty."""
        return ""

    # ---- gymnasium's methods ---------------------------------------------------------------------

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[ObsT, dict[str, Any]]:
        """Begin an episode. The seed goes only to `np_random`, because most games have no seed."""
        if self._closed:
            raise ClosedError(f"{type(self).__name__} is closed")
        for name, check in _CHECKS.items():
            check(type(self).__name__, getattr(self, name))
        super().reset(seed=seed)
        self._clock = self.lateness = None
        with self._blaming_ended_game():
            self.begin(options or {})
            self._follow_game()
            self._check_game()
            result = self._observe()
        self._clock = ElasticClock(self._ticks_per_s)
        self._same = 0, 0
        self._note_observed()
        self._clock.begin(self._ticks(), self._observed_s)
        return result.observation, dict(result.info)

    def step(self, action: ActT) -> tuple[ObsT, float, bool, bool, dict[str, Any]]:
        """Act, wait for the end of the period, and observe."""
        clock = self._clock
        if clock is None:
            raise ResetNeeded(
                f"{type(self).__name__}: call reset() before step(), and after a fault"
            )
        if not self.action_space.contains(action):
            raise ActionError(f"action {action!r:.80} is not in {self.action_space}")
        with self._blaming_ended_game():
            self._check_game()
            now_s = self._now_s()
            self.gap_s = max(0.0, now_s - self._observed_s)
            due = self._begin_period(clock, now_s)
            self._act(action)
            self._wait_for_tick(due)
            result = self._observe()
            self._check_change(result.observation)
        self._note_observed()
        tick = clock.observe(self._ticks(), self._observed_s)
        self.lateness = tick._replace(skipped_loops=0)  # because ticks are not StarCraft II's loops
        info = {
            **result.info,
            "sc2pool.gap_s": tick.gap_s,
            "sc2pool.lost_periods": tick.lost_periods,
        }
        return (
            result.observation,
            float(result.reward),
            bool(result.terminated),
            bool(result.truncated),
            info,
        )

    def close(self) -> None:
        """End the clock. A subclass ends its game, and calls this method. May be called again."""
        self._closed = True
        self._clock = None
        if self._running is not None:
            self._running.close()
            self._running = None

    def exclude_pause(self, pause_s: float) -> None:
        """Let the clock ignore a pause since the last observation. `PausableEnv` calls this method.

        The clock excludes pauses in which ticks stand still or `game_pid` is stopped; this method
        does not exclude them again. The clock does not notice that a game has paused itself.

        Args:
            pause_s: The length of the pause in seconds.
        """
        if not self.period_ticks:
            noticed_s = 0.0
            if self._running is not None:
                self._running.look()
                noticed_s = self._running.stopped_s - self._stopped_s
            self._excluded_s += max(0.0, pause_s - noticed_s)

    # ---- help for `begin` ------------------------------------------------------------------------

    def wait_until(self, reached: Callable[[], object], within_s: float, what: str) -> None:
        """Wait until `reached()` returns a true value, for example when a new level has begun.

        Args:
            reached: A function that is called about 100 times a second.
            within_s: The time limit in seconds.
            what: The awaited event, for the error's text, such as "the new level".

        Raises:
            GameFault: The game has ended, or the time is over.
        """
        deadline = Deadline.after(within_s)
        self._follow_game()
        while not reached():
            self._check_game()
            if deadline.expired():
                raise self._fault(FaultKind.DEADLINE, f"{what} did not come within {within_s} s")
            time.sleep(_WAIT_POLL_S)

    # ---- the game's process ----------------------------------------------------------------------

    def _follow_game(self) -> None:
        """Watch the process `game_pid`; the pid may have changed since the last episode."""
        pid = self.game_pid
        if (self._game.pid if self._game else None) == pid:
            return
        if self._running is not None:
            self._running.close()
            self._running = None
        self._game = None if pid is None else GameProcess(pid)
        if self._game is not None and self.period_ticks is None:
            look_s = float(np.clip(self.period_s / _LOOKS_PER_PERIOD, *_LOOK_S))
            self._running = RunningClock(self._game, look_s)

    @contextmanager
    def _blaming_ended_game(self) -> Iterator[None]:
        """If the game has ended, raise a `GameFault` in place of a hook's error in the block.

        A `GameFault` ends the episode. After any other error of a hook the episode goes on.
        """
        try:
            try:
                yield
            except GameFault:
                raise
            except Exception as error:
                self._follow_game()  # `begin` may have started another game
                self._check_game(error)
                raise
        except GameFault:
            self._clock = None
            raise

    def _check_game(self, error: Exception | None = None) -> None:
        """Raise `GameFault` if the game has ended; its end may have caused a hook's `error`."""
        if self._game is None:
            return
        # A connection to the game breaks a moment before the system reports the game's end.
        is_cut = isinstance(error, ConnectionError | EOFError)
        deadline = Deadline.after(_END_FOLLOWS_S if is_cut else 0.0)
        while (how := self._game.end()) is None and not deadline.expired():
            time.sleep(_SLEEP_S[0])
        if how is not None:
            raise self._fault(FaultKind.GAME_EXITED, f"it ended: {how}") from error

    def _fault(self, kind: FaultKind, what: str) -> GameFault:
        pid = "" if self._game is None else f" (process {self._game.pid})"
        tail = self.log_tail()
        more = f"; its log ends with:\n{tail}" if tail else ""
        return GameFault(kind, f"the game of {type(self).__name__}{pid}: {what}{more}")

    # ---- time ------------------------------------------------------------------------------------

    @property
    def _ticks_per_s(self) -> float:
        return self.period_ticks / self.period_s if self.period_ticks else _MICROSECONDS

    @property
    def _period(self) -> int:
        """The length of a period in ticks."""
        return self.period_ticks or max(1, round(self.period_s * _MICROSECONDS))

    def _ticks(self) -> int:
        """The game's ticks, or microseconds of a clock that stops in pauses."""
        return self.ticks() if self.period_ticks else int(self._now_s() * _MICROSECONDS)

    def _now_s(self) -> float:
        """Seconds of a clock that stops in pauses."""
        if not self.period_ticks:
            now_s = self._running.now_s() if self._running else time.monotonic()
            return now_s - self._excluded_s
        # Count at most the time that the new ticks take, because the game may have been paused.
        now_s, tick = time.monotonic(), self.ticks()
        most_s = (tick - self._seen_tick + 1) / self._ticks_per_s
        self._game_s += min(now_s - self._seen_s, most_s)
        self._seen_s, self._seen_tick = now_s, tick
        return self._game_s

    def _note_observed(self) -> None:
        self._observed_s = self._now_s()
        self._stopped_s = self._running.stopped_s if self._running else 0.0

    def _begin_period(self, clock: ElasticClock, now_s: float) -> int:
        """Begin the period of the newest action, and return the tick at which it ends."""
        tick = self._ticks()
        clock.note_loop(tick)
        late = tick - clock.next_begin
        # The games of a pool are ready at different times, but get their first actions together.
        # An episode's first period begins with its action, so the games' periods begin together.
        if self.lateness is None and 0 < late < self._period:
            clock.delay(late)
        return clock.act(self._period, now_s)

    def _wait_for_tick(self, due: int) -> None:
        """Wait for the period's end. Raises `GameFault` if the game has ended or stands still."""
        newest, moved = -1, Deadline.after(self.frozen_after_s)
        while (tick := self._ticks()) < due:
            self._check_game()
            if tick != newest:
                newest, moved = tick, Deadline.after(self.frozen_after_s)
            elif moved.expired():
                raise self._stands_still(tick)
            # The current tick may end at any moment.
            left_s = (due - tick - bool(self.period_ticks)) / self._ticks_per_s
            time.sleep(min(max(left_s, _SLEEP_S[0]), _SLEEP_S[1]))

    def _stands_still(self, tick: int) -> GameFault:
        if self._game is not None and self._game.is_stopped():
            return self._fault(
                FaultKind.STOPPED, f"it was suspended for {self.frozen_after_s} s during a step"
            )
        return self._fault(
            FaultKind.HUNG, f"it has played no tick for {self.frozen_after_s} s; ticks: {tick}"
        )

    # ---- actions and observations ----------------------------------------------------------------

    def _act(self, action: ActT) -> None:
        began_s = time.monotonic()
        self.act(action)
        took_s = time.monotonic() - began_s
        if took_s >= self.period_s:
            self.slow_acts += 1
            if self.slow_acts == 1:
                log.warning(
                    "%s: act took %.3f s, longer than a period of %s s, so periods are lost; it "
                    "should start the action and return (this is said once; slow_acts counts)",
                    type(self).__name__,
                    took_s,
                    self.period_s,
                )

    def _observe(self) -> StepResult[ObsT]:
        seen = self.observe()
        return seen if isinstance(seen, StepResult) else StepResult(seen)

    def _check_change(self, observation: ObsT) -> None:
        """Raise `GameFault` if a game without ticks has shown the same observation for too long."""
        if self.frozen_after_s is None or self.period_ticks:
            return
        # Compare hashes, because a subclass may return the same array with other content.
        # Count periods, not seconds, because the clock does not notice that a key paused the game.
        seen = hash(pickle.dumps(observation))
        before, periods = self._same
        self._same = seen, periods + 1 if seen == before else 0
        if self._same[1] * self.period_s > self.frozen_after_s:
            raise self._fault(
                FaultKind.HUNG,
                f"the observation has not changed for {self.frozen_after_s} s; if that may be, set "
                "frozen_after_s to a longer time or to None",
            )


def _check_period(name: str, value: object) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (number and 0 < value < np.inf):  # type: ignore[operator]
        raise ConfigError(f"{name}.period_s is {value!r}, expected a positive number of seconds")


def _check_ticks(name: str, value: object) -> None:
    if value is not None and not (type(value) is int and value > 0):
        raise ConfigError(f"{name}.period_ticks is {value!r}, expected a positive int or None")


def _check_frozen(name: str, value: object) -> None:
    if value is not None and not (isinstance(value, int | float) and value > 0):
        raise ConfigError(
            f"{name}.frozen_after_s is {value!r}, expected a positive number of seconds or None"
        )


def _check_space(name: str, value: object) -> None:
    if not isinstance(value, spaces.Space):
        raise ConfigError(f"{name} has {value!r:.80} as a space, expected a gymnasium.spaces.Space")


_CHECKS: Final[dict[str, Callable[[str, object], None]]] = {
    "period_s": _check_period,
    "period_ticks": _check_ticks,
    "frozen_after_s": _check_frozen,
    "observation_space": _check_space,
    "action_space": _check_space,
}


class ActionInFlightObservation(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Adds the last action and its delay to the observation of a `RealTimeEnv`.

    In real time the last action may not have taken effect yet, so the observation alone is not a
    Markov state. The new observation is a dict with the keys `observation`, `last_action` and
    `delay_periods`, as with `sc2pool.tasks.in_flight.ActionInFlight`.

    Args:
        env: A `RealTimeEnv`, or a wrapper of a `RealTimeEnv`.

    Raises:
        ConfigError: The env is not a `RealTimeEnv`, or `ActionInFlight` cannot show its actions.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        # This import is not at the top of the file, because it loads the game's messages.
        from sc2pool.tasks.in_flight import in_flight_space  # noqa: PLC0415

        super().__init__(env)
        base = env.unwrapped
        if not isinstance(base, RealTimeEnv):
            raise ConfigError(
                f"ActionInFlightObservation is for a RealTimeEnv, got {type(base).__name__}"
            )
        self._base: RealTimeEnv[Any, Any] = base
        self.observation_space, self._nothing_done = in_flight_space(
            env.observation_space, env.action_space, type(base).__name__
        )

    def reset(self, **keywords: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        observation, info = self.env.reset(**keywords)
        return self._with_action(observation, self._nothing_done, 0.0), info

    def step(self, action: Any) -> tuple[dict[str, Any], Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        periods = self._base.gap_s / self._base.period_s
        return self._with_action(observation, action, periods), reward, terminated, truncated, info

    def _with_action(self, observation: Any, action: Any, periods: float) -> dict[str, Any]:
        shown = self.observation_space["last_action"]  # type: ignore[index]
        return {
            "observation": observation,
            "last_action": np.asarray(action, shown.dtype)[()],
            "delay_periods": np.array([periods], np.float32),
        }


_STOPPED: Final = frozenset({psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP})
_REST: Final = 20
"""Sleep of `RunningClock`'s thread after a check, in multiples of the time that the check took."""
_ENDS_WITHIN_S: Final = 5.0


class GameProcess:
    """A game's process, started by any program; raises `GameFault` if no process has the pid."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        created_s = created_at_s(pid)
        try:
            self._process = psutil.Process(pid)
        except (psutil.NoSuchProcess, ValueError, TypeError):
            created_s = None
        if created_s is None:
            raise GameFault(FaultKind.GAME_EXITED, f"the game is gone: there is no process {pid!r}")
        self._created_s = created_s

    def end(self) -> str | None:
        """How the process has ended, for example `exit code 3`; None if it has not ended."""
        if not WINDOWS and hasattr(os, "waitid"):  # Python on macOS has `waitid` since 3.13
            with suppress(ChildProcessError):  # the pid is no child, or its exit code was collected
                ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                if ended is None:
                    return None
                killed = ended.si_code in (os.CLD_KILLED, os.CLD_DUMPED)
                return describe_exit(-ended.si_status if killed else ended.si_status)
        if is_alive(self.pid, self._created_s):
            return None
        code = None
        if WINDOWS:
            with suppress(psutil.Error, OSError):
                code = self._process.wait(0)
        return "exit code unknown" if code is None else describe_exit(code)

    def is_stopped(self) -> bool:
        """True if the process is suspended; False if it has ended."""
        try:
            return self._process.status() in _STOPPED
        except UNREADABLE:
            return False


class RunningClock:
    """A clock that stands still while a process is stopped.

    `stopped_s` is the total time for which the process had been stopped until the last check.
    `interval_s`, the time between two checks of the process, is the clock's accuracy. On Windows a
    check takes milliseconds, so the time between two checks may be longer.
    """

    def __init__(self, process: GameProcess, interval_s: float) -> None:
        self._process = process
        self._interval_s = self._rest_s = interval_s
        self._lock = threading.Lock()
        self.stopped_s = self._shown_s = 0.0
        self._is_stopped = process.is_stopped()
        self._looked_s = time.monotonic()
        self._closing = threading.Event()
        self._thread = start_thread(self._run, f"sc2pool-running-{process.pid}")

    def now_s(self) -> float:
        """Seconds of `time.monotonic()`, except those for which the process was stopped."""
        with self._lock:
            if time.monotonic() - self._looked_s >= self._rest_s:  # the thread's next check is late
                self._look()
            since_s = 0.0 if self._is_stopped else time.monotonic() - self._looked_s
            # A check may show that the process stopped earlier, but this clock never goes back.
            self._shown_s = max(self._shown_s, self._looked_s - self.stopped_s + since_s)
            return self._shown_s

    def look(self) -> None:
        """Check the process now, for an exact `stopped_s`."""
        with self._lock:
            self._look()

    def _look(self) -> None:
        before_s, was_stopped = self._looked_s, self._is_stopped
        self._is_stopped = self._process.is_stopped()
        self._looked_s = time.monotonic()
        # If the state has changed since the last check, count half of the time between the checks.
        share = (was_stopped + self._is_stopped) / 2
        self.stopped_s += share * (self._looked_s - before_s)

    def _run(self) -> None:
        while not self._closing.wait(self._rest_s) and self._process.end() is None:
            began_s = time.monotonic()
            self.look()
            self._rest_s = max(self._interval_s, _REST * (time.monotonic() - began_s))

    def close(self) -> None:
        """End the checking thread, which also ends with the process. May be called again."""
        self._closing.set()
        self._thread.join(_ENDS_WITHIN_S)
