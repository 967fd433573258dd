"""Tasks that do harm on command.

Workers and trainer programs import this module as they import a user's module. Nearly all tasks
play MoveToBeacon, and play it as usual while no harm is done.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import psutil
from gymnasium import spaces

from sc2pool.errors import ConfigError, GameFault
from sc2pool.game.game import Game
from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon
from sc2pool.tasks.task import Task
from tests.support.audit.audited.task import harm_request
from tests.support.systems import strike

STRIKE_FILE = "SC2POOL_TEST_STRIKE"
"""The environment variable names a file; a process that takes the file does the ordered harm."""


def taken(armed: Path) -> str | None:
    """The harm that a file orders; None if there is no order, or another process has taken it.

    A process takes the file by making a folder, which only one process can do. Under Wine, two
    processes that rename the same file can both succeed.
    """
    if not armed.exists():
        return None
    try:
        armed.with_name(f"{armed.name}.taken").mkdir()
    except FileExistsError:
        return None
    return armed.read_text()


N_WALKS = 8
"""Actions below this number walk, as in MoveToBeacon."""
HARMS = (
    "game KILL",
    "game STOP",
    "game hang",
    "game crash",
    "game exit",
    "worker KILL",
    "worker STOP",
)


def harm_action(harm: str) -> int:
    """The number of the action that makes a `Saboteur` do this harm."""
    return N_WALKS + HARMS.index(harm)


class Saboteur(MoveToBeacon):
    """A task that brings down its own game or worker during a step or a reset."""

    action_space = spaces.Discrete(N_WALKS + len(HARMS))

    def __init__(self) -> None:
        if STRIKE_FILE not in os.environ:
            return
        order = taken(Path(os.environ[STRIKE_FILE]))
        if order is None:
            return
        target, name = order.split()
        strike(game_of_this_worker() if target == "game" else os.getpid(), name)

    async def act(self, action: int) -> Any:  # type: ignore[override]
        if action >= N_WALKS:
            target, name = HARMS[action - N_WALKS].split()
            if name.islower():
                await ask_to_fail(self.game, name)
            else:
                strike(self.game.pid if target == "game" else os.getpid(), name)
        return super().act(action % N_WALKS)


class CreatedEachTime(MoveToBeacon):
    """A task with short episodes; each episode needs a new game instead of a restart."""

    restart = "never"
    max_loops = 16


class Mines(Task):
    """Observes the contents of the mineral fields, while the map's own orders let workers mine."""

    map_name = "BuildMarines"
    step_mul = 100
    max_loops = 400
    observation_space = spaces.Box(0, np.inf, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def observe(self) -> Any:
        units = self.observation.raw_data.units
        return np.array([sum(unit.mineral_contents for unit in units)], np.float32)

    def act(self, action: int) -> None:
        """Give no command, because the workers mine by themselves."""


class Exhausts(MoveToBeacon):
    """Uses up resources that a new game needs; the worker's other envs continue."""

    action_space = spaces.Discrete(N_WALKS + 2)
    DESCRIPTORS, THREADS = N_WALKS, N_WALKS + 1

    def act(self, action: int) -> Any:  # type: ignore[override]
        if action == self.DESCRIPTORS:
            import resource  # Windows has no module of this name

            lowest_free = os.dup(0)
            os.close(lowest_free)
            _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, hard))
        elif action == self.THREADS:
            threading.Thread.start = refuse_thread  # type: ignore[method-assign]
        return super().act(action % N_WALKS)


class Blocks(MoveToBeacon):
    """A task whose `act` does not return, and blocks all envs of its worker."""

    action_space = spaces.Discrete(N_WALKS + 1)

    def act(self, action: int) -> Any:  # type: ignore[override]
        if action == N_WALKS:
            time.sleep(600)
        return super().act(action)


def refuse_thread(_: threading.Thread) -> None:
    """Raise the error that Python raises if the system has no thread left."""
    raise RuntimeError("can't start new thread")


class CrashesEachEpisode(MoveToBeacon):
    """A task whose game crashes in the first step of every episode."""

    async def act(self, action: int) -> Any:  # type: ignore[override]
        await ask_to_fail(self.game, "crash")


