"""The learning curve of a run with self-play: win rates over env steps, a line for each opponent.

The mean return says nothing there: what one side wins the other loses. `drawing` has the rules of
all pictures, `curve` those of the labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.ticker import PercentFormatter

from sc2pool.cli.drawing import BLUE, GREEN, GREY, save
from sc2pool.cli.training.figures.curve import Label, add_labels, new_curve
from sc2pool.cli.training.self_play.results import ResultRow

_STYLES = ((BLUE, "-"), (GREEN, (0, (5, 2))))


def draw_win_rates(path: Path, rows: Sequence[ResultRow], title: str) -> None:
    """Write the win rates as a PNG file, or an empty picture if there are none."""
    figure, axes = new_curve(title, "matches won")
    labels = []
    opponents = list(dict.fromkeys(row.opponent for row in rows))
    for opponent, (colour, dashes) in zip(opponents, _STYLES, strict=False):
        those = sorted(row for row in rows if row.opponent == opponent)
        axes.plot(
            [row.total_steps for row in those],
            [row.win_rate for row in those],
            "o",
            color=colour,
            linestyle=dashes,
            linewidth=2.2,
            markersize=5,
            clip_on=False,
            zorder=4,
        )
        last = those[-1]
        text = f"against {opponent}:  {last.win_rate:.0%}"
        labels.append(Label(text, last.win_rate, colour, bold=True))
    axes.axhline(0.5, color=GREY, linewidth=1.0, linestyle=(0, (1, 1.5)))
    axes.set_xlim(0, max([1, *(row.total_steps for row in rows)]))
    axes.set_ylim(0, 1)
    add_labels(axes, labels)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    save(figure, path)
