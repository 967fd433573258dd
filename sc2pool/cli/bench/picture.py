"""Draws rates and CPU time over the number of games."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.ticker import StrMethodFormatter

from sc2pool.cli.bench.advice import Measured
from sc2pool.cli.drawing import BLUE, GREY, ROLE_COLOURS, SKY, new_figure, save, stack_cpu, tidy


def draw_sizes(path: Path, measured: Sequence[Measured], cores: int, title: str) -> None:
    """Write the PNG file; `measured` has the smallest pool first."""
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
        axes.annotate(
            f"{one.cores_busy:.1f} of {cores}\ncores busy",
            (place, stack_cpu(axes, place, one.rounds.cpu_us_by_role(), 0.6)),
            (0, 3),
            textcoords="offset points",
            ha="center",
            fontsize=8,
        )
    axes.margins(y=0.35)
    handles = [axes.bar([0], [0], color=colour, label=r) for r, colour in ROLE_COLOURS.items()]
    axes.legend(handles=handles, frameon=False, fontsize=8.5, loc="upper right", ncols=3)
