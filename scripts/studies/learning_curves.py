"""Trains on each of the seven mini-games with the shipped defaults, and draws the learning curves.

    python scripts/studies/learning_curves.py FOLDER [--task NAME ...] [--steps N]

FOLDER gets one run of `sc2pool train` for each task, and `scores.json` with what random and
scripted players score there. What it holds already is neither trained nor played again, so a study
that was interrupted goes on, and the picture is drawn anew from finished runs within seconds.

The curves are over env steps, not over time: other programs on the machine change the time only.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator
from scores import PLAYERS, play, random_policy

import sc2pool
from sc2pool.cli.bench.output import markdown, tell
from sc2pool.cli.drawing import BLUE, GREEN, GREY, SKY, new_figure, save, tidy
from sc2pool.cli.training.curve import rolling_mean
from sc2pool.cli.training.episodes import EpisodeRow, read_episodes

WINDOW = 32
"""Episodes that a point of a curve is the mean of: four of each game."""
HEAD = ("task", "algorithm", "env steps", "random", f"last {WINDOW} episodes", "scripted")


@dataclass(frozen=True)
class Training:
    """How a task is trained here; all else is the default."""

    algo: str
    steps: int
    """Of the env; no more than ten minutes on two cores."""


TRAININGS = {
    "MoveToBeacon": Training("ppo", 100_000),
    "CollectMineralShards": Training("ppo", 200_000),
    "FindAndDefeatZerglings": Training("ppo", 150_000),
    "DefeatRoaches": Training("maskable-ppo", 150_000),
    "DefeatZerglingsAndBanelings": Training("ppo", 60_000),
    "CollectMineralsAndGas": Training("maskable-ppo", 100_000),
    "BuildMarines": Training("maskable-ppo", 40_000),
}


@dataclass(frozen=True)
class Curve:
    """A finished training, and what it is compared with."""

    task: str
    training: Training
    episodes: list[EpisodeRow]
    """Without those that a fault cut short."""
    scores: dict[str, float]
    """Mean scores, by player: random, scripted."""

    @property
    def returns(self) -> list[float]:
        return [episode.episode_return for episode in self.episodes]


def main() -> None:
    options = parse_arguments()
    curves = []
    for task in options.task:
        training = TRAININGS[task]
        if options.steps is not None:
            training = replace(training, steps=options.steps)
        train(options.folder / task, task, training, options.game)
        episodes = read_episodes(options.folder / task / "episodes.csv")
        whole = [episode for episode in episodes if not episode.fault]
        compared = scores_of(task, options.folder / "scores.json", options)
        curves.append(Curve(task, training, whole, compared))
        tell(f"{task}: {mean(curves[-1].returns[-WINDOW:]):,.1f}")
    draw(options.folder / "curves.png", curves)
    print(markdown(HEAD, [row(curve) for curve in curves]))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="of the runs; may hold finished ones")
    parser.add_argument("--task", nargs="+", choices=list(TRAININGS), default=list(TRAININGS))
    parser.add_argument("--steps", type=int, help="env steps of each training; TRAININGS has them")
    parser.add_argument("--episodes", type=int, default=10, help="of random and scripted players")
    parser.add_argument("--game", default="auto", help="auto, real, or an installation's path")
    return parser.parse_args()


def train(folder: Path, task: str, training: Training, game: str) -> None:
    """Train, unless the folder holds a finished run; an unfinished one is begun anew."""
    if (folder / "finished").exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    command = [sys.executable, "-m", "sc2pool", "train", "--task", task, "--game", game]
    command += ["--algo", training.algo, "--steps", str(training.steps), "--seed", "1"]
    subprocess.run([*command, "--out", str(folder)], check=True)
    (folder / "finished").touch()


def scores_of(task: str, file: Path, options: argparse.Namespace) -> dict[str, float]:
    """The mean scores of a random and the scripted player, from the file or played for it."""
    known: dict[str, dict[str, float]] = json.loads(file.read_text()) if file.exists() else {}
    if task not in known:
        env = sc2pool.SC2GymEnv(task=task, game=options.game)
        try:
            players = {"random": random_policy(env.action_space), "scripted": PLAYERS[task]}
            known[task] = {
                name: mean(play(env, policy, options.episodes)) for name, policy in players.items()
            }
        finally:
            env.close()
        file.write_text(json.dumps(known, indent=2) + "\n")
    return known[task]


def row(curve: Curve) -> tuple[str, ...]:
    """One line of the table."""
    return (
        curve.task,
        curve.training.algo,
        f"{curve.training.steps:,}",
        f"{curve.scores['random']:,.1f}",
        f"{mean(curve.returns[-WINDOW:]):,.1f}",
        f"{curve.scores['scripted']:,.1f}",
    )


def draw(file: Path, curves: list[Curve]) -> None:
    """Write the picture: a small curve for each task, and what the lines mean in the last field."""
    figure = new_figure(13, 6.2, layout="constrained")
    fields = figure.subplots(2, 4).flat
    for curve in curves:
        draw_one(next(fields), curve)
    for field in fields:
        field.axis("off")
    handles = [
        Line2D([], [], color=SKY, marker=".", linestyle="", label="an episode"),
        Line2D([], [], color=BLUE, linewidth=2.2, label=f"mean of the last {WINDOW}"),
        Line2D([], [], color=GREEN, linestyle="--", label="scripted player"),
        Line2D([], [], color=GREY, linestyle=":", label="random player"),
    ]
    figure.legend(handles=handles, loc=(0.79, 0.17), frameon=False, fontsize=11)
    figure.supxlabel("env steps, thousands", fontsize=10)
    figure.supylabel("episode return", fontsize=10)
    save(figure, file)


def draw_one(axes: Axes, curve: Curve) -> None:
    """Draw one task's curve."""
    steps = np.array([episode.total_steps for episode in curve.episodes])
    returns = np.array(curve.returns)
    last_of_step = np.diff(steps, append=-1) != 0
    axes.plot(steps, returns, ".", color=SKY, alpha=0.35, markersize=3.5, markeredgewidth=0)
    middle = rolling_mean(returns, WINDOW)
    axes.plot(steps[last_of_step], middle[last_of_step], color=BLUE, linewidth=2.2, zorder=4)
    axes.axhline(curve.scores["scripted"], color=GREEN, linestyle="--", linewidth=1.4, zorder=3)
    axes.axhline(curve.scores["random"], color=GREY, linestyle=":", linewidth=1.6, zorder=3)
    axes.set_xlim(0, int(steps.max(initial=1)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / 1000:g}"))
    axes.xaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
    tidy(axes, f"{curve.task}  {middle[-1]:,.1f}", grid="both")


if __name__ == "__main__":
    main()
