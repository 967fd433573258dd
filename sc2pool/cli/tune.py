"""`sc2pool tune`: searches for hyperparameters by trials on one pool, which stays open.

    The file study.db has every trial, in Optuna's format; a later call continues the search.
    The file best.yml has the best trial's hyperparameters, for `train --hyperparameters`.

Rules: all trials use the same game processes. Every trial has the same seeds, so only the
hyperparameters differ. A finished trial is judged by the mean return of its policy's best actions.
A trial may be ended early (pruned) if its mean returns during the training are low. The searched
ranges lie widely around the bundled values, and suit short trainings. A suggestion has the form of
a section in a file of hyperparameters, so it can be written to a file.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import optuna
import torch
import yaml
from sqlalchemy.exc import SQLAlchemyError
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecMonitor

from sc2pool import SubprocSC2VecEnv
from sc2pool.cli.arguments import check_writable, find_game, task_class, task_of
from sc2pool.cli.play import play_episodes
from sc2pool.cli.stop import Stop, say
from sc2pool.cli.table import duration, game_name
from sc2pool.cli.training.algorithms import (
    ALGORITHMS,
    Hyperparameters,
    check_algorithm,
    read_hyperparameters,
)
from sc2pool.cli.training.model import ScaledRewards, arguments_for, check_device, policy_for
from sc2pool.cli.training.run_folder import reserved
from sc2pool.errors import ActionError, ConfigError, SC2PoolError
from sc2pool.integration import DEFAULT_TASK
from sc2pool.utilities import called, printable, quoted, remove_unfinished, replacing, shown

if TYPE_CHECKING:
    from optuna.trial import BaseTrial

REPORTS = 5
"""How often a trial reports its mean return; at each report, the trial may be pruned."""
STARTUP_TRIALS = 5
"""How many trials at the beginning of a search are never pruned."""
_WINDOW = 100
"""A mean return during the training is taken over at most this many latest episodes."""
_ASKED = ("task", "algo", "steps", "n", "seed", "eval_episodes")
"""Arguments that must be the same if a search is continued."""
_STUDY = "sc2pool"
_INTERRUPTED = "interrupted"
"""Marks a trial that Ctrl-C or a failure of the games ended; such a trial does not count."""


def run(args: argparse.Namespace) -> int:
    args.task = name = task_of(args) or DEFAULT_TASK
    task = task_class(name)
    algo = args.algo
    check_algorithm(algo, task)
    if algo not in SPACES:
        raise ConfigError(f"--algo {algo}: tune knows {', '.join(SPACES)}")
    game = find_game(args.game, task)
    out = args.out or Path("runs") / f"tune-{task.__name__}-{algo}"
    check_writable(out, "--out")
    check_device(args.device)
    bundled = read_hyperparameters(algo, name)
    torch.set_num_threads(1)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    asked = {key: getattr(args, key) for key in _ASKED}
    stop = Stop()
    with stop.handling(), reserved(out), usable(out):
        remove_unfinished(out)
        study = open_study(out, asked)
        games = SubprocSC2VecEnv(n=args.n, task=task, game=game)
        with closing(games) as env, stop.polite():
            say(
                f"{task.__name__}, {algo}, {args.trials} trials of {args.steps:,} steps\n"
                f"game    {game_name(env.stats().game_version)}\n"
                f"out     {out}"
            )
            search = _Search(env, study, bundled, args, stop, out)
            search.write_best()  # a killed search may not have written its best trial
            began_s = time.monotonic()
            while search.done() < args.trials and stop.signal is None:
                search.trial()
    say(f"{search.done()} trials, {duration(time.monotonic() - began_s)}")
    if search.best is not None:
        file = quoted(out / "best.yml")
        say(f"best: {called('sc2pool')} train --task {name} --algo {algo} --hyperparameters {file}")
    return stop.exit_code


@contextmanager
def usable(out: Path) -> Iterator[None]:
    """Raise `ConfigError` if the search's database cannot be used, for example on a full disk."""
    try:
        yield
    except (SQLAlchemyError, optuna.exceptions.StorageInternalError) as error:
        cause = error.__cause__ or error  # Optuna's own message lacks the reason
        reason = printable(str(cause).partition("\n")[0])
        raise ConfigError(f"--out {out}: its study.db cannot be used ({reason})") from error


