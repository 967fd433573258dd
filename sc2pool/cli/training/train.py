"""`sc2pool train`: trains an algorithm on a pool of games, from the first launch to the curve.

    The function run makes the games, trains, and closes the games.
    The function train trains on any VecEnv and writes the run's folder (see `run_folder`).
    The class Saver saves the model and the curve while the run continues.
    `training_games` and `evaluation_games` make a run's games, on this machine or on a Ray cluster.

Rules: the model and the curve are saved at the end of the training, even if a signal or an error
ends it, but not after a second signal. Files are replaced as a whole, so the last good file stays
if a save fails. A save that fails (full disk, lost permission) is reported in one line and tried
again, and the training continues. The same seed gives the same run: this module draws no random
numbers, and the learning does not depend on the clock.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import cloudpickle
import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv, VecMonitor

from sc2pool import PauseCallback, PoolStatsCallback, SubprocSC2VecEnv
from sc2pool.cli.bench.measuring import version_of
from sc2pool.cli.drawing import draw_curve, references_for
from sc2pool.cli.stop import Stop, say
from sc2pool.cli.table import duration, is_standin
from sc2pool.cli.training.algorithms import ALGORITHMS
from sc2pool.cli.training.evaluation import Evaluation
from sc2pool.cli.training.model import (
    ScaledRewards,
    check_arguments,
    check_device,
    check_values,
    make_model,
)
from sc2pool.cli.training.options import TrainOptions
from sc2pool.cli.training.progress import (
    SAVE_EVERY_S,
    Recorder,
    WandbOutput,
    open_display,
    open_logger,
    score,
)
from sc2pool.cli.training.run_folder import (
    BEST_MODEL_FILE,
    CURVE_FILE,
    EPISODES_FILE,
    MODEL_FILE,
    WINDOW,
    EpisodeLog,
    open_folder,
    reserved,
)
from sc2pool.cli.training.self_play import (
    MatchEvaluation,
    begin_snapshots,
    draw_win_rates,
    how,
    learns_against,
    opponents_of,
)
from sc2pool.config import PoolConfig
from sc2pool.integration import STEP_PATH, InTurn, PoolVecEnv, resolve_task, save_model
from sc2pool.utilities import called, quoted

RECORDED_VERSIONS = tuple(
    "sc2pool burnysc2 gymnasium numpy stable-baselines3 sb3-contrib torch".split()
)


def run(options: TrainOptions) -> int:
    """Train on games of the task; returns the exit code: 0, 1 (no model), or 128 + signal."""
    check_device(options.device)
    check_arguments(options.algo, options.hyperparameters)
    check_values(options)
    if options.ray is not None:
        from sc2pool.ray import connect  # noqa: PLC0415

        connect(options.ray)  # Ray sets a handler of SIGTERM, which `stop` must replace
    stop = Stop()
    with stop.handling(), reserved(options.out), ExitStack() as opened:
        options = options.with_steps_done()  # another training may just have saved the model
        wandb = None
        if options.wandb:
            wandb = WandbOutput(options.out)
            opened.callback(wandb.close)
        say(f"starting {games(options)} of {options.task} …")
        env = training_games(options)
        opened.callback(env.close)
        others = None
        if options.eval_every or options.video:
            others = evaluation_games(options)
            opened.callback(others.close)
        saved = train(
            env,
            options,
            game_version=env.stats().game_version or "",
            stop=stop,
            evaluation_env=others,
            wandb=wandb,
        )
    return stop.exit_code if saved else 1


def train(
    env: VecEnv,
    options: TrainOptions,
    *,
    game_version: str,
    stop: Stop,
    evaluation_env: VecEnv | None = None,
    wandb: WandbOutput | None = None,
) -> bool:
    """Train a policy on `env` and write the run's folder; True if the model is saved."""
    # One thread is enough for small networks, and leaves the cores to the games.
    torch.set_num_threads(1)
    learned_from = ScaledRewards(VecMonitor(env), options.hyperparameters.reward_scale)
    model = make_model(learned_from, options)

    about = description(options, game_version)
    open_folder(options.out, options.resume, about)
    if wandb is not None:
        wandb.describe(about)
    others = [] if wandb is None else [wandb]
    model.set_logger(open_logger(options.out, others, options.steps_done))
    episodes = EpisodeLog(options.out / EPISODES_FILE, options.steps_done)
    title = f"{options.task} · {games(options)} · {game_version}"
    game = "the stand-in" if is_standin(game_version) else "StarCraft II"
    references = references_for(resolve_task(options.task))

    self_play: MatchEvaluation | None = None
    evaluation: Evaluation | None = None
    callbacks: list[BaseCallback] = []
    if isinstance(env.unwrapped, PoolVecEnv):
        callbacks.append(PoolStatsCallback())
    if options.realtime and not ALGORITHMS[options.algo].plays_on:
        callbacks.append(PauseCallback())
    if options.self_play:
        assert evaluation_env is not None, "a run with self-play has it"
        self_play = MatchEvaluation(evaluation_env, [*opponents_of(options)], options, stop)
        callbacks += [begin_snapshots(options, model), self_play]
    elif evaluation_env is not None:
        evaluation = Evaluation(evaluation_env, options, stop)
        callbacks.append(evaluation)

    def draw() -> None:
        if self_play is None:
            draw_curve(options.out / CURVE_FILE, episodes.episodes, title, game, references)
        else:
            draw_win_rates(options.out / CURVE_FILE, self_play.results.rows, title)

    saver = Saver(model, options.out, draw)
    say(banner(options, game_version, model, where(env.unwrapped)))
    with stop.polite():
        try:
            with open_display() as display:
                recorder = Recorder(options.steps, episodes, stop, display, saver.save)
                if self_play is not None:
                    recorder.win_rates = self_play.win_rates
                model.learn(
                    options.steps - options.steps_done,
                    callback=[recorder, *callbacks],
                    reset_num_timesteps=False,
                )
        finally:
            if not isinstance(sys.exception(), KeyboardInterrupt):
                saver.save()
                words = closing_words(options, model, episodes, evaluation, self_play)
                say(saver.last_good() if saver.problem else words)
            episodes.close()
            model.logger.close()
    return saver.problem is None


