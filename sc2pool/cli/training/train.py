"""`sc2pool train`: PPO on a pool of games, from the first launch to the learning curve.

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
import shlex
import sys
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import CSVOutputFormat, Logger, TensorBoardOutputFormat
from stable_baselines3.common.preprocessing import is_image_space
from stable_baselines3.common.utils import LinearSchedule
from stable_baselines3.common.vec_env import VecEnv, VecMonitor

from sc2pool import PoolStatsCallback, SubprocSC2VecEnv
from sc2pool.cli.stop import Stop, Stopped, say
from sc2pool.cli.training.curve import draw_curve, references_for
from sc2pool.cli.training.episodes import WINDOW, EpisodeLog
from sc2pool.cli.training.hyperparameters import settings_for
from sc2pool.cli.training.options import TrainOptions
from sc2pool.cli.training.progress import open_display, score
from sc2pool.cli.training.recorder import SAVE_EVERY_S, Recorder
from sc2pool.cli.training.run_folder import (
    CURVE_FILE,
    EPISODES_FILE,
    MODEL_FILE,
    PROGRESS_FILE,
    open_folder,
)
from sc2pool.cli.training.saving import Saver, Tolerant
from sc2pool.cli.units import duration
from sc2pool.config import PoolConfig
from sc2pool.errors import ConfigError
from sc2pool.tasks.registry import resolve

RECORDED_VERSIONS = ("sc2pool", "burnysc2", "gymnasium", "numpy", "stable-baselines3", "torch")


def run(options: TrainOptions) -> int:
    """Train on games of the options' task.

    Returns:
        The exit code: 0; 1 if the model could not be saved; as a shell's after a signal.
    """
    check_device(options.device)
    stop = Stop()
    with stop.handling():
        print(f"starting {games(options.n)} of {options.task} …", flush=True)
        # No seed here: PPO seeds the env.
        env = SubprocSC2VecEnv(
            n=options.n,
            task=options.task,
            game=str(options.installation),
            config=PoolConfig(metrics_port=options.metrics_port),
        )
        try:
            saved = train(env, options, game_version=env.stats().game_version or "", stop=stop)
        finally:
            env.close()
    if not saved:
        return 1
    return 0 if stop.signal is None else 128 + stop.signal


def train(env: VecEnv, options: TrainOptions, *, game_version: str, stop: Stop) -> bool:
    """Train a policy on `env` and keep the run's folder up to date.

    Returns:
        Whether the trained model is saved.
    """
    # The networks are small; the games need the cores.
    torch.set_num_threads(1)
    model = make_model(VecMonitor(env), options)

    open_folder(options.out, options.resume, description(options, game_version))
    model.set_logger(open_logger(options.out))
    episodes = EpisodeLog(options.out / EPISODES_FILE, options.steps_done)
    title = f"{options.task} · {games(options.n)} · {game_version}"
    game = "the stand-in" if is_standin(game_version) else "StarCraft II"
    references = references_for(resolve(options.task).map_name)

    def draw() -> None:
        draw_curve(options.out / CURVE_FILE, episodes.episodes, title, game, references)

    saver = Saver(model, options.out, draw)
    print(banner(options, game_version, model), flush=True)
    with stop.polite():
        try:
            with open_display() as display:
                callbacks: list[BaseCallback] = [
                    Recorder(options.steps, episodes, stop, display, saver.save)
                ]
                if isinstance(env.unwrapped, SubprocSC2VecEnv):
                    callbacks.append(PoolStatsCallback())
                model.learn(
                    options.steps - options.steps_done,
                    callback=callbacks,
                    reset_num_timesteps=False,
                )
        finally:
            if not isinstance(sys.exception(), Stopped):
                saver.save()
                say(saver.last_good() if saver.problem else closing_words(options, model, episodes))
            episodes.close()
            model.logger.close()
    return saver.problem is None


def make_model(env: VecEnv, options: TrainOptions) -> PPO:
    """A new PPO for the env's spaces, or the resumed one."""
    if options.resume is not None:
        try:
            return PPO.load(
                options.resume, env=env, device=options.device, seed=seed_of_this_part(options)
            )
        except ValueError as error:
            raise ConfigError(f"{options.resume} does not fit {options.task}: {error}") from error
    settings = settings_for(options.task)
    return PPO(
        policy_for(env.observation_space),
        env,
        n_steps=settings.n_steps,
        batch_size=settings.n_steps * env.num_envs // settings.minibatches,
        n_epochs=settings.n_epochs,
        learning_rate=LinearSchedule(settings.learning_rate, 0.0, 1.0),
        gamma=settings.gamma,
        gae_lambda=settings.gae_lambda,
        ent_coef=settings.ent_coef,
        clip_range=settings.clip_range,
        seed=options.seed,
        device=options.device,
    )


