"""The options of a training run, checked before anything slow starts.

Rules: this module uses neither torch nor SB3 nor a running game, so a bad argument is reported
within a second. Nothing is written. If the user does not give an option, its value is taken from
the resumed run's description (see `run_folder`), else from the hyperparameters, else from the
defaults.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from sc2pool.cli.arguments import check_writable, find_game, folder_of_task, task_class, task_of
from sc2pool.cli.training.algorithms import (
    ALGORITHMS,
    EVALUATIONS,
    GAMES,
    LEAST_BETWEEN,
    MODES,
    PARTS,
    Hyperparameters,
    check_algorithm,
    choose_self_play,
    read_hyperparameters,
)
from sc2pool.cli.training.run_folder import (
    CONFIG_FILE,
    Description,
    describe,
    find_model,
    holds_run,
    read_steps,
    unused,
)
from sc2pool.errors import ConfigError
from sc2pool.integration import DEFAULT_TASK
from sc2pool.utilities import how_to_install, printable, require, shown, why_not_ours

if TYPE_CHECKING:
    from sc2pool.integration import TaskDefinition

_NEEDED = {
    "matplotlib": "matplotlib",
    "stable_baselines3": "stable-baselines3",
    "tensorboard": "tensorboard",
    "yaml": "pyyaml",
}
"""The packages of sc2pool's extra `train`, by the modules that they provide."""
_BOUNDS = {"seed": (0, 2**32 - 1), "spares": (0, None), "metrics_port": (1, 65535)}
"""The bounds of some options; all other options that are numbers must be at least 1."""
_AS_GIVEN = ("seed", "realtime", "spares", "device", "video", "wandb", "metrics_port")
"""Options whose default values do not depend on other options."""


@dataclass(frozen=True)
class TrainOptions:
    """The options of a training run, checked."""

    out: Path
    """The run's folder, which may not exist yet."""
    steps: int
    """The env steps of the whole run, including the steps before a resume."""
    hyperparameters: Hyperparameters
    task: str = DEFAULT_TASK
    task_folder: str = ""
    """The folder of the module of a user's task; empty for a built-in task."""
    algo: str = "ppo"
    """The algorithm's name, a key of `ALGORITHMS`."""
    n: int = 8
    seed: int | None = None
    game: str = "auto"
    """The game as given: auto, real, standin, or an installation's folder."""
    installation: Path | None = None
    """The folder of the installation that `game` selects; None on a cluster."""
    realtime: bool = False
    spares: int = 0
    device: str = "cpu"
    eval_every: int | None = None
    """Env steps between two evaluations; if None, only `video` causes an evaluation, at the end."""
    eval_episodes: int = 10
    video: bool = False
    self_play: str = ""
    """The mode of self-play, one of `MODES`; empty for a task of one player."""
    snapshot_every: int | None = None
    """Env steps between two snapshots; None without self-play."""
    watch: bool = False
    """Whether to show the games; a resumed run does not keep this option."""
    wandb: bool = False
    metrics_port: int | None = None
    """See `PoolConfig`."""
    ray: str | None = None
    """The Ray cluster that plays this part of the run; None to play on this machine."""
    resume: Path | None = None
    steps_done: int = 0
    """The env steps for which the model of `resume` has been trained."""

    @classmethod
    def from_args(cls, args: argparse.Namespace) -> TrainOptions:
        """Check the command line's arguments and choose values for those that are missing.

        Raises a `ConfigError` that names the wrong argument and the expected value, or a
        `MissingPackageError` if an option needs a package that is not installed.
        """
        model = None if args.resume is None else find_model(args.resume)
        run = Description({}, {}, "") if model is None else describe(args.resume)
        resumed, recorded = run.options, run.content.get("options", {})

        def choose(name: str, default: Any) -> Any:
            value = getattr(args, name)
            if value is not None:
                return value
            if name in resumed:
                check_recorded(name, resumed[name], args.resume)
            return resumed.get(name, default)

        args.task = task_of(args)
        for name in ("task", "algo"):
            value = getattr(args, name)
            if value is not None and value != recorded.get(name, value):
                raise ConfigError(
                    f"--{name} {value}: {args.resume} is a run of {name} {shown(recorded[name])}"
                )
        if args.task is None and run.why_no_task:
            raise ConfigError(f"--resume {args.resume}: {run.why_no_task}; give --task")
        task = choose("task", cls.task)
        algo = choose("algo", cls.algo)
        if algo not in tuple(ALGORITHMS):
            raise ConfigError(
                f"{args.resume} is a run of algo {shown(algo)}, which is none of sc2pool's"
            )
        named = args.task is not None
        definition = task_class(task, named=named, folder=None if named else run.task_folder)
        check_algorithm(algo, definition)
        self_play = choose_self_play(args.self_play, choose("self_play", None), definition)
        evaluates = args.eval_every or args.video or resumed.get("eval_every") or self_play
        if args.eval_episodes is not None and not evaluates:
            raise ConfigError(
                "--eval-episodes is for evaluations: give --eval-every or --video, too"
            )
        if args.snapshot_every is not None and not self_play:
            raise ConfigError("--snapshot-every is for tasks of two players")
        hyperparameters = choose_hyperparameters(algo, task, args, run.content)
        steps = choose("steps", hyperparameters.n_timesteps)
        game = args.game or run.say_game() or cls.game
        options = cls(
            out=choose_out(args.out, model, task),
            steps=steps,
            hyperparameters=hyperparameters,
            task=task,
            task_folder=folder_of_task(task),
            algo=algo,
            n=choose("n", hyperparameters.n_envs),
            game=game,
            # On a cluster each node finds its own installation.
            installation=None if args.ray else find_game(game, definition),
            eval_every=choose(
                "eval_every",
                max(ceil(steps / EVALUATIONS), LEAST_BETWEEN) if self_play else None,
            ),
            eval_episodes=choose("eval_episodes", GAMES if self_play else cls.eval_episodes),
            self_play=self_play,
            snapshot_every=choose("snapshot_every", ceil(steps / PARTS) if self_play else None),
            watch=args.watch,
            ray=args.ray,
            resume=model,
            **{name: choose(name, getattr(cls, name)) for name in _AS_GIVEN},
        ).with_steps_done()
        options.check_cluster()
        options.check_packages()
        if model is not None:
            check_model(model, definition)
        return options

    def with_steps_done(self) -> TrainOptions:
        """These options, with `steps_done` read from the resumed model's file.

        Raises `ConfigError` if the model cannot be resumed, or has been trained for all `steps`
        already.
        """
        if self.resume is None:
            return self
        done = read_steps(self.resume, self.algo)
        if self.steps <= done:
            raise ConfigError(f"{self.resume} has {done} steps already: give more as --steps")
        return replace(self, steps_done=done)

    def check_packages(self) -> None:
        """Raise `MissingPackageError` if a package that an option needs is not installed."""
        if self.metrics_port is not None:
            require("--metrics-port", "prometheus_client")
        if self.video:
            require("--video", "imageio_ffmpeg")
        if self.wandb:
            require("--wandb", "wandb")
        if self.ray is not None:
            require("--ray", "ray")

    def check_cluster(self) -> None:
        """Raise `ConfigError` if `ray` is given with an option that a cluster does not support."""
        if self.ray is None:
            return
        for name, value, instead in (
            ("--watch", self.watch, f"`sc2pool watch --ray {self.ray}` shows those of a cluster"),
            ("--metrics-port", self.metrics_port is not None, "Ray has metrics of its own"),
            ("--self-play", self.self_play, "train tasks of two players here"),
            ("--realtime", self.realtime, "for a cluster see docs/real-time.md, RLlib"),
            (f"--algo {self.algo}", ALGORITHMS[self.algo].plays_on, "choose another algorithm"),
        ):
            if value:
                raise ConfigError(f"{name} is for games on this machine, not --ray: {instead}")


