"""The table as a picture: a panel for each case that was measured.

Rule: it draws the rows' own figures; bars that differ by orders of magnitude have a logarithmic
axis, and their figures written on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter, NullLocator

from bench import sides
from bench.cases import game_cost, memory, pool_only, resets, training, whole_stack
from bench.report import STEPS_PER_S, Row, number
from sc2pool.cli.drawing import (
    BLUE,
    GREEN,
    GREY,
    PURPLE,
    ROLE_COLOURS,
    SKY,
    VERMILION,
    new_figure,
    save,
    stack_cpu,
    tidy,
)

COLOURS = {
    sides.POOL: BLUE,
    sides.POOL_TASK: BLUE,
    sides.POOL_BOT: SKY,
    sides.POOL_FIRST_READY: SKY,
    sides.POOL_ENV: GREEN,
    sides.SB3: VERMILION,
    sides.SB3_ENV: VERMILION,
    sides.RECIPE: PURPLE,
    training.OVER_RECIPE: PURPLE,
    training.OVER_GYM_ENV: VERMILION,
    sides.GYMNASIUM: PURPLE,
    sides.PUFFER: GREEN,
    sides.BARE: GREY,
    sides.WIRE: GREY,
    "restart_game": SKY,
    "create_game": BLUE,
    resets.NEW_PAIR: VERMILION,
    "batch with new pair": PURPLE,
}
MOST_LEVEL = 14
"""With more bars in a panel, their figures are upright."""
WIDEST = 0.19
"""Of a bar; the distance between settings is 1."""
PANEL_INCHES = (7.2, 3.9)


@dataclass(frozen=True)
class Panel:
    """Bars, a group for each setting."""

    title: str
    unit: str
    rows: list[Row]
    log: bool = True
    stacked: bool = False
    """The bars are CPU time by role, not the rows' figures."""


def panels(rows: Sequence[Row]) -> list[Panel]:
    """A panel for each case that has rows."""

    def rates(case: str, leave_out: Sequence[str] = ()) -> list[Row]:
        found = (row for row in rows if row.case == case and row.unit == STEPS_PER_S)
        return [row for row in found if row.side not in leave_out]

    stack, cost = rates(whole_stack.CASE), rates(game_cost.CASE, [game_cost.ONE_GAME])
    with_cpu = [row for row in stack if row.cpu_us_per_step]
    times = [r for r in rows if r.case == resets.CASE and r.unit == "ms"]
    worker = [r for r in rows if r.case == memory.CASE and r.setting.endswith("worker, USS")]
    drawn = [
        *by_n("Pool only: empty envs", rates(pool_only.CASE)),
        Panel("Whole stack", STEPS_PER_S, stack),
        Panel("Whole stack: CPU of a step", "µs", with_cpu, log=False, stacked=True),
        Panel("Games of a given cost", STEPS_PER_S, cost),
        Panel("Resets", "ms", times),
        Panel("Memory of an env's own processes (USS)", "MB", worker, log=False),
        Panel("Training with PPO, resets included", STEPS_PER_S, rates(training.CASE), log=False),
    ]
    return [panel for panel in drawn if panel.rows]


def by_n(title: str, rows: list[Row]) -> list[Panel]:
    """A panel for each number of envs, the first part of a setting."""
    numbers = dict.fromkeys(row.setting.partition(",")[0] for row in rows)
    return [
        Panel(f"{title}, {n}", STEPS_PER_S, [r for r in rows if r.setting.startswith(f"{n},")])
        for n in numbers
    ]


def draw(path: Path, rows: Sequence[Row], machine: dict[str, Any]) -> None:
    """Write the PNG file; none if no row can be drawn."""
    drawn = panels(rows)
    if not drawn:
        return
    columns = min(2, len(drawn))
    lines = -(-len(drawn) // columns)
    width, height = PANEL_INCHES
    figure = new_figure(width * columns, height * lines + 0.7)
    grid = figure.subplots(lines, columns, squeeze=False)
    for axes, panel in zip(grid.flat, drawn, strict=False):
        draw_panel(axes, panel)
    for axes in grid.flat[len(drawn) :]:
        axes.set_visible(False)
    figure.suptitle(
        f"{machine['cpu']}, {machine['cores']} cores, Python {machine['python']}, "
        f"sc2pool {machine['versions'].get('sc2pool', '')} on the stand-in",
        fontsize=9.5,
        color=GREY,
        x=0.99,
        ha="right",
    )
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.15 / (height * lines + 0.7)), h_pad=2.2, w_pad=2.5)
    save(figure, path)


def draw_panel(axes: Axes, panel: Panel) -> None:
    """One panel."""
    settings = list(dict.fromkeys(row.setting for row in panel.rows))
    names = list(dict.fromkeys(row.side for row in panel.rows))
    width = min(WIDEST, 0.84 / len(names))
    lowest, highest = np.inf, 0.0
    tidy(axes, f"{panel.title}  [{panel.unit}]")
    for row in panel.rows:
        place = settings.index(row.setting) + width * (names.index(row.side) - (len(names) - 1) / 2)
        if panel.stacked:
            total = stack_cpu(axes, place, row.cpu_us_per_step or {}, width * 0.92)
        else:
            total = row.figure
            axes.bar(place, total, width * 0.92, color=COLOURS.get(row.side, GREEN), zorder=2)
            if row.highest > row.lowest:
                axes.vlines(place, row.lowest, row.highest, color="black", linewidth=0.8, zorder=3)
        lowest, highest = min(lowest, row.lowest or total), max(highest, row.highest, total)
        top = total if panel.stacked else max(total, row.highest)
        axes.annotate(
            f"{row.side.removeprefix('pool, ')}  {short(total)}" if panel.stacked else short(total),
            (place, top),
            (0, 2),
            textcoords="offset points",
            ha="center",
            fontsize=7,
            rotation=90 if panel.stacked or len(panel.rows) > MOST_LEVEL else 0,
        )
    axes.set_xlim(-0.5, len(settings) - 0.5)
    axes.set_xticks(range(len(settings)), [wrapped(name) for name in settings], fontsize=8)
    axes.tick_params(axis="x", length=0)
    if panel.log:
        axes.set_yscale("log")
        axes.set_ylim(lowest / 2, highest * 4)
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.margins(y=0.45 if panel.stacked else 0.2)
    axes.tick_params(axis="y", labelsize=8)
    legend(axes, panel, names)


def legend(axes: Axes, panel: Panel, names: Sequence[str]) -> None:
    """The names of the colours, above the bars."""
    colours = ROLE_COLOURS if panel.stacked else {n: COLOURS.get(n, GREEN) for n in names}
    handles = [axes.bar([0], [0], color=colour, label=name) for name, colour in colours.items()]
    axes.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=len(handles) if sum(map(len, colours)) < 60 else 2,
        fontsize=7.5,
        frameon=False,
        handlelength=1.0,
        handleheight=1.0,
        columnspacing=1.2,
    )


def wrapped(setting: str) -> str:
    """A setting in two lines."""
    return setting.replace(", ", "\n", 1)


def short(value: float) -> str:
    """A figure on a bar."""
    return f"{value / 1000:.3g}k" if value >= 10_000 else number(value)
