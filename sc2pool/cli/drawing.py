"""Shared parts of all pictures: the canvas, the colours, plain axes, bars of CPU time.

Rules: pictures are drawn off screen (no display, no global pyplot state), so this works in any
thread. A file is replaced atomically, so a viewer never reads half a picture. A `matplotlibrc` in
the current folder is ignored, because it may be another user's and could make matplotlib run LaTeX.
The colours are Okabe and Ito's, which people with any colour vision can distinguish.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from sc2pool.cli.bench.measuring import ROLES
from sc2pool.utilities import replacing

if matplotlib.matplotlib_fname() == "matplotlibrc":
    matplotlib.rcdefaults()

SKY, BLUE, GREEN, VERMILION, PURPLE, GREY = (
    "#56B4E9",
    "#0072B2",
    "#009E73",
    "#D55E00",
    "#CC79A7",
    "#6E6E6E",
)
ROLE_COLOURS = dict(zip(ROLES, (VERMILION, BLUE, "#C9C9C9"), strict=True))


def new_figure(width_inches: float, height_inches: float, **options: Any) -> Figure:
    """An empty picture; `options` are arguments of matplotlib's `Figure`."""
    figure = Figure(figsize=(width_inches, height_inches), **{"dpi": 115, **options})
    FigureCanvasAgg(figure)
    return figure


def save(figure: Figure, path: Path) -> None:
    """Write the PNG file; its folder is created."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as unfinished:
        figure.savefig(unfinished, format="png")


def tidy(axes: Axes, title: str = "", *, grid: Literal["y", "both"] = "y") -> None:
    """Draw light lines behind the data, and no frame above and to the right."""
    axes.grid(axis=grid, alpha=0.25, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    if title:
        axes.set_title(title, loc="left", fontsize=10.5)


def stack_cpu(axes: Axes, place: float, cpu_us: Mapping[str, float], width: float) -> float:
    """Draw a bar of CPU time, a part for each role.

    Returns:
        The bar's height, which is the sum over the roles.
    """
    bottom = 0.0
    for role in ROLES:
        axes.bar(place, cpu_us[role], width, bottom, color=ROLE_COLOURS[role])
        bottom += cpu_us[role]
    return bottom