def check_model(model: Path, task: type[TaskDefinition]) -> None:
    """Raise `ConfigError` if a resumed model has other spaces than the task.

    Print a warning if the model was trained on normalised observations.
    """
    # These modules import numpy, so a run that is not resumed does not import them.
    from sc2pool.cli.chosen_player import say_if_normalized  # noqa: PLC0415
    from sc2pool.integration import SavedModel, row_space  # noqa: PLC0415

    saved = SavedModel(model.stem, model)
    try:
        saved.check_spaces(row_space(task), task.action_space)
    except ConfigError as error:
        raise ConfigError(f"--resume: {error}") from error
    say_if_normalized(model)


def check_recorded(name: str, value: Any, run: Path) -> None:
    """Raise `ConfigError` if a run's description has an impossible value for an option."""
    kind = get_type_hints(TrainOptions)[name]
    where = f"{run}: {name} in its {CONFIG_FILE}"
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        expected = TrainOptions.__annotations__[name]
        raise ConfigError(f"{where} must be of type {expected}, got {shown(value)}")
    low, high = _BOUNDS.get(name, (1, None))
    if type(value) is int and not (value >= low and (high is None or value <= high)):
        bounds = f"of at least {low}" if high is None else f"from {low} to {high}"
        raise ConfigError(f"{where} must be {bounds}, got {shown(value)}")
    if name == "self_play" and value not in ("", *MODES):
        raise ConfigError(f"{where} must be one of {', '.join(MODES)}, got {shown(value)}")


def check_extras() -> None:
    """Raise `ConfigError` if a package that only training needs is not installed."""
    missing = [
        package for module, package in _NEEDED.items() if not importlib.util.find_spec(module)
    ]
    if missing:
        raise ConfigError(
            f"training needs {', '.join(missing)}: {how_to_install('train')}, or ./scripts/train"
        )


def choose_hyperparameters(
    algo: str, task: str, args: argparse.Namespace, earlier: Mapping[str, Any]
) -> Hyperparameters:
    """The hyperparameters of the given file, else of the resumed run, else of the bundled file."""
    if earlier and args.hyperparameters is not None:
        raise ConfigError(
            f"--hyperparameters {args.hyperparameters}: {args.resume} keeps the hyperparameters "
            f"with which it was begun"
        )
    if "hyperparameters" in earlier:
        where = f"{args.resume}: hyperparameters in its {CONFIG_FILE}"
        try:
            recorded = asdict(Hyperparameters(**earlier["hyperparameters"]))
            section = recorded.pop("arguments") | {
                name: value for name, value in recorded.items() if value is not None
            }
        except TypeError as error:
            raise ConfigError(f"{where}: of another version ({printable(str(error))})") from error
        return Hyperparameters.of(section, where)
    return read_hyperparameters(algo, task, args.hyperparameters)


def choose_out(chosen: Path | None, model: Path | None, task: str) -> Path:
    """The run's folder: the given folder, else the resumed run's, else a new folder in `runs`."""
    if model is not None and (chosen is None or chosen.resolve() == model.parent.resolve()):
        out = model.parent
        why = why_not_ours(out.stat())
        if chosen is None and why:
            raise ConfigError(f"--resume: {out} is not for you alone ({why}); give --out")
    elif chosen is not None:
        out = chosen
        if holds_run(out):
            raise ConfigError(
                f"--out {out} already holds a run: choose another folder, or --resume {out}"
            )
    else:
        name = task.rpartition(":")[2]
        out = unused(Path("runs") / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}")
    check_writable(out, "--out")
    return out
