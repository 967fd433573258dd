"""`sc2pool train`: one algorithm on a pool of games, from the first launch to the learning curve.

    run(options)          makes the games, trains, closes the games
    train(env, options)   trains on any VecEnv and keeps the run's folder (see `run_folder`)

Rules: whatever ends the training, a signal or an error, the model and the curve are saved first,
unless a second signal ends it at once; a full disk does not end it (see `saving`). The same seed
gives the same run: nothing here draws a random number, and the clock does not influence what is
learned.
"""

from __future__ import annotations

import os
import platform
import sys
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any

import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv, VecMonitor

from sc2pool import PauseCallback, PoolStatsCallback
from sc2pool.cli.bench.machine import version_of
from sc2pool.cli.stop import Stop, say
from sc2pool.cli.training.evaluation import Evaluation
from sc2pool.cli.training.figures.curve import draw_curve, references_for
from sc2pool.cli.training.figures.episodes import WINDOW, EpisodeLog
from sc2pool.cli.training.figures.logs import WandbOutput, open_logger
from sc2pool.cli.training.figures.recorder import SAVE_EVERY_S, Recorder
from sc2pool.cli.training.games import connect, evaluation_games, training_games, where
from sc2pool.cli.training.model import check_arguments, check_device, check_values, make_model
from sc2pool.cli.training.progress import open_display, score
from sc2pool.cli.training.rewards import ScaledRewards
from sc2pool.cli.training.run_folder import (
    BEST_MODEL_FILE,
    CURVE_FILE,
    EPISODES_FILE,
    MODEL_FILE,
    open_folder,
    reserved,
)
from sc2pool.cli.training.saving import Saver
from sc2pool.cli.training.self_play.run import SelfPlay, how
from sc2pool.cli.training.settings.algorithms import ALGORITHMS
from sc2pool.cli.training.settings.options import TrainOptions
from sc2pool.cli.units import duration, is_standin
from sc2pool.envs.sb3 import PoolVecEnv
from sc2pool.protocol.compiled import STEP_PATH
from sc2pool.shell import called, quoted
from sc2pool.tasks.registry import resolve

RECORDED_VERSIONS = tuple(
    "sc2pool burnysc2 gymnasium numpy stable-baselines3 sb3-contrib torch".split()
)


def run(options: TrainOptions) -> int:
    """Train on games of the options' task.

    Returns:
        The exit code: 0; 1 if the model could not be saved; as a shell's after a signal.
    """
    check_device(options.device)
    check_arguments(options.algo, options.hyperparameters)
    check_values(options)
    connect(options)
    stop = Stop()
    with stop.handling(), reserved(options.out), ExitStack() as opened:
        options = options.with_steps_done()  # another training may have ended meanwhile
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
        version = env.stats().game_version or ""
        saved = train(
            env,
            options,
            game_version=version,
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
    """Train a policy on `env` and keep the run's folder up to date.

    Returns:
        Whether the trained model is saved.
    """
    # The networks are small; the games need the cores.
    torch.set_num_threads(1)
    algorithm = ALGORITHMS[options.algo]
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
    references = references_for(resolve(options.task))

    self_play = SelfPlay(options, model) if options.self_play else None

    def draw() -> None:
        if self_play is None:
            draw_curve(options.out / CURVE_FILE, episodes.episodes, title, game, references)
        else:
            self_play.draw(options.out / CURVE_FILE, title)

    saver = Saver(model, options.out, draw)
    say(banner(options, game_version, model, where(env.unwrapped)))
    evaluation = None
    with stop.polite():
        try:
            with open_display() as display:
                win_rates = dict if self_play is None else self_play.win_rates
                callbacks: list[BaseCallback] = [
                    Recorder(
                        options.steps, episodes, stop, display, saver.save, win_rates=win_rates
                    )
                ]
                if isinstance(env.unwrapped, PoolVecEnv):
                    callbacks.append(PoolStatsCallback())
                if options.realtime and not algorithm.plays_on:
                    callbacks.append(PauseCallback())
                if self_play is not None and evaluation_env is not None:
                    callbacks += self_play.callbacks(evaluation_env, stop)
                elif evaluation_env is not None:
                    evaluation = Evaluation(VecMonitor(evaluation_env), options, stop)
                    callbacks.append(evaluation)
                model.learn(
                    options.steps - options.steps_done,
                    callback=callbacks,
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
    """The content of `config.json`."""
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
    """The banner, printed when the run starts; `nodes` are a cluster's, with their games."""
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
    """The number of games, or of matches, in words."""
    one, many = ("match", "matches") if options.self_play else ("game", "games")
    return f"1 {one}" if options.n == 1 else f"{options.n} {many}"


def closing_words(
    options: TrainOptions,
    model: BaseAlgorithm,
    episodes: EpisodeLog,
    evaluation: Evaluation | None,
    self_play: SelfPlay | None = None,
) -> str:
    """The files that were saved, and how to continue a run that was stopped."""
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
