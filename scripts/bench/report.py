"""The result rows of all cases, the table of these rows, and the goals that the rows must reach.

The rows hold all figures; the table, the JSON file and the goals only show the figures.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from bench import sides
from bench.comparison import ratio, ratio_interval
from sc2pool.cli.bench.measuring import ROLES, Rounds, markdown

STEPS_PER_S = "steps/s"
QUIET_CORES = 0.1
"""A machine counts as quiet if other programs use fewer cores than this."""


@dataclass(frozen=True)
class Row:
    """The figures of one side (compared program) under one setting."""

    case: str
    setting: str
    side: str
    figure: float
    """The median of the row's rounds or values."""
    unit: str
    lowest: float
    highest: float
    ratios: Mapping[str, float] = field(default_factory=dict)
    """A dict from another side's name to this row's figure divided by the other side's figure."""
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """The interval of each ratio in `ratios`; see `comparison.median_interval`."""
    cpu_us_per_step: Mapping[str, float] | None = None
    """The CPU time of an env step, by role."""
    rounds: Rounds = field(default_factory=Rounds)
    values: tuple[float, ...] = ()
    """The values whose median is `figure`; empty if the row has rounds."""

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "rounds": [one.as_dict() for one in self.rounds]}


def throughput_rows(
    case: str,
    setting: str,
    measured: Mapping[str, Rounds],
    against: Mapping[str, Iterable[str]],
) -> list[Row]:
    """A row of the table for each side.

    Args:
        case, setting: the case that was measured, and its setting.
        measured: the rounds of each side.
        against: for each side, the sides to compare it with, if they were measured.
    """
    rows = []
    for side, rounds in measured.items():
        others = [other for other in against.get(side, ()) if other in measured]
        row = Row(
            case,
            setting,
            side,
            rounds.steps_per_s,
            STEPS_PER_S,
            min(rounds.rates),
            max(rounds.rates),
            {other: ratio(rounds, measured[other]) for other in others},
            {other: ratio_interval(rounds, measured[other]) for other in others},
            rounds.cpu_us_by_role(),
            rounds,
        )
        rows.append(row)
    return rows


def value_row(
    case: str,
    setting: str,
    side: str,
    values: Sequence[float],
    *,
    unit: str,
    ratios: Mapping[str, float] | None = None,
) -> Row:
    """A row of the table whose figure is the median of `values`."""
    low, high = min(values), max(values)
    return Row(
        case, setting, side, median(values), unit, low, high, ratios or {}, values=tuple(values)
    )


def table(rows: Sequence[Row]) -> str:
    """All rows in Markdown."""
    ratios, cpu = "ratio, round by round", "CPU µs/step: trainer | workers | games"
    head = ("case", "setting", "side", "median", "min–max", ratios, cpu)
    return markdown(head, map(cells, rows))


def cells(row: Row) -> list[str]:
    """A row's cells."""
    cpu_us = row.cpu_us_per_step or {}
    return [
        row.case,
        row.setting,
        row.side,
        f"{number(row.figure)} {row.unit}",
        f"{number(row.lowest)}–{number(row.highest)}",
        ", ".join(compared(row, other) for other in row.ratios),
        *(number(cpu_us[role]) if cpu_us.get(role) else "" for role in ROLES),
    ]


def compared(row: Row, other: str) -> str:
    """The ratio of a row to another side, with the ratio's interval if it is known."""
    interval = row.intervals.get(other)
    within = f" ({number(interval[0])}–{number(interval[1])})" if interval else ""
    return f"{number(row.ratios[other])}{within} × {other}"


