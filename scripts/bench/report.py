"""The one table: rows of every case, with the same columns, and what they look like.

Rule: a row knows all of its figures; nothing is computed anew for the table, the JSON file, the
picture or the goals.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from sc2pool.cli.bench.processes import ROLES
from sc2pool.cli.bench.rounds import Round, cpu_us_per_step, ratio, steps_per_s

STEPS_PER_S = "steps/s"


@dataclass(frozen=True)
class Row:
    """One side under one setting."""

    case: str
    setting: str
    side: str
    figure: float
    """The median."""
    unit: str
    lowest: float
    highest: float
    ratios: Mapping[str, float] = field(default_factory=dict)
    """How many times another's figure, by its name."""
    cpu_us_per_step: Mapping[str, float] | None = None
    """By role."""
    rounds: tuple[Round, ...] = ()
    values: tuple[float, ...] = ()
    """What the median is of, where it is not of rounds."""

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "rounds": [one.as_dict() for one in self.rounds]}


def throughput_rows(
    case: str,
    setting: str,
    measured: Mapping[str, Sequence[Round]],
    against: Mapping[str, Iterable[str]],
) -> list[Row]:
    """A row for each side.

    Args:
        case, setting: what was measured.
        measured: the rounds of each side.
        against: by side, whom it is compared with; those that were not measured are left out.
    """
    rows = []
    for side, rounds in measured.items():
        rates = [one.steps_per_s for one in rounds]
        rows.append(
            Row(
                case,
                setting,
                side,
                steps_per_s(rounds),
                STEPS_PER_S,
                min(rates),
                max(rates),
                {
                    other: ratio(rounds, measured[other])
                    for other in against.get(side, ())
                    if other in measured
                },
                {role: cpu_us_per_step(rounds, role) for role in ROLES},
                tuple(rounds),
            )
        )
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
    """A row that is not of rounds."""
    low, high = min(values), max(values)
    return Row(
        case, setting, side, median(values), unit, low, high, ratios or {}, values=tuple(values)
    )


def table(rows: Sequence[Row]) -> str:
    """All rows in Markdown."""
    lines = [
        "| case | setting | side | median | min–max | ratio, round by round | "
        "CPU µs/step: trainer | workers | games |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        ratios = ", ".join(f"{number(r)} × {other}" for other, r in row.ratios.items())
        cpu = row.cpu_us_per_step or {}
        cells = [
            row.case,
            row.setting,
            row.side,
            f"{number(row.figure)} {row.unit}",
            f"{number(row.lowest)}–{number(row.highest)}",
            ratios,
            *(number(cpu[role]) if cpu.get(role) else "" for role in ROLES),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def number(value: float) -> str:
    """Three digits that count, or all those before the point."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    if abs(value) >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if abs(value) >= 0.1 or value == 0 else f"{value:.2g}"
