"""Draws the learning curves of the seven mini-games, from the runs of `scripts/pretrained.py`.

The command `learning_curves.py RUNS` writes the picture `RUNS/curves.png` and prints a table. The
horizontal axis shows env steps and not time, because other programs would change the time.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from sc2pool.cli.bench.measuring import markdown
from sc2pool.cli.drawing import BLUE, GREEN, GREY, SKY, new_figure, rolling_mean, save, tidy
from sc2pool.cli.training.run_folder import EpisodeRow, read_rows
from sc2pool.tasks.minigames.scores import ON_THE_STANDIN, PUBLISHED, StandInScores

WINDOW = 32
"""The number of episodes whose mean is one point of a curve: four episodes of each game."""
HEAD = ("task", "algorithm", "env steps", "random", f"last {WINDOW} episodes", "scripted")


@dataclass(frozen=True)
class Curve:
    """The curve of a finished training."""

    task: str
    algo: str
    steps: int
    game_version: str
    episodes: list[EpisodeRow]
    """The episodes, without those that a fault cut short."""

    @property
    def returns(self) -> list[float]:
        return [episode.episode_return for episode in self.episodes]

    @property
    def scores(self) -> StandInScores:
        return ON_THE_STANDIN[self.task]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("runs", type=Path, help="a folder with a run's folder for each task")
    runs = parser.parse_args().runs
    curves = [read(runs / task, task) for task in PUBLISHED]
    draw(runs / "curves.png", curves)
    print(markdown(HEAD, [row(curve) for curve in curves]))


def read(run: Path, task: str) -> Curve:
    """The curve of a finished run."""
    about = json.loads((run / "config.json").read_text())
    whole = [
        episode for episode in read_rows(run / "episodes.csv", EpisodeRow) if not episode.fault
    ]
    options = about["options"]
    return Curve(task, options["algo"], options["steps"], about["game_version"], whole)


def row(curve: Curve) -> tuple[str, ...]:
    """One line of the table."""
    return (
        curve.task,
        curve.algo,
        f"{curve.steps:,}",
        f"{curve.scores.random:,.1f}",
        f"{mean(curve.returns[-WINDOW:]):,.1f}",
        f"{curve.scores.scripted:,.1f}",
    )


def draw(file: Path, curves: list[Curve]) -> None:
    """Write the picture, with a small diagram for each task and the legend in the last place."""
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
    versions = ", ".join(sorted({curve.game_version for curve in curves}))
    figure.suptitle(f"8 games · {versions}", fontsize=11)
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
    axes.axhline(curve.scores.scripted, color=GREEN, linestyle="--", linewidth=1.4, zorder=3)
    axes.axhline(curve.scores.random, color=GREY, linestyle=":", linewidth=1.6, zorder=3)
    axes.set_xlim(0, int(steps.max(initial=1)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / 1000:g}"))
    axes.xaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
    tidy(axes, f"{curve.task}  {middle[-1]:,.1f}", grid="both")


if __name__ == "__main__":
    main()
