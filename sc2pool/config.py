"""Settings of a game, limits of its phases, and the policies of a pool.

The settings are frozen dataclasses, which are pickled to the workers; this file has every default.
Rules: a limit is a duration in seconds (`_s`) or a size in bytes (`_bytes`). A duration becomes a
`Deadline` only when the wait begins. A value of one of the API's enums may be given as a number or
as a member of python-sc2's enum; it is stored as a number.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from enum import Enum
from math import inf
from numbers import Real
from pathlib import Path
from typing import Any

from s2clientprotocol import common_pb2, sc2api_pb2

from sc2pool.errors import ConfigError
from sc2pool.platform import WINDOWS


def is_number(value: object) -> bool:
    """True if the value is a real number and not a bool."""
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_whole(value: Any, least: int = 1) -> bool:
    return is_number(value) and value >= least and value % 1 == 0


_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "float": ("a number above 0", lambda value: is_number(value) and value > 0),
    "int": ("a whole number of at least 1", _is_whole),
    "bool": ("True or False", lambda value: isinstance(value, bool)),
    "str": ("a text", lambda value: isinstance(value, str)),
    "Path": ("a path", lambda value: isinstance(value, str | os.PathLike)),
}
"""For each type of a field: the expected value as a text, and a function that checks a value. A
field of any other type must have an object of one of this module's classes."""
_MAY_BE_ZERO = (
    *("worker_grace_s", "core_file_bytes"),
    *("per_env", "per_pool_per_env", "age_s", "growth_bytes"),
)


_MOST = sys.float_info.max
"""The largest allowed number: durations and sizes are converted to floats."""


class _Checked:
    """A dataclass that checks its values when it is made."""

    def __post_init__(self) -> None:
        for one in fields(self):  # type: ignore[arg-type]
            value, name = getattr(self, one.name), f"{type(self).__name__}({one.name}=…)"
            kind = str(one.type).removesuffix(" | None")
            if value is None and kind != one.type:
                continue
            if kind not in _KINDS:
                if not isinstance(value, globals()[kind]):
                    raise ConfigError(f"{name} must be a {kind}, got {value!r}")
                continue
            expected, is_right = _KINDS[kind]
            if one.name == "metrics_port" and _is_whole(value) and value > 65535:
                raise ConfigError(f"{name} must be at most 65535, got {value!r}")
            if is_number(value) and inf != value > _MOST:
                raise ConfigError(f"{name} must be at most {_MOST:.2g}, got a larger number")
            may_be_zero = one.name in _MAY_BE_ZERO
            if not is_right(value) and not (may_be_zero and is_number(value) and value == 0):
                or_zero = "0 or " * may_be_zero
                raise ConfigError(f"{name} must be {or_zero}{expected}, got {value!r}")


@dataclass(frozen=True)
class Limits(_Checked):
    """How long a phase of an instance (a game and its worker) may take before it is a fault."""

    worker_start_s: float = 90.0
    """From a worker's spawn until it has imported its modules and made its player."""
    launch_s: float = 90.0
    """From a game's spawn until it answers; a pool's first launch may take twice this limit."""
    create_join_s: float = 60.0
    """The time for create_game and join_game; up to three times as long if the game still works."""
    reset_s: float = 60.0
    """The request restart_game, or the first observation after a join."""
    step_s: float = 10.0
    """One env step. A slow game that uses CPU time may once take three times this limit."""
    call_s: float = 300.0
    """A call or attribute access that the user makes with `env_method`, `get_attr` or `render`."""
    worker_grace_s: float = 5.0
    """The worker applies the limits above to its game; the trainer waits this much longer."""
    concurrent_launches: int | None = None
    """How many games may launch at the same time; the two games of a match launch in turn. None
    means two games. After a first launch of less than five seconds, None means one game per core,
    but at least two."""
    core_file_bytes: int = 0
    """The maximum size of a crashing game's core file; a core file of the real game is as large as
    the game's memory."""


def race_number(value: int | Enum) -> int:
    """The `common_pb2.Race` value of a race for a player.

    Args:
        value: A `common_pb2.Race` value, or a member of python-sc2's `Race`.

    Raises:
        ConfigError: the value is not a race, or is `NoRace`.
    """
    return _number(value, "race", common_pb2.Race, without=("NoRace",))


@dataclass(frozen=True, init=False)
class Computer:
    """A built-in computer opponent.

    Args:
        race: A `common_pb2.Race` value, or a member of python-sc2's `Race`.
        difficulty: A `sc2api_pb2.Difficulty` value, or a member of python-sc2's `Difficulty`.
        build: An `sc2api_pb2.AIBuild` value, or a member of python-sc2's `AIBuild`.

    Raises:
        ConfigError: an argument is of another kind.
    """

    race: int
    difficulty: int
    build: int

    def __init__(
        self,
        race: int | Enum = common_pb2.Random,
        difficulty: int | Enum = sc2api_pb2.Easy,
        build: int | Enum = sc2api_pb2.RandomBuild,
    ) -> None:
        difficulty_number = _number(difficulty, "difficulty", sc2api_pb2.Difficulty)
        object.__setattr__(self, "race", race_number(race))
        object.__setattr__(self, "difficulty", difficulty_number)
        object.__setattr__(self, "build", _number(build, "build", sc2api_pb2.AIBuild))


