"""Checks the constructor keywords of all env classes, and makes a pool's players from them.

`SubprocSC2VecEnv` documents the keywords. Rules: everything that can be checked without a process
is checked before the first process starts. A keyword that is wrong or has no effect raises a
`ConfigError` with the given value.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from math import ceil
from operator import index
from typing import Any, SupportsIndex, TypedDict

import gymnasium

from sc2pool.config import PoolConfig
from sc2pool.errors import ConfigError
from sc2pool.game.program.builds import settled_on
from sc2pool.game.program.installation import find_installation, find_map
from sc2pool.game.program.lease import MOST_GAMES
from sc2pool.players.factory import TaskPlayerSpec
from sc2pool.players.gym_player import EnvFn, GymSpec
from sc2pool.players.task_spec import TaskSpec
from sc2pool.pool.instances.system import REAL
from sc2pool.pool.pool import Pool
from sc2pool.pool.serial import serial_system, without_deadlines
from sc2pool.pool.vec_pool import VecPool
from sc2pool.processes.tree import usable_cores
from sc2pool.protocol.compiled import STEP_PATH, warn_if_hidden
from sc2pool.tasks.opponents.policies import BotOpponent
from sc2pool.tasks.opponents.resolve import resolve as resolve_opponent
from sc2pool.tasks.player import PlayerSpec
from sc2pool.tasks.registry import DEFAULT_TASK, resolve_task
from sc2pool.tasks.task import TaskDefinition

GameChoice = str | os.PathLike[str]
"""The keyword `game`: "auto", "real", "standin" or the path of an installation."""
TaskChoice = str | type[TaskDefinition]
"""The keyword `task`: a built-in task's name, `module:Class`, or a class."""
EnvFns = Sequence[EnvFn] | TaskChoice | int | None
"""The first argument of an env class: functions that make envs, a task, or a number of games."""


class GameKeywords(TypedDict, total=False):
    """The keywords of all env classes; `SubprocSC2VecEnv` documents them."""

    game: GameChoice
    render_mode: str | None
    config: PoolConfig | None
    realtime: bool
    step_mul: int | None
    max_loops: int | None
    opponent: Any
    serial: bool


class PoolKeywords(GameKeywords, total=False):
    """The keywords of the env classes that have several envs."""

    n: int | None
    num_envs: int | None
    task: TaskChoice | None
    seed: int | None
    spares: int


DEFAULT_N = 8
MOST_ENVS_PER_WORKER = 8
"""The default limit of envs per worker, because all envs of a worker end if it dies."""