def description(options: TrainOptions, game_version: str) -> dict[str, Any]:
    versions = {name: found for name in RECORDED_VERSIONS if (found := version_of(name))}
    values = asdict(options)
    return {
        "hyperparameters": values.pop("hyperparameters"),
        "options": values,
        "game_version": game_version,
        "versions": {"python": platform.python_version(), **versions},
        "platform": platform.platform(),
    }


def banner(options: TrainOptions, game_version: str, model: BaseAlgorithm, nodes: str = "") -> str:
    """The text printed when the run starts; `nodes` tells how many games each Ray node has."""
    from_steps = f", from {options.steps_done:,}" if options.steps_done else ""
    warning = "  (the stand-in, not StarCraft II)" if is_standin(game_version) else ""
    played = games(options) + (" in real time" if options.realtime else "")
    played_on = f"nodes   {nodes}\n" if nodes else ""
    plays = f", {how(options)}" if options.self_play else ""
    port = options.metrics_port
    metrics = f"metrics http://127.0.0.1:{port}/metrics\n" if port is not None else ""
    return (
        f"task    {options.task}, {played}, to {options.steps:,} steps{from_steps}\n"
        f"game    {game_version}{warning}\n"
        f"{played_on}"
        f"steps   {STEP_PATH}\n"
        f"learns  {options.algo} on {model.device}{plays}\n"
        f"out     {options.out}  ({CURVE_FILE} is redrawn every {SAVE_EVERY_S:.0f} s)\n"
        f"{metrics}"
        f"stop    Ctrl-C saves and ends"
    )


def games(options: TrainOptions) -> str:
    """A text with the run's number of games, or of matches if the task has two players."""
    one, many = ("match", "matches") if options.self_play else ("game", "games")
    return f"1 {one}" if options.n == 1 else f"{options.n} {many}"