def open_study(out: Path, asked: Mapping[str, Any]) -> optuna.Study:
    """Open the study in a folder, or make a new study; `asked` has the task and other settings.

    Raises `ConfigError` if the folder has a study with other settings.
    """
    study = optuna.create_study(
        storage=f"sqlite:///{(out / 'study.db').absolute()}",
        study_name=_STUDY,
        load_if_exists=True,
        direction="maximize",
        pruner=optuna.pruners.MedianPruner(n_startup_trials=STARTUP_TRIALS),
    )
    # With the same seed, a continued search would begin with the same suggestions again.
    study.sampler = optuna.samplers.TPESampler(seed=asked["seed"] + len(study.trials))
    before = study.user_attrs.get("asked", asked)
    if before != asked and study.trials:
        raise ConfigError(f"--out {out} holds another search ({shown(before)})")
    study.set_user_attr("asked", asked)
    return study


@dataclass
class _Search:
    """The trials of one study on one pool."""

    env: SubprocSC2VecEnv
    study: optuna.Study
    bundled: Hyperparameters
    args: argparse.Namespace
    stop: Stop
    out: Path

    def __post_init__(self) -> None:
        self.learned_from = ScaledRewards(VecMonitor(self.env), self.bundled.reward_scale)

    def done(self) -> int:
        """The number of finished trials, including those of earlier parts of the search."""
        trials = self.study.get_trials(deepcopy=False)
        return sum(one.state.is_finished() and _INTERRUPTED not in one.user_attrs for one in trials)

    @property
    def best(self) -> optuna.trial.FrozenTrial | None:
        """The best trial; None before the first complete trial."""
        with suppress(ValueError):  # Optuna raises this error if no trial is complete
            return self.study.best_trial
        return None

    def trial(self) -> None:
        """Train and judge one set of hyperparameters."""
        trial = self.study.ask()
        section = self._suggest(trial)
        try:
            value = self._train(trial, section)
        except optuna.TrialPruned as pruned:
            self.study.tell(trial, state=optuna.trial.TrialState.PRUNED)
            self._say(trial, str(pruned), section)
            return
        except (ValueError, AssertionError, RuntimeError) as error:
            if isinstance(error, SC2PoolError) and not isinstance(error, ActionError):
                self._uncounted(trial)  # an error of the games, not of the hyperparameters
                raise
            # SB3 refuses the combination, or the training has diverged to NaN.
            self.study.tell(trial, state=optuna.trial.TrialState.FAIL)
            reason = str(error).partition("\n")[0] or type(error).__name__
            self._say(trial, f"failed: {reason}", section)
            return
        if value is None:
            self._uncounted(trial)
            return
        self.study.tell(trial, value)
        best = self.best
        is_best = best is not None and best.number == trial.number
        self.write_best()
        self._say(trial, f"mean return {value:.2f}{', the best so far' * is_best}", section)

    def _suggest(self, trial: BaseTrial) -> dict[str, Any]:
        args = self.args
        return suggest(trial, args.algo, n_rows=self.env.num_envs, steps=args.steps)

    def _uncounted(self, trial: optuna.Trial) -> None:
        trial.set_user_attr(_INTERRUPTED, True)
        self.study.tell(trial, state=optuna.trial.TrialState.FAIL)

    def _train(self, trial: optuna.Trial, section: dict[str, Any]) -> float | None:
        args, algorithm = self.args, ALGORITHMS[self.args.algo]
        hyperparameters = Hyperparameters.of(section, "the search")
        policy = self.bundled.policy or policy_for(self.env.observation_space, algorithm)
        model = algorithm.load_class()(
            policy,
            self.learned_from,
            seed=args.seed,
            device=args.device,
            **arguments_for(hyperparameters, args.n),
        )
        model.learn(args.steps, callback=_Prune(trial, args.steps, self.stop))
        if self.stop.signal is not None:
            return None
        self.env.seed(args.seed)
        episodes = play_episodes(
            self.env,
            model,
            args.eval_episodes,
            deterministic=True,
            rows=self.env.pool.rows,
            stop=self.stop,
        )
        # Episodes with a fault are played again, so up to twice as many episodes are played.
        played = list(itertools.islice(episodes, 2 * args.eval_episodes))
        if self.stop.signal is not None:
            return None
        return float(np.mean([one.episode_return for one in played if one.whole]))

    def _say(self, trial: optuna.Trial, came_of_it: str, section: dict[str, Any]) -> None:
        numbers = ", ".join(
            f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}"
            for name, value in section.items()
            if name != "policy_kwargs"
        )
        net = section["policy_kwargs"]["net_arch"]
        say(f"trial {trial.number}: {came_of_it}\n  {numbers}, net {net}")

    def write_best(self) -> None:
        """Write the best trial's hyperparameters for `train`, unless the file has them already.

        All other values come from the bundled file. Raises `ConfigError` if writing fails.
        """
        args, bundled = self.args, self.bundled
        if self.best is None:
            return
        section = self._suggest(optuna.trial.FixedTrial(self.best.params))
        whole = {"n_timesteps": bundled.n_timesteps, "n_envs": args.n, **section}
        if bundled.reward_scale != 1:
            whole["reward_scale"] = bundled.reward_scale
        if bundled.policy is not None:
            whole["policy"] = bundled.policy
        text = yaml.safe_dump({args.task: whole}, sort_keys=False)
        path = self.out / "best.yml"
        try:
            if not path.exists() or path.read_bytes() != text.encode():
                with replacing(path) as unfinished:
                    unfinished.write_text(text)
        except OSError as error:
            raise ConfigError(f"{path} cannot be written: {error.strerror or error}") from error