@dataclass(frozen=True)
class Players:
    """The checked keywords of an env class; `make_pool` makes its pool from them.

    Attributes:
        specs: A player for each env.
        config: The limits and policies of the pool.
        seed: The seed of the first reset, or None.
        spares: How many additional games the pool keeps ready.
        serial: True if the players run in this process.
    """

    specs: Sequence[PlayerSpec]
    config: PoolConfig
    seed: int | None = None
    spares: int = 0
    serial: bool = False

    @property
    def task(self) -> TaskSpec | None:
        """The task that all envs play; None for envs of the user."""
        first = self.specs[0]
        return first.task if isinstance(first, TaskPlayerSpec) else None

    @property
    def task_name(self) -> str | None:
        """The task's name; None for envs of the user."""
        return None if self.task is None else self.task.task.__name__

    @property
    def is_task(self) -> bool:
        """True if the envs play a task on games; False if they are the user's own envs."""
        return self.task is not None

    @property
    def realtime(self) -> bool:
        """True if the games run by themselves."""
        return self.task is not None and self.task.realtime

    @property
    def step_mul(self) -> int | None:
        """Game loops per env step; None for envs of the user."""
        return None if self.task is None else self.task.loops_per_step

    def require_one_row(self, adapter: str) -> None:
        """Check that each game has one learner, and so one row.

        Args:
            adapter: The name of the env class, for the message.

        Raises:
            ConfigError: the task has several learning players or agents.
        """
        if self.task is not None and self.task.rows > 1:
            is_match = self.task.task.players > 1
            raise ConfigError(
                f"{adapter} has one learner in each game, but {self.task_name} has "
                f"{self.task.rows}: "
                "SubprocSC2VecEnv and SC2VectorEnv have a row for each of them, SC2ParallelEnv an "
                f"agent{'; with opponent= a match has one learner' if is_match else ''}"
            )

    def make_pool(self, **keywords: Any) -> Pool:
        """The pool of these players; `keywords` are further arguments of `Pool`.

        Raises: see `Pool`.
        """
        return Pool(
            self.specs,
            one_book=self.is_task,
            config=without_deadlines(self.config) if self.serial else self.config,
            spares=self.spares,
            task=self.task_name,
            settled=None if self.task is None else asdict(self.task.settled),
            system=serial_system() if self.serial else REAL,
            **keywords,
        )

    def describe(self, adapter: object, pool: VecPool) -> str:
        """The `repr` of an adapter with this pool."""
        what = f"env_fns, n={len(self.specs)}"
        if self.task is not None:
            what = (
                f"task={self.task.task.__name__}, n={len(self.specs)}, spares={self.spares}, "
                f"realtime={self.realtime}, game_version={pool.game_version!r}"
            )
        return f"{type(adapter).__name__}({what}, closed={pool.closed})"

    def frame(self, adapter: Any) -> Any:
        """The result of `render` for an adapter with one game; warns if its render mode is None."""
        if adapter.render_mode is None:
            gymnasium.logger.warn(
                "render() was called, but the env has no render_mode: "
                f"{type(adapter).__name__}(render_mode='rgb_array') draws frames"
            )
            return None
        return None if adapter.render_mode == "human" else adapter.pool.render([0])[0]


def make_players(
    env_fns: EnvFns = None,
    *,
    n: int | None = None,
    num_envs: int | None = None,
    task: TaskChoice | None = None,
    game: GameChoice = "auto",
    seed: int | None = None,
    spares: int = 0,
    render_mode: str | None = None,
    config: PoolConfig | None = None,
    realtime: bool = False,
    step_mul: int | None = None,
    max_loops: int | None = None,
    opponent: Any = None,
    serial: bool = False,
    max_episode_steps: int | None = None,
) -> Players:
    """Make a player for each env, from the functions or from the task.

    Args: see `SubprocSC2VecEnv`, and `SC2VectorEnv` for `max_episode_steps`.

    Raises:
        ConfigError: a keyword is wrong, given twice, or without effect on envs of the user.
    """
    config = PoolConfig() if config is None else config
    if not isinstance(config, PoolConfig):
        raise ConfigError(f"config must be a PoolConfig, got {config!r}")
    if not isinstance(serial, bool):
        raise ConfigError(f"serial must be True or False, got {serial!r}")
    if serial and render_mode == "human":
        raise ConfigError("render_mode='human' needs workers, and a serial pool has none")
    env_fns, n, task = sort_first_argument(env_fns, n, task)
    if seed is not None:
        seed = whole_number("seed", seed, 0)
    spares = whole_number("spares", spares, 0)
    warn_if_hidden()
    if env_fns is None:
        spec = task_spec(
            DEFAULT_TASK if task is None else task,
            game,
            config,
            render_mode,
            realtime,
            step_mul=step_mul,
            max_loops=max_loops,
            max_episode_steps=max_episode_steps,
            opponent=opponent,
        )
        n = number_of_games(n, num_envs, spec.rows) or DEFAULT_N
        if n > MOST_GAMES:
            raise ConfigError(
                f"n must be at most {MOST_GAMES}, since each game has a port, got {n}"
            )
        if config.envs_per_worker is None and not serial:
            config = replace(config, envs_per_worker=good_envs_per_worker(spec, n, usable_cores()))
        return Players([TaskPlayerSpec(spec)] * n, config, seed, spares, serial)
    for name, value, default in (
        ("envs_per_worker", config.envs_per_worker, None),
        ("game", game, "auto"),
        ("spares", spares, 0),
        ("render_mode", render_mode, None),
        ("realtime", realtime, False),
        ("step_mul", step_mul, None),
        ("max_loops", max_loops, None),
        ("max_episode_steps", max_episode_steps, None),
        ("opponent", opponent, None),
    ):
        if value != default:
            raise ConfigError(
                f"{name} is for tasks and has no effect on the envs that env_fns make; "
                f"got {name}={value!r}"
            )
    specs = gym_specs(env_fns, number_of_games(n, num_envs, 1))
    return Players(specs, config, seed, serial=serial)