def number(value: float) -> str:
    """A number as text with three significant digits, or all digits before the decimal point."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    if abs(value) >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if abs(value) >= 0.1 or value == 0 else f"{value:.2g}"


def noise(rows: Iterable[Row]) -> str:
    """A sentence about the cores that other programs used; "" if the machine was quiet."""
    rounds = [one for row in rows for one in row.rounds]
    if not rounds:
        return ""
    others = median(one.others_cores for one in rounds)
    stolen = median(one.stolen_cores for one in rounds)
    if others + stolen < QUIET_CORES:
        return ""
    return (
        f"The machine was not quiet: other programs used {others:.2f} cores, and its host gave "
        f"{stolen:.2f} cores to others (medians of {len(rounds)} rounds)."
    )


POOL_ONLY, WHOLE_STACK, GAME_COST = "pool only", "whole stack", "game cost"
RESETS, MEMORY = "resets", "memory"


@dataclass(frozen=True)
class Goal:
    """A bound on one figure of one row."""

    case: str
    setting: str
    side: str
    against: str | None
    """The bound is on the ratio to this side; None if the bound is on the row's own figure."""
    bound: float
    at_most: bool = False

    def figure(self, rows: Sequence[Row]) -> float | None:
        """The figure to compare with the bound; None if this figure was not measured."""
        for row in rows:
            if (row.case, row.setting, row.side) == (self.case, self.setting, self.side):
                return row.figure if self.against is None else row.ratios.get(self.against)
        return None

    def reached(self, figure: float) -> bool:
        return figure <= self.bound if self.at_most else figure >= self.bound

    def __str__(self) -> str:
        compared = f" ÷ {self.against}" if self.against else ""
        return f"{self.side}{compared} {'≤' if self.at_most else '≥'} {self.bound:g}"


GOALS = (
    Goal(POOL_ONLY, "n=8, 1 KB", sides.POOL, sides.SB3, 4.0),
    Goal(POOL_ONLY, "n=8, 1 KB", sides.POOL, sides.GYMNASIUM, 3.0),
    Goal(POOL_ONLY, "n=8, 1 KB", sides.POOL, sides.BARE, 0.7),
    Goal(POOL_ONLY, "n=8, 32 KB", sides.POOL, sides.SB3, 3.5),
    Goal(POOL_ONLY, "n=8, 32 KB", sides.POOL, sides.GYMNASIUM, 2.5),
    Goal(POOL_ONLY, "n=8, 32 KB", sides.POOL, sides.BARE, 0.7),
    Goal(WHOLE_STACK, "n=8, Canned", sides.POOL_TASK, sides.RECIPE, 10.0),
    Goal(WHOLE_STACK, "n=8, Canned", sides.POOL_BOT, sides.RECIPE, 3.5),
    Goal(GAME_COST, "n=8, nothing", sides.POOL_TASK, sides.WIRE, 0.5),
    Goal(GAME_COST, "n=8, burn 0.5 ms", sides.POOL_TASK, sides.WIRE, 0.85),
    Goal(GAME_COST, "n=8, burn 2 ms", sides.POOL_TASK, sides.WIRE, 0.93),
    Goal(GAME_COST, "n=32, sleep 5 ms", sides.POOL_FIRST_READY, sides.WIRE, 0.85),
    Goal(GAME_COST, "n=32, sleep 5 ms", sides.POOL_TASK, sides.WIRE, 0.85),
    Goal(GAME_COST, "n=64, sleep 5 ms", "CPU of a step, without games", "n=8", 1.15, at_most=True),
    Goal(RESETS, "n=8, spares=1", "batch with restart_game", None, 10.0, at_most=True),
    Goal(RESETS, "n=8, spares=1", "batch with create_game", None, 10.0, at_most=True),
    Goal(MEMORY, "n=8, worker, USS", sides.POOL_TASK, sides.SB3_ENV, 0.5, at_most=True),
)


def goals_table(rows: Sequence[Row]) -> str:
    """Each goal whose figure was measured, in a Markdown table; "" if there is no such goal."""
    lines = [
        (
            goal.case,
            goal.setting,
            str(goal),
            number(figure),
            "yes" if goal.reached(figure) else "**no**",
        )
        for goal in GOALS
        if (figure := goal.figure(rows)) is not None
    ]
    return markdown(("case", "setting", "goal", "measured", "reached"), lines) if lines else ""
