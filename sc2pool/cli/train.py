"""`sc2pool train`: PPO on a pool of games, from the first launch to the learning curve.

    run(options)          makes the games, trains, closes the games
    train(env, options)   trains on any VecEnv and keeps the run's folder

A run's folder holds `model.zip`, `learning_curve.png`, `episodes.csv` (one row per episode),
`progress.csv` and TensorBoard events (SB3's figures and the pool's, one row per update) and
`config.json`.

Rules: whatever ends the training, a signal or an error, the model and the curve are saved first,
unless a second signal asks for an end at once; files are replaced in one piece. The same seed gives
the same run: nothing here draws a random number or lets the clock decide what is learned.
"""

from __future__ import annotations

import json
import os
import platform
import shlex
import shutil
import sys
import time
from collections.abc import Callable
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
from sc2pool.cli.curve import draw_curve, references_for
from sc2pool.cli.episodes import WINDOW, Episode, EpisodeLog
from sc2pool.cli.hyperparameters import settings_for
from sc2pool.cli.options import CONFIG_FILE, MODEL_FILE, TrainOptions
from sc2pool.cli.progress import Display, Figures, Rate, duration, open_display, score
from sc2pool.cli.stop import Stop, Stopped
from sc2pool.config import PoolConfig
from sc2pool.errors import ConfigError
from sc2pool.tasks.registry import resolve

SHOW_EVERY_S = 1.0
SAVE_EVERY_S = 60.0
EPISODES_FILE = "episodes.csv"
PROGRESS_FILE = "progress.csv"
CURVE_FILE = "learning_curve.png"
RECORDED_VERSIONS = ("sc2pool", "burnysc2", "gymnasium", "numpy", "stable-baselines3", "torch")


def run(options: TrainOptions) -> int:
    """Train as asked.

    Returns:
        The exit code.
    """
    check_device(options.device)
    stop = Stop()
    with stop.handling():
        print(f"starting {games(options.n)} of {options.task} …", flush=True)
        # PPO seeds the env, so the seed is not given here as well.
        env = SubprocSC2VecEnv(
            n=options.n,
            task=options.task,
            game=str(options.installation),
            config=PoolConfig(metrics_port=options.metrics_port),
        )
        try:
            train(env, options, game_version=env.stats().game_version or "", stop=stop)
        finally:
            env.close()
    return 0 if stop.signal is None else 128 + stop.signal