def _number(value: object, name: str, kind: Any, without: tuple[str, ...] = ()) -> int:
    """The number of an enum's member; python-sc2's members have the API's names and numbers."""
    numbers: dict[str, int] = {key: number for key, number in kind.items() if key not in without}
    if isinstance(value, Enum):
        number = numbers.get(value.name)
        if number is not None and number == value.value:
            return number
    elif type(value) is int and value in numbers.values():
        return value
    expected = ", ".join(f"{key} ({number})" for key, number in numbers.items())
    raise ConfigError(f"{name} must be one of {expected}; got {value!r}")


@dataclass(frozen=True)
class GameSetup:
    """The arguments of `create_game` and `join_game`, except the seed."""

    map_name: str
    """A map's file name without suffix (`"MoveToBeacon"`), or a path to a `.SC2Map` file."""
    race: int = common_pb2.Terran
    """The learner's race, a `common_pb2.Race` value; in a match, both players have this race."""
    opponents: tuple[Computer, ...] = ()
    participants: int = 1
    """How many players use the API; with two, each player has its own game process."""
    disable_fog: bool = False
    realtime: bool = False
    restart: str = "auto"
    """"never" creates a game for each episode. "auto" restarts the running game if it is proven
    that a restart restores everything in the game."""


@dataclass(frozen=True)
class RestartPolicy(_Checked):
    """How many failures are accepted (the *intensity*) before the pool raises `CrashLoopError`."""

    per_env: int = 5
    per_env_window_s: float = 60.0
    per_pool_per_env: int = 4
    """How many failures a pool may have within `per_pool_window_s`, for each of its envs."""
    per_pool_window_s: float = 600.0


@dataclass(frozen=True)
class RecyclePolicy(_Checked):
    """When an instance that still works is replaced; None for never.

    A soft limit takes effect at the episode's end, and changes no transition. To exceed the hard
    limit is a fault. The memory limits are for a game and its worker together; for a match they are
    doubled. A worker that several envs share is measured alone, with the same limits.
    """

    soft_memory_bytes: int | None = None if WINDOWS else 2_000_000_000
    """Soft limit of the memory. The default is None on Windows, where a new game may take 2.5 GB;
    there, `growth_bytes` limits the memory."""
    hard_memory_bytes: int | None = 8_000_000_000 if WINDOWS else 4_000_000_000
    growth_bytes: int | None = 1_000_000_000
    """Soft limit: how much the memory may grow after the first measurement."""
    slowdown: float | None = 2.0
    """Soft limit of a game loop's CPU time, as a multiple of its CPU time in the first episodes."""
    age_s: float | None = None
    episodes: int | None = None


@dataclass(frozen=True)
class ReplayPolicy(_Checked):
    """Selects the episodes whose replays are kept; an episode's last info has its replay's path."""

    dir: Path
    """The folder for replays; it is created. A pool deletes only files that it wrote itself."""
    every: int | None = None
    """Keep episodes whose number (from 0) is a multiple of this; if None, keep none by number."""
    best: bool = True
    """Keep each episode that has a higher return than all earlier episodes."""
    faulty: bool = True
    """Keep episodes in which the user's code failed but the game still answered."""
    keep: int = 20
    """How many files are kept for each reason (number, return, fault); older files are deleted. An
    episode selected by both its number and its return counts as selected by its return."""


@dataclass(frozen=True)
class PoolConfig(_Checked):
    """How the pool treats its instances."""

    limits: Limits = field(default_factory=Limits)
    restart: RestartPolicy = field(default_factory=RestartPolicy)
    recycle: RecyclePolicy = field(default_factory=RecyclePolicy)
    envs_per_worker: int | None = None
    """How many envs (and spares) of a task share one worker process. Envs that share a worker take
    less memory and CPU time, and start sooner. A fault, reset or pause of one game does not affect
    the others. But if the worker dies, or a hook of the task does not return, all envs of the
    worker have this fault. While one env's hook computes, the worker's other envs wait.

    None means the number of envs divided by the number of cores, rounded up, but at most 8. On the
    Python step path, in real time, and against a bot of python-sc2, None means 1."""
    watchdog_interval_s: float = 1.0
    """Time between two checks of all processes by the watchdog."""
    fault_report_dir: Path | None = None
    """The folder for fault reports; None for a folder in the user's cache."""
    metrics_port: int | None = None
    """Serve the pool's counters to Prometheus at http://HOST:PORT/metrics; None for no server."""
    metrics_host: str = "127.0.0.1"
    """The address on which the metrics are served; "" for all addresses of the machine. At the
    loopback address, a request whose Host header names another host is refused."""
    replays: ReplayPolicy | None = None
    """Which replays are kept; None keeps no replays. Only episodes of tasks have replays."""
