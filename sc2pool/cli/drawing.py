"""The pictures that the command draws: learning curves, and a pool's rates by the number of games.

    The functions new_figure, save and tidy are for all pictures.
    The function draw_curve draws returns over env steps, and published scores as horizontal lines.
    The function draw_sizes draws rates and CPU time over the number of games, for `bench`.

Rules: pictures are drawn in memory, without a display or pyplot's global state, so any thread may
draw. A file is replaced atomically, so a viewer never reads half a picture. A `matplotlibrc` in the
current folder is ignored, because it may be another user's and could make matplotlib run LaTeX.
The colours are Okabe and Ito's, which people with any colour vision can distinguish. The lines of a
learning curve differ in colour and in dashes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, StrMethodFormatter
from numpy.typing import NDArray

from sc2pool.cli.bench.measuring import ROLES, Measured
from sc2pool.cli.training.run_folder import WINDOW, EpisodeRow
from sc2pool.integration import TaskDefinition, built_in_name, scores_of
from sc2pool.utilities import replacing

if matplotlib.matplotlib_fname() == "matplotlibrc":
    matplotlib.rcdefaults()

SKY, BLUE, GREEN = "#56B4E9", "#0072B2", "#009E73"
VERMILION, PURPLE, GREY = "#D55E00", "#CC79A7", "#6E6E6E"
ROLE_COLOURS = dict(zip(ROLES, (VERMILION, BLUE, "#C9C9C9"), strict=True))


def new_figure(width_inches: float, height_inches: float, **options: Any) -> Figure:
    """A picture without content; `options` are passed to matplotlib's `Figure`."""
    figure = Figure(figsize=(width_inches, height_inches), **{"dpi": 115, **options})
    FigureCanvasAgg(figure)
    return figure


