"""The table as a picture: gaps, ticks lost and deaths, a group of bars for each training.

Rule: it draws the rows' own figures. Gaps have a logarithmic axis, because they differ by orders of
magnitude; their figures are written on the bars.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from lateness.learners import LEARNERS, PLAY
from lateness.measure import Row
from sc2pool.cli.drawing import BLUE, GREEN, GREY, VERMILION, new_figure, save, tidy

COLOURS = dict(
    zip((learner.name for learner in LEARNERS), (GREY, VERMILION, BLUE, GREEN), strict=True)
)
_LEAST_MS = 0.3
"""Shorter bars would be invisible."""
_BAR = 0.8


def draw(file: Path, rows: Sequence[Row], machine: dict[str, Any]) -> None:
    """Write the picture."""
    groups = list(dict.fromkeys((row.world, row.n, row.update_s) for row in rows if row.updates))
    figure = new_figure(2.2 + 2.3 * max(2, len(groups)), 9.2, layout="constrained")
    gaps, lost, deaths = figure.subplots(3, 1, sharex=True)
    _bars(gaps, rows, groups, lambda row: max(_LEAST_MS, row.gap_ms["max"]), _gap)
    for place, row in _placed(rows, groups):
        gaps.plot(place, max(_LEAST_MS, row.gap_ms["p99"]), "_", color="black", markersize=11)
    gaps.set_yscale("log")
    gaps.set_ylim(top=gaps.get_ylim()[1] * 3)
    gaps.set_ylabel("from an observation to its action (ms)\nbar: longest, mark: p99")
    _bars(lost, rows, groups, lambda row: (row.lost_per_update or 0.0) / row.n, _tenth)
    lost.set_ylabel("ticks lost per update and game")
    _bars(deaths, rows, groups, lambda row: row.deaths_unattended, _count)
    deaths.set_ylabel("unattended deaths\n(in brackets: in play)")
    for axes in (lost, deaths):
        axes.set_ylim(0, max(1.0, axes.get_ylim()[1]) * 1.15)
    deaths.yaxis.set_major_locator(MaxNLocator(integer=True))
    deaths.set_xticks(range(len(groups)), [_named(*group) for group in groups])
    handles = [Patch(color=colour, label=name) for name, colour in COLOURS.items()]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles))
    measured_on = f"{machine['cpu']}, {machine['cores']} cores"
    figure.supxlabel(measured_on, x=0.99, ha="right", fontsize=7, color=GREY)
    save(figure, file)


def _placed(
    rows: Sequence[Row], groups: Sequence[tuple[str, int, float | None]]
) -> list[tuple[float, Row]]:
    """The place of each row's bar; the row without updates has a bar in every group."""
    width = _BAR / len(COLOURS)
    names = list(COLOURS)
    placed = []
    for number, (world, n, update_s) in enumerate(groups):
        for row in rows:
            here = (row.world, row.n) == (world, n)
            if here and (row.learner == PLAY.name or row.update_s == update_s):
                offset = (names.index(row.learner) - (len(names) - 1) / 2) * width
                placed.append((number + offset, row))
    return placed


def _bars(
    axes: Axes,
    rows: Sequence[Row],
    groups: Sequence[tuple[str, int, float | None]],
    height: Callable[[Row], float],
    label: Callable[[Row], str],
) -> None:
    for place, row in _placed(rows, groups):
        (bar,) = axes.bar(
            place, height(row), width=_BAR / len(COLOURS) * 0.92, color=COLOURS[row.learner]
        )
        axes.annotate(
            label(row),
            (bar.get_x() + bar.get_width() / 2, bar.get_height()),
            xytext=(0, 2),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=8,
        )
    tidy(axes)


def _named(world: str, n: int, update_s: float | None) -> str:
    games = "1 game" if n == 1 else f"{n} games"
    return f"{world}, {games}\nupdates of {update_s:g} s"


def _gap(row: Row) -> str:
    return f"{row.gap_ms['max']:.0f}" if row.gap_ms["max"] >= 1 else f"{row.gap_ms['max']:.1f}"


def _tenth(row: Row) -> str:
    return "" if row.lost_per_update is None else f"{row.lost_per_update / row.n:.1f}"


def _count(row: Row) -> str:
    return f"{row.deaths_unattended} ({row.deaths_in_play})"