class _Prune(BaseCallback):
    """Reports the mean return several times during a trial, and ends the trial if it is bad."""

    def __init__(self, trial: optuna.Trial, steps: int, stop: Stop) -> None:
        super().__init__()
        self._trial = trial
        self._every = max(1, steps // REPORTS)
        self._next_at = self._every
        self._stop = stop
        self._returns: deque[float] = deque(maxlen=_WINDOW)

    def _on_step(self) -> bool:
        for info in self.locals["infos"]:
            if "episode" in info and "sc2pool.fault" not in info:
                self._returns.append(float(info["episode"]["r"]))
        if self.num_timesteps >= self._next_at and self._returns:
            mean_return = float(np.mean(self._returns))
            self._trial.report(mean_return, self._next_at // self._every)
            self._next_at += self._every
            if self._trial.should_prune():
                raise optuna.TrialPruned(f"pruned at {mean_return:.2f}")
        return self._stop.signal is None


class Range(tuple[float, float]):
    """A range from the first number to the second, sampled on a logarithmic scale."""


LEARNING = {
    "learning_rate": Range((1e-5, 1e-2)),
    "gamma": (0.9, 0.95, 0.98, 0.99, 0.995, 0.999),
}
ON_POLICY = {
    **LEARNING,
    "n_steps": (32, 64, 128, 256, 512),
    "gae_lambda": (0.8, 0.9, 0.95, 0.98, 1.0),
}
PROXIMAL = {
    **ON_POLICY,
    "ent_coef": Range((1e-6, 0.1)),
    "minibatches": (2, 4, 8, 16),
    "n_epochs": (3, 5, 10, 20),
    "clip_range": (0.1, 0.2, 0.3),
}
OFF_POLICY = {
    **LEARNING,
    "batch_size": (32, 64, 128, 256),
    "buffer_size": (20_000, 100_000),
    "learning_starts": (0, 500, 1_000),
    "train_freq": (1, 4, 8),
}
VALUE_BASED = {
    **OFF_POLICY,
    "target_update_interval": (100, 1_000, 5_000),
    "exploration_fraction": (0.1, 0.3, 0.5),
    "exploration_final_eps": (0.01, 0.05, 0.1),
}
ACTOR_CRITIC = {**OFF_POLICY, "tau": (0.001, 0.005, 0.02, 0.05)}
NETS = {"small": [64, 64], "medium": [128, 128], "large": [256, 256]}

SPACES: Mapping[str, Mapping[str, Any]] = {
    "ppo": PROXIMAL,
    "maskable-ppo": PROXIMAL,
    "recurrent-ppo": PROXIMAL,
    "a2c": {**ON_POLICY, "n_steps": (5, 8, 16, 32, 64), "ent_coef": Range((1e-6, 0.1))},
    "trpo": {**ON_POLICY, "target_kl": (0.005, 0.01, 0.02, 0.05)},
    "dqn": VALUE_BASED,
    "qrdqn": VALUE_BASED,
    "sac": ACTOR_CRITIC,
    "td3": ACTOR_CRITIC,
    "tqc": ACTOR_CRITIC,
}
"""The ranges and choices to search, by algorithm. Algorithms that act while they learn are left
out: they are for games in real time, in which a trial cannot be repeated."""


def suggest(trial: BaseTrial, algo: str, *, n_rows: int, steps: int) -> dict[str, Any]:
    """A section of hyperparameters, complete except for the policy and the scale of rewards.

    If possible, `n_steps` is small enough for at least two rollouts in a trial of `steps` env
    steps.
    """
    section: dict[str, Any] = {}
    for name, values in SPACES[algo].items():
        if isinstance(values, Range):
            section[name] = trial.suggest_float(name, *values, log=True)
            continue
        possible = [one for one in values if name != "n_steps" or 2 * one * n_rows <= steps]
        section[name] = trial.suggest_categorical(name, possible or values[:1])
    section["policy_kwargs"] = {"net_arch": NETS[trial.suggest_categorical("net_arch", [*NETS])]}
    return section