def good_envs_per_worker(spec: TaskSpec, n: int, n_cores: int) -> int:
    """How many envs of a task should share a worker.

    More workers than cores only cost time; docs/throughput.md has the measurements. A worker steps
    both games of a match at the same time, so matches share a worker as single games do. Three
    kinds of envs do not share a worker:
    * Envs on the Python step path: a step keeps the worker busy, so envs would wait for each other.
    * Games in real time, because the worker keeps their clock.
    * Games against a python-sc2 bot: the bot may keep state in its class or module, which other
      bots in the same process would share.
    """
    plays_alone = isinstance(spec.opponent, BotOpponent)
    shares = not plays_alone and not spec.realtime and STEP_PATH == "compiled"
    return min(ceil(n / n_cores), MOST_ENVS_PER_WORKER) if shares else 1


def check_keywords(adapter: str, keywords: Mapping[str, Any], allowed: type[GameKeywords]) -> None:
    """Check that an env class has all these keywords, because Python does not check `**keywords`.

    Raises:
        TypeError: a keyword is unknown.
    """
    for name in keywords:
        if name not in allowed.__optional_keys__:  # type: ignore[attr-defined]
            raise TypeError(f"{adapter}() got an unexpected keyword argument {name!r}")


def number_of_games(n: int | None, num_envs: int | None, rows: int) -> int | None:
    """The number of games, from `n` or from `num_envs`; None if neither is given.

    Each game has `rows` rows, and all games together have `num_envs` rows. `ConfigError` if `n` or
    `num_envs` is wrong, or if the two contradict each other.
    """
    if n is not None:
        n = whole_number("n", n, 1)
    if num_envs is None:
        return n
    num_envs = whole_number("num_envs", num_envs, 1)
    if num_envs % rows:
        raise ConfigError(f"each game has {rows} envs, so num_envs={num_envs} is not possible")
    if n not in (None, num_envs // rows):
        raise ConfigError(f"n={n} games have {n * rows} envs, got num_envs={num_envs}")
    return num_envs // rows


def sort_first_argument(
    first: EnvFns, n: int | None, task: TaskChoice | None
) -> tuple[Sequence[EnvFn] | None, int | None, TaskChoice | None]:
    """Return the functions, the number of envs and the task; `first` may be any of the three."""
    if first is None:
        return None, n, task
    if isinstance(first, int) and not isinstance(first, bool):
        if n is not None:
            raise ConfigError(f"n is given twice: {first} and n={n!r}")
        return None, first, task
    if task is not None:
        raise ConfigError(f"give either env_fns or task, got {first!r} and task={task!r}")
    if isinstance(first, str) or (isinstance(first, type) and issubclass(first, TaskDefinition)):
        return None, n, first
    if callable(first):
        raise ConfigError(f"env_fns must be a list of functions; for {first!r} write [it] * n")
    if not isinstance(first, Iterable):
        raise ConfigError(
            f"the first argument must be a list of functions that make envs, a task's name or "
            f"class, or a number of envs, got {first!r}"
        )
    return list(first), n, None


def games_of_one_row(
    first: EnvFns, n: int | None, num_envs: int | None, task: TaskChoice | None
) -> tuple[Sequence[EnvFn] | None, int, TaskChoice | None]:
    """Return the functions, the number of games and the task, for a class with a row for each game.

    Args:
        first: The first argument of the class.
        n: The number of games.
        num_envs: The number of games, under gymnasium's name.
        task: The task's name or class.

    Raises:
        ConfigError: an argument is wrong, or two arguments contradict each other.
    """
    fns, n, task = sort_first_argument(first, n, task)
    n = number_of_games(n, num_envs, 1)
    return fns, n or DEFAULT_N if fns is None else len(gym_specs(fns, n)), task


def task_spec(
    task: TaskChoice,
    game: GameChoice,
    config: PoolConfig,
    render_mode: str | None = None,
    realtime: bool = False,
    *,
    step_mul: int | None = None,
    max_loops: int | None = None,
    max_episode_steps: int | None = None,
    opponent: Any = None,
) -> TaskSpec:
    """A task on the games of an installation, checked before any process starts.

    `SubprocSC2VecEnv` documents the arguments, except `max_episode_steps`: an episode's time limit
    in env steps, or None for no limit. `ConfigError` for an unknown task or render mode, a wrong
    number of loops, a missing installation or map, or an opponent that cannot play the task.
    """
    definition = resolve_task(task)
    if not isinstance(realtime, bool):
        raise ConfigError(f"realtime must be True or False, got {realtime!r}")
    if render_mode is None:
        render_mode = definition.render_mode
    modes = list(dict.fromkeys(["human", *definition.metadata.get("render_modes", ())]))
    if render_mode is not None and render_mode not in modes:
        raise ConfigError(f"render_mode must be None or one of {modes}, got {render_mode!r}")
    installation = find_installation(game)
    return TaskSpec(
        definition,
        installation,
        find_map(installation, definition.map_name),
        config.limits,
        render_mode,
        config.replays,
        realtime,
        step_mul=step_mul,
        max_loops=max_loops,
        max_episode_steps=max_episode_steps,
        opponent=resolve_opponent(opponent, definition),
        settled=settled_on(installation),
    )


def gym_specs(env_fns: Sequence[EnvFn], n: int | None = None) -> list[GymSpec]:
    """A gym player for each function. If `n` is None, any number of functions is allowed.

    `ConfigError` if the list is empty, its length is not `n`, or an element is not callable.
    """
    if not env_fns:
        raise ConfigError("env_fns is empty; expected at least one function that makes an env")
    for env, env_fn in enumerate(env_fns):
        if not callable(env_fn):
            raise ConfigError(
                f"env_fns[{env}] must be a function that makes an env, got {env_fn!r}"
            )
    if n not in (None, len(env_fns)):
        raise ConfigError(
            f"n={n}, but env_fns has {len(env_fns)} functions, and each makes one env; leave n out"
        )
    return [GymSpec(env_fn, index) for index, env_fn in enumerate(env_fns)]


def check_start_method(name: str, value: str | None) -> None:
    """Check that a start method has this name, else raise `ConfigError`; the name has no effect."""
    if not isinstance(value, str | None):
        raise ConfigError(
            f"{name} must be None or a start method's name, got {value!r}; for a number of envs "
            f"write n={value!r}"
        )
    try:
        multiprocessing.get_context(value)
    except ValueError as error:
        raise ConfigError(f"{name}: {error}; for a task write task={value!r}") from None


def whole_number(name: str, value: object, least: int) -> int:
    """The value as an int.

    Raises:
        ConfigError: the value is not a whole number, or less than `least`.
    """
    number: int | None = None
    if isinstance(value, SupportsIndex) and not isinstance(value, bool):
        with suppress(TypeError):  # `index` refuses an array of several numbers
            number = index(value)
    if number is None or number < least:
        raise ConfigError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return number