def closing_words(
    options: TrainOptions,
    model: BaseAlgorithm,
    episodes: EpisodeLog,
    evaluation: Evaluation | None,
    self_play: MatchEvaluation | None,
) -> str:
    """A text on the result, on the saved files, and on how to continue a run that was stopped."""
    n = min(WINDOW, len(episodes.episodes) - episodes.faults)
    how_well = f"mean return {score(episodes.mean_return())} over the last {n} episodes"
    if self_play is not None:
        how_well = self_play.outcome()
    words = (
        f"saved after {model.num_timesteps:,} steps, {duration(episodes.wall_time_s)} of training"
        f" · {how_well}\n"
        f"  {options.out / MODEL_FILE}\n  {options.out / CURVE_FILE}"
    )
    if evaluation is not None and evaluation.best is not None:
        words += (
            f"\n  {options.out / BEST_MODEL_FILE}, mean return {evaluation.best.mean_return:.2f} "
            f"at {evaluation.best.total_steps:,} steps"
        )
    words += f"\nto see it play: {called('sc2pool')} play {quoted(options.out)} --watch"
    if model.num_timesteps < options.steps:
        command = os.environ.get("SC2POOL_COMMAND") or f"{called('sc2pool')} train"
        words += f"\nto continue: {command} --resume {quoted(options.out)}"
        words += f" --ray {options.ray}" if options.ray else ""
    return words


class Saver:
    """Saves the model and the curve; `problem` says why the newest save failed, else it is None."""

    def __init__(self, model: BaseAlgorithm, folder: Path, draw_curve: Callable[[], None]) -> None:
        self._model = model
        self._path = folder / MODEL_FILE
        self._draw_curve = draw_curve
        self.problem: str | None = None

    def save(self) -> None:
        """Save the model and the curve, or print why this fails."""
        try:
            save_model(self._model, self._path)
            self._draw_curve()
        except OSError as error:
            self.problem = f"cannot save to {self._path.parent}: {error.strerror or error}"
            say(f"{self.problem}; {self.last_good()}")
        else:
            self.problem = None

    def last_good(self) -> str:
        """A text with the path of the newest saved model."""
        return (
            f"the last good model is {self._path}" if self._path.exists() else "no model is saved"
        )


MOST_EVALUATED = 2
"""The maximum number of games of an evaluation; few, because games idle between evaluations."""


def training_games(options: TrainOptions) -> PoolVecEnv[Any]:
    """The games of the training; they get no seed here, because the model sets the env's seed."""
    return _make(
        options,
        learns_against(options),
        n=options.n,
        spares=options.spares,
        render_mode="human" if options.watch else None,
        config=PoolConfig(metrics_port=options.metrics_port),
    )


def evaluation_games(options: TrainOptions) -> PoolVecEnv[Any]:
    """The games of evaluations. With self-play, several opponents take turns in these games."""
    return _make(
        options,
        InTurn(tuple(opponents_of(options).values())) if options.self_play else None,
        n=min(MOST_EVALUATED, options.n, options.eval_episodes),
        render_mode="rgb_array" if options.video else None,
    )


def _make(options: TrainOptions, opponent: object, **keywords: Any) -> PoolVecEnv[Any]:
    if options.ray is None:
        return SubprocSC2VecEnv(
            task=options.task,
            game=str(options.installation),
            realtime=options.realtime,
            opponent=opponent,
            **keywords,
        )
    from sc2pool import RaySC2VecEnv  # noqa: PLC0415

    assert opponent is None, "self-play is refused with a cluster"
    task = resolve_task(options.task)
    if not task.__module__.startswith("sc2pool."):
        # Pickle the class by value, because the nodes may not have the user's module.
        cloudpickle.register_pickle_by_value(sys.modules[task.__module__])
    return RaySC2VecEnv(task=task, address=options.ray, game=options.game, **keywords)


def where(env: object) -> str:
    """A text with the number of games of each Ray node; empty without a cluster."""
    by_node: dict[str, int] = getattr(getattr(env, "pool", None), "games_by_node", dict)()
    return ", ".join(f"{node} × {count}" for node, count in by_node.items())