def train(env: VecEnv, options: TrainOptions, *, game_version: str, stop: Stop) -> None:
    """Train a policy on `env` and keep the run's folder up to date."""
    # The games need the cores more than the small networks do.
    torch.set_num_threads(1)
    model = make_model(VecMonitor(env), options)

    open_folder(options, game_version)
    model.set_logger(open_logger(options.out))
    episodes = EpisodeLog(options.out / EPISODES_FILE, options.steps_done)
    title = f"{options.task} · {games(options.n)} · {game_version}"
    references = references_for(resolve(options.task).map_name)

    def save() -> None:
        save_model(model, options.out / MODEL_FILE)
        draw_curve(options.out / CURVE_FILE, episodes.episodes, title, references)

    print(banner(options, game_version, model), flush=True)
    with stop.polite():
        try:
            with open_display() as display:
                callbacks: list[BaseCallback] = [
                    Recorder(options.steps, episodes, stop, display, save)
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
                save()
                print(closing_words(options, model, episodes), flush=True)
            episodes.close()
            model.logger.close()


class Recorder(BaseCallback):
    """What happens beside the learning at each step: episodes noted, progress shown, run saved."""

    def __init__(
        self,
        total_steps: int,
        episodes: EpisodeLog,
        stop: Stop,
        display: Display,
        save: Callable[[], None],
    ) -> None:
        super().__init__()
        self.total_steps = total_steps
        self.episodes = episodes
        self.stop = stop
        self.display = display
        self.save = save

    def _on_training_start(self) -> None:
        now_s = time.monotonic()
        self.started_s = now_s - self.episodes.wall_time_s
        self.next_show_s = now_s + SHOW_EVERY_S
        self.next_save_s = now_s + SAVE_EVERY_S
        self.rate = Rate(self.model.num_timesteps)

    def _on_step(self) -> bool:
        now_s = time.monotonic()
        for info in self.locals["infos"]:
            if "episode" in info:
                self.note_episode(info, now_s)
        if now_s >= self.next_show_s:
            self.next_show_s = now_s + SHOW_EVERY_S
            self.show()
        if now_s >= self.next_save_s:
            self.save()
            self.next_save_s = time.monotonic() + SAVE_EVERY_S
        return self.stop.signal is None

    def _on_training_end(self) -> None:
        self.show()

    def note_episode(self, info: dict[str, Any], now_s: float) -> None:
        """Write down the episode that ended with this info."""
        fault = info.get("sc2pool.fault")
        self.episodes.add(
            Episode(
                total_steps=self.num_timesteps,
                episode_return=round(float(info["episode"]["r"]), 6),
                length=int(info["episode"]["l"]),
                wall_time_s=round(now_s - self.started_s, 3),
                fault=str(fault["kind"]) if fault else "",
            )
        )

    def show(self) -> None:
        """Bring the display up to date."""
        self.display.show(
            Figures(
                steps=self.num_timesteps,
                total_steps=self.total_steps,
                steps_per_s=self.rate.update(self.num_timesteps),
                mean_return=self.episodes.mean_return(),
                episodes=len(self.episodes.episodes),
                faults=self.episodes.faults,
            )
        )


def make_model(env: VecEnv, options: TrainOptions) -> PPO:
    """A new PPO for the env's spaces, or the one to go on with."""
    if options.resume is not None:
        try:
            return PPO.load(
                options.resume, env=env, device=options.device, seed=seed_of_this_leg(options)
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
    # SB3's convolutions need 36 pixels each way; a smaller image is small enough to be flattened.
    if is_image_space(space) and sorted(space.shape or ())[1] >= 36:
        return "CnnPolicy"
    return "MlpPolicy"


def seed_of_this_leg(options: TrainOptions) -> int | None:
    """A seed that differs from the run's first one, or a resumed run would replay its start."""
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


def open_folder(options: TrainOptions, game_version: str) -> None:
    """Make the run's folder, with what is known before the training starts."""
    try:
        options.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"--out {options.out}: cannot be made ({error.strerror})") from error
    if options.resume is not None and options.resume.parent.resolve() != options.out.resolve():
        for name in (EPISODES_FILE, PROGRESS_FILE):
            if (options.resume.parent / name).exists():
                shutil.copy(options.resume.parent / name, options.out / name)
    config = {
        "options": asdict(options),
        "hyperparameters": asdict(settings_for(options.task)),
        "game_version": game_version,
        "versions": {"python": platform.python_version()}
        | {name: metadata.version(name) for name in RECORDED_VERSIONS},
        "platform": platform.platform(),
    }
    (options.out / CONFIG_FILE).write_text(json.dumps(config, indent=2, default=str) + "\n")


def open_logger(folder: Path) -> Logger:
    """SB3's log as CSV and TensorBoard events, continuing what is there."""
    path = folder / PROGRESS_FILE
    earlier = path.read_text() if path.exists() else ""
    log = CSVOutputFormat(str(path))
    # SB3 empties the file on opening it; its first line is the columns' names.
    if earlier:
        log.keys = earlier.partition("\n")[0].split(",")
        log.file.write(earlier[: earlier.rfind("\n") + 1])
    return Logger(str(folder), [log, TensorBoardOutputFormat(str(folder))])


def save_model(model: PPO, path: Path) -> None:
    """Write the model, replacing the file in one piece."""
    unfinished = path.with_name("unfinished-" + path.name)
    model.save(unfinished)
    unfinished.replace(path)


def banner(options: TrainOptions, game_version: str, model: PPO) -> str:
    """What is about to happen, for the top of the screen."""
    from_steps = f", from {options.steps_done:,}" if options.steps_done else ""
    warning = "  (the stand-in, not StarCraft II)" if game_version.startswith("standin") else ""
    port = options.metrics_port
    metrics = f"metrics http://127.0.0.1:{port}/metrics\n" if port is not None else ""
    return (
        f"task    {options.task}, {games(options.n)}, to {options.steps:,} steps{from_steps}\n"
        f"game    {game_version}{warning}\n"
        f"device  {model.device}\n"
        f"out     {options.out}  ({CURVE_FILE} is renewed every {SAVE_EVERY_S:.0f} s)\n"
        f"{metrics}"
        f"stop    Ctrl-C saves and ends"
    )


def games(n: int) -> str:
    """The number of games in words."""
    return "1 game" if n == 1 else f"{n} games"


def closing_words(options: TrainOptions, model: PPO, episodes: EpisodeLog) -> str:
    """Where things are, and how to go on if there is more to do."""
    words = (
        f"saved after {model.num_timesteps:,} steps, {duration(episodes.wall_time_s)} of training"
        f" · mean return {score(episodes.mean_return())} over the last {WINDOW} episodes\n"
        f"  {options.out / MODEL_FILE}\n  {options.out / CURVE_FILE}"
    )
    if model.num_timesteps < options.steps:
        command = os.environ.get("SC2POOL_COMMAND", "sc2pool train")
        words += f"\nto go on: {command} --resume {shlex.quote(str(options.out))}"
    return words