def save(figure: Figure, path: Path) -> None:
    """Write the picture as a PNG file, and create the file's folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as unfinished:
        figure.savefig(unfinished, format="png")


def tidy(axes: Axes, title: str = "", *, grid: Literal["y", "both"] = "y") -> None:
    """Draw light grid lines behind the data, and remove the frame's upper and right sides."""
    axes.grid(axis=grid, alpha=0.25, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    if title:
        axes.set_title(title, loc="left", fontsize=10.5)


LABEL_GAP = 0.05
"""Minimum distance between two labels beside the axes, as a fraction of the axes' height."""


@dataclass(frozen=True)
class Reference:
    """A score to compare with, drawn as a horizontal line."""

    label: str
    score: float
    colour: str
    dashes: tuple[float, ...]
    """Lengths of dash, gap, dash, gap, …"""


@dataclass(frozen=True)
class Label:
    """A text beside the axes, at the height of its value."""

    text: str
    value: float
    colour: str
    bold: bool = False


def references_for(task: type[TaskDefinition]) -> list[Reference]:
    """The published scores of a built-in task; an empty list for other tasks.

    A user's task on the same map may have another reward, so its returns are not comparable.
    """
    scores = scores_of(task.map_name).published if built_in_name(task) else None
    if scores is None:
        return []
    return [
        Reference("random", scores.random_mean, GREY, (1, 1.5)),
        Reference("human", scores.human, GREEN, (5, 2)),
        Reference("grandmaster", scores.grandmaster, VERMILION, (8, 2, 2, 2)),
        Reference("FullyConv agent", scores.agent_best_mean, PURPLE, (2, 2)),
    ]


def draw_curve(
    path: Path,
    episodes: Sequence[EpisodeRow],
    title: str,
    game: str,
    references: Sequence[Reference] = (),
) -> None:
    """Write the learning curve as a PNG file, without the episodes that a fault cut short.

    `episodes` are in the order in which they ended; there may be none. The picture names `game`.
    """
    whole = [episode for episode in episodes if not episode.fault]
    steps = np.array([episode.total_steps for episode in whole], dtype=np.int64)
    returns = np.array([episode.episode_return for episode in whole], dtype=np.float64)
    mean = rolling_mean(returns, WINDOW)
    # Draw one point for all games that end in the same step; several points look like a stair.
    last_of_step = np.diff(steps, append=-1) != 0

    figure, axes = new_curve(title, "episode return")
    axes.plot(steps, returns, ".", color=SKY, alpha=0.4, markersize=5, markeredgewidth=0)
    axes.plot(steps[last_of_step], mean[last_of_step], color=BLUE, linewidth=2.2, zorder=4)
    axes.plot(steps[-1:], mean[-1:], "o", color=BLUE, markersize=5, zorder=5, clip_on=False)
    axes.set_xlim(0, max(1, int(steps.max(initial=0))))
    values = [0.0, *returns, *(reference.score for reference in references)]
    low, high = min(values), max(values)
    margin = 0.04 * (high - low) or 1.0
    axes.set_ylim(low - margin, high + margin)
    for reference in references:
        axes.axhline(
            reference.score,
            color=reference.colour,
            linewidth=1.4,
            linestyle=(0, reference.dashes),
            zorder=3,
        )
    add_labels(axes, labels_for(mean, references))
    if references:
        note = f"dashed lines: StarCraft II, SC2LE paper, 2017; points: {game}"
        figure.text(0.99, 0.01, note, color=GREY, fontsize=8, ha="right")
    save(figure, path)


def new_curve(title: str, what: str) -> tuple[Figure, Axes]:
    """Axes without data for `what` over env steps, with room for labels beside the axes."""
    figure = new_figure(9, 5.2, dpi=120)
    axes = figure.add_axes((0.085, 0.115, 0.69, 0.785))
    axes.set_title(title, loc="left", fontsize=11)
    axes.set_xlabel("env steps")
    axes.set_ylabel(what)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    tidy(axes, grid="both")
    return figure, axes


def rolling_mean(values: NDArray[np.float64], window: int) -> NDArray[np.float64]:
    """For each value: the mean of the value and of up to `window - 1` values before it."""
    sums = np.cumsum(np.concatenate([[0.0], values]))
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(ends - window, 0)
    means: NDArray[np.float64] = (sums[ends] - sums[starts]) / (ends - starts)
    return means


def labels_for(mean: NDArray[np.float64], references: Sequence[Reference]) -> list[Label]:
    labels = [Label(f"{r.label}  {r.score:g}", r.score, r.colour) for r in references]
    if len(mean):
        text = f"mean of last {WINDOW}:  {mean[-1]:.1f}"
        labels.append(Label(text, float(mean[-1]), BLUE, bold=True))
    return labels


def add_labels(axes: Axes, labels: Sequence[Label]) -> None:
    """Write labels to the right of the axes, each with a thin line to the height of its value."""
    low, high = axes.get_ylim()
    ordered = sorted(labels, key=lambda label: label.value)
    heights = [(label.value - low) / (high - low) for label in ordered]
    for label, height, place in zip(ordered, heights, spread(heights, LABEL_GAP), strict=True):
        axes.annotate(
            label.text,
            xy=(1.0, height),
            xytext=(1.045, place),
            xycoords="axes fraction",
            textcoords="axes fraction",
            color=label.colour,
            fontsize=9,
            fontweight="bold" if label.bold else "normal",
            verticalalignment="center",
            arrowprops={
                "arrowstyle": "-",
                "color": label.colour,
                "linewidth": 0.8,
                "shrinkA": 1,
                "shrinkB": 0,
                "relpos": (0, 0.5),
            },
            annotation_clip=False,
        )


def spread(heights: Sequence[float], gap: float) -> list[float]:
    """Move ascending heights apart until neighbours are at least `gap` from each other.

    Heights that are too close to each other are spread around their common centre, so that no
    height moves further than necessary.
    """
    groups: list[list[float]] = []
    for height in heights:
        group = [height]
        while groups and _bottom(groups[-1], gap) + gap * len(groups[-1]) > _bottom(group, gap):
            group = groups.pop() + group
        groups.append(group)
    return [_bottom(group, gap) + gap * k for group in groups for k in range(len(group))]


def _bottom(group: Sequence[float], gap: float) -> float:
    return sum(group) / len(group) - gap * (len(group) - 1) / 2


def draw_sizes(path: Path, measured: Sequence[Measured], cores: int, title: str) -> None:
    """Draw rates and CPU time into a PNG file; `measured` begins with the smallest pool."""
    figure = new_figure(10, 4.2)
    rates, costs = figure.subplots(1, 2)
    tidy(rates, "env steps a second")
    tidy(costs, "CPU time of a step, µs")
    _draw_rates(rates, measured)
    _draw_costs(costs, measured, cores)
    for axes in (rates, costs):
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axes.set_xticks(range(len(measured)), [str(one.n) for one in measured])
        axes.set_xlabel("games")
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    figure.tight_layout(w_pad=3)
    save(figure, path)


def _draw_rates(axes: Axes, measured: Sequence[Measured]) -> None:
    places = range(len(measured))
    one_game = measured[0].steps_per_s / measured[0].n
    linear = [one.n * one_game for one in measured]
    axes.plot(places, linear, color=GREY, linewidth=1.4, linestyle="--", label="n × one game")
    for place, one in zip(places, measured, strict=True):
        axes.vlines(place, min(one.rounds.rates), max(one.rounds.rates), color=SKY, linewidth=5)
        axes.annotate(
            f"{one.steps_per_s:,.0f}",
            (place, one.steps_per_s),
            (6, -12),
            textcoords="offset points",
            fontsize=8.5,
        )
    axes.plot(
        places,
        [one.steps_per_s for one in measured],
        "o-",
        color=BLUE,
        linewidth=2.2,
        label="measured, min to max of the rounds",
    )
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=8.5, loc="upper left")


def _draw_costs(axes: Axes, measured: Sequence[Measured], cores: int) -> None:
    for place, one in enumerate(measured):
        height = 0.0
        for role, cpu_us in one.rounds.cpu_us_by_role().items():
            axes.bar(place, cpu_us, 0.6, height, color=ROLE_COLOURS[role])
            height += cpu_us
        axes.annotate(
            f"{one.cores_busy:.1f} of {cores}\ncores busy",
            (place, height),
            (0, 3),
            textcoords="offset points",
            ha="center",
            fontsize=8,
        )
    axes.margins(y=0.35)
    handles = [axes.bar([0], [0], color=colour, label=r) for r, colour in ROLE_COLOURS.items()]
    axes.legend(handles=handles, frameon=False, fontsize=8.5, loc="upper right", ncols=3)