class Short(MoveToBeacon):
    """A task whose episodes have five steps."""

    max_loops = 40


class Grows(Short):
    """Takes memory in its worker and never returns it."""

    action_space = spaces.Discrete(N_WALKS + 1)
    taken: list[bytes] = []  # noqa: RUF012  # until the worker ends

    def act(self, action: int) -> Any:  # type: ignore[override]
        if action == N_WALKS:
            self.taken.append(b"x" * 300_000_000)
        return super().act(action % N_WALKS)


class Blind(Short):
    """A task that never reads the game's observation."""

    def on_start(self) -> None:
        pass

    def act(self, action: int) -> Any:  # type: ignore[override]
        return []

    def observe(self) -> Any:
        return np.zeros(self.observation_space.shape, np.float32)  # type: ignore[arg-type]


class ShortSaboteur(Saboteur):
    """A `Saboteur` whose episodes have five steps."""

    max_loops = 40


class DictObservation(MoveToBeacon):
    """Returns `observed` as its observation; by default this is a valid observation."""

    observation_space = spaces.Dict(  # type: ignore[assignment]
        {
            "vector": spaces.Box(-1.0, 1.0, (2,), np.float32),
            "count": spaces.Box(0, 9, (1,), np.int64),
        }
    )
    observed: Any = None

    def observe(self) -> Any:
        super().observe()
        return right_observation() if self.observed is None else self.observed


def right_observation() -> dict[str, Any]:
    return {"vector": np.zeros(2, np.float32), "count": np.zeros(1, np.int64)}


class Rewarding(MoveToBeacon):
    """A task whose reward is the value of an option."""

    paid = 0.0

    def reward(self) -> float:
        return self.paid


class UserBugError(Exception):
    """An error of a user's own code."""


class Raises(MoveToBeacon):
    """Raises an error in the hook that the environment variable `RAISES_IN` names.

    `act` and `observe` raise in an episode's second step only.
    """

    RAISES_IN = "SC2POOL_TEST_RAISES_IN"
    steps = 0

    def __init__(self) -> None:
        self._maybe_raise("__init__")

    def _maybe_raise(self, hook: str) -> None:
        if os.environ.get(self.RAISES_IN) == hook and (self.steps == 2 or hook in _AT_ONCE):
            raise UserBugError(f"a bug in {hook}")

    def on_start(self) -> None:
        super().on_start()
        self._maybe_raise("on_start")

    def act(self, action: int) -> Any:
        self.steps += 1
        self._maybe_raise("act")
        return super().act(action)

    def observe(self) -> Any:
        self._maybe_raise("observe")
        return super().observe()


class Cancelled(MoveToBeacon):
    """A task that awaits its own future, which is cancelled."""

    async def act(self, action: int) -> Any:  # type: ignore[override]
        await await_cancelled()


class DisturbsItsLoop(MoveToBeacon):
    """A task that misuses its worker's event loop."""

    action_space = spaces.Discrete(N_WALKS + 3)
    CANCELS_ALL, RAISES_IN_CALLBACK, RAISES_IN_HANDLER = range(N_WALKS, N_WALKS + 3)

    async def act(self, action: int) -> Any:  # type: ignore[override]
        if action == self.CANCELS_ALL:
            for task in asyncio.all_tasks():
                task.cancel()
            await asyncio.sleep(0)
        elif action == self.RAISES_IN_CALLBACK:
            asyncio.get_running_loop().call_soon(sys.exit, "out of a callback")
        elif action == self.RAISES_IN_HANDLER:
            signal.signal(signal.SIGALRM, raise_in_handler)
            signal.setitimer(signal.ITIMER_REAL, 0.2)
        return super().act(action % N_WALKS)


def raise_in_handler(*_: object) -> None:
    raise UserBugError("out of a handler")


async def await_cancelled() -> None:
    waiting = asyncio.ensure_future(asyncio.sleep(60))
    waiting.cancel()
    await waiting


_AT_ONCE = ("__init__", "on_start")
HOOKS = (*_AT_ONCE, "act", "observe")
"""Hooks that are called in different places; all hooks not listed are called near `observe`."""