def policy_for(space: spaces.Space[Any]) -> str:
    """SB3's name of the policy network that suits these observations."""
    if isinstance(space, spaces.Dict):
        return "MultiInputPolicy"
    # SB3's convolutions need at least 36 × 36 pixels; a smaller image can be flattened.
    if is_image_space(space) and sorted(space.shape or ())[1] >= 36:
        return "CnnPolicy"
    return "MlpPolicy"


def seed_of_this_part(options: TrainOptions) -> int | None:
    """A seed of its own for each resumed part of a run; with the first one it would replay the
    run's start."""
    if options.seed is None:
        return None
    return int(np.random.SeedSequence([options.seed, options.steps_done]).generate_state(1)[0])


def check_device(device: str) -> None:
    """Raise `ConfigError` unless torch can compute on `device`."""
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0]
        raise ConfigError(f"--device {device}: torch cannot use it ({reason})") from error


def description(options: TrainOptions, game_version: str) -> dict[str, Any]:
    """What `config.json` says of the run."""
    versions = {name: metadata.version(name) for name in RECORDED_VERSIONS}
    return {
        "options": asdict(options),
        "hyperparameters": asdict(settings_for(options.task)),
        "game_version": game_version,
        "versions": {"python": platform.python_version(), **versions},
        "platform": platform.platform(),
    }


def open_logger(folder: Path) -> Logger:
    """SB3's log as CSV and TensorBoard events; it continues existing files."""
    path = folder / PROGRESS_FILE
    earlier = path.read_text() if path.exists() else ""
    log = CSVOutputFormat(str(path))
    # SB3 empties the file when it opens it; the first line holds the columns' names.
    if earlier:
        log.keys = earlier.partition("\n")[0].split(",")
        log.file.write(earlier[: earlier.rfind("\n") + 1])
    return Logger(str(folder), [Tolerant(log), Tolerant(TensorBoardOutputFormat(str(folder)))])


def banner(options: TrainOptions, game_version: str, model: PPO) -> str:
    """What the run will do, printed when it starts."""
    from_steps = f", from {options.steps_done:,}" if options.steps_done else ""
    warning = "  (the stand-in, not StarCraft II)" if is_standin(game_version) else ""
    port = options.metrics_port
    metrics = f"metrics http://127.0.0.1:{port}/metrics\n" if port is not None else ""
    return (
        f"task    {options.task}, {games(options.n)}, to {options.steps:,} steps{from_steps}\n"
        f"game    {game_version}{warning}\n"
        f"device  {model.device}\n"
        f"out     {options.out}  ({CURVE_FILE} is redrawn every {SAVE_EVERY_S:.0f} s)\n"
        f"{metrics}"
        f"stop    Ctrl-C saves and ends"
    )


def games(n: int) -> str:
    """The number of games in words."""
    return "1 game" if n == 1 else f"{n} games"


def closing_words(options: TrainOptions, model: PPO, episodes: EpisodeLog) -> str:
    """What was saved and where, and how to continue a run that was stopped."""
    words = (
        f"saved after {model.num_timesteps:,} steps, {duration(episodes.wall_time_s)} of training"
        f" · mean return {score(episodes.mean_return())} over the last {WINDOW} episodes\n"
        f"  {options.out / MODEL_FILE}\n  {options.out / CURVE_FILE}"
    )
    if model.num_timesteps < options.steps:
        command = os.environ.get("SC2POOL_COMMAND", "sc2pool train")
        words += f"\nto continue: {command} --resume {shlex.quote(str(options.out))}"
    return words


def is_standin(game_version: str) -> bool:
    """Whether the game says of itself that it is the stand-in."""
    return game_version.startswith("standin")