class MutedError(Exception):
    """An error whose message cannot be shown."""

    def __str__(self) -> str:
        raise UserBugError("no message")


class InterruptingError(Exception):
    """An error whose message raises KeyboardInterrupt, which no `except Exception` catches."""

    def __str__(self) -> str:
        raise KeyboardInterrupt


class TwoPartError(ConfigError):
    """A user's subclass of a package's error; its constructor has other arguments."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(f"{what}: {why}")
        self.parts = (what, why)

    def __reduce__(self) -> Any:
        return (TwoPartError, self.parts)


class UnreadableError(Exception):
    """An error whose attributes raise KeyboardInterrupt, which no `except Exception` catches."""

    def __getattribute__(self, name: str) -> Any:
        raise KeyboardInterrupt


class LyingError(Exception):
    """An error that `isinstance` takes for a `GameFault`, but that lacks the class's attributes."""

    def __getattribute__(self, name: str) -> Any:
        return GameFault if name == "__class__" else super().__getattribute__(name)


class CauselessError(Exception):
    """An error whose cause cannot be read."""

    @property
    def __cause__(self) -> Any:
        raise UserBugError("no cause")


class LeavingError(Exception):
    """An error that calls `sys.exit` when it is pickled."""

    def __reduce__(self) -> Any:
        sys.exit("out of an error")


class NumberlessError(OSError):
    """A system error without an error number."""

    @property
    def errno(self) -> Any:  # type: ignore[override]
        raise UserBugError("no number")


class BareFault(GameFault):
    """A user's `GameFault` that lacks all attributes that the base class sets."""

    def __init__(self, message: str) -> None:
        Exception.__init__(self, message)


def with_cause(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


ODD_ERRORS: dict[str, Callable[[], Exception]] = {
    "text that is no text": lambda: UserBugError("no file \udc80"),
    "no message": MutedError,
    "an interrupt": InterruptingError,
    "no traceback": lambda: SyntaxError("bad", ("f.py", "no number", "nor this", "text")),
    "a subclass of ours": lambda: TwoPartError("map", "too small"),
    "no attribute": UnreadableError,
    "another class": LyingError,
    "no cause": CauselessError,
    "a cause without attributes": lambda: with_cause(UserBugError("top"), UnreadableError()),
    "an end in its pickling": LeavingError,
    "no number": NumberlessError,
    "a bare fault": lambda: BareFault("the window is gone"),
}


class RaisesOddly(MoveToBeacon):
    """Raises, at its first action, the error that the option of its reset names."""

    def act(self, action: int) -> Any:
        raise ODD_ERRORS[self.options["error"]]()


class Counter(Short):
    """A task that counts its steps in an attribute."""

    def on_start(self) -> None:
        super().on_start()
        self.count = 0

    def act(self, action: int) -> Any:  # type: ignore[override]
        self.count += 1
        return super().act(action)

    def steps(self) -> int:
        return self.count


class Hanging(gymnasium.Env[Any, Any]):
    """A user's env that hangs if it is rendered, if `hang` is called, or if `hanging` is set.

    Args:
        log: the file into which the env writes a line before it hangs; None if it must not hang.
    """

    observation_space = spaces.Discrete(9)
    action_space = spaces.Discrete(1)
    render_mode = "rgb_array"

    def __init__(self, log: Path | None) -> None:
        self.log = log
        self.steps = 0

    def reset(self, **_: Any) -> tuple[int, dict[str, Any]]:
        self.steps = 0
        return 0, {}

    def step(self, _: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        return self.steps, 0.0, False, False, {}

    def hang(self) -> None:
        if self.log is not None:
            with self.log.open("a") as log:
                log.write("called\n")
            time.sleep(60)

    def render(self) -> Any:
        self.hang()
        return np.zeros((1, 1, 3), np.uint8)

    hanging = property(fset=lambda self, _: self.hang())


async def ask_to_fail(game: Game, how: str) -> None:
    """Make a game fail by a request; every kind of game obeys this request."""
    await game.request(harm_request(how))


def game_of_this_worker() -> int:
    # On Windows, a worker's children also include consoles.
    (game,) = (one for one in psutil.Process().children() if "-listen" in one.cmdline())
    return game.pid
