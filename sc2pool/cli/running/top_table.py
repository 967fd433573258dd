"""The text of `sc2pool top`: pure functions of the statistics in a pool's live files.

The functions `head_lines` and `event_lines` and the class `Table` make the parts of the text.
Rules: no column is cut off at the right. In a narrow terminal the least important columns are
hidden, and the last line names them. The column by which rows are sorted is always shown. If the
column of replacements is hidden, lines below each env show the causes of its replacements.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sc2pool.cli.table import NONE, duration, game_name, milliseconds, size

Row = Mapping[str, Any]

GAP = "gap"
"""The name of a column that only games in real time have."""
NODE = "node"
"""The name of a column that only games on a Ray cluster have."""
GUEST = "guest"
"""The name of a column that only matches have: the pid of the second player's game."""
REPLACED = "replaced"
_OPPONENTS_SHOWN = 5
"""How many opponents are named above the table; `Pool.stats()` has all of them."""
_BETWEEN = " "
_DOT = " · "
_KEPT = "\xa0"
"""A space at which no line is broken."""


@dataclass(frozen=True)
class Column:
    """One column of the table. `--sort NAME` sorts rows by the column's `value`; None comes last.

    `width` is the minimum width in characters, so that columns do not move. A narrow terminal hides
    the columns with the highest `rank`. Text is left-aligned and sorted in ascending order, figures
    are right-aligned and sorted in descending order.
    """

    name: str
    width: int
    rank: int
    value: Callable[[Row], Any]
    show: Callable[[Any], str]
    is_text: bool = False

    def cell(self, row: Row) -> str:
        """The text of this column in the row of one instance."""
        value = self.value(row)
        return NONE if value is None else self.show(value)

    def head(self, sort: str, *, flipped: bool) -> str:
        """The column's title, marked if the rows are sorted by it."""
        if self.name != sort:
            return self.name.upper()
        return self.name.upper() + ("▲" if self.is_text != flipped else "▼")


whole = "{:.0f}".format
percent = "{:.0%}".format


def tenths(value: float) -> str:
    """A number as text, with one decimal if the number is below 1000."""
    return f"{value:.1f}" if abs(value) < 1000 else f"{value:,.0f}"


def causes(counts: Mapping[str, int]) -> str:
    """A text with the number of replacements by cause, the most frequent cause first."""
    ordered = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    return "  ".join(f"{cause} {count}" for cause, count in ordered)


def seat_key(row: Row) -> tuple[bool, int]:
    """A sort key that puts envs first, then spares, each in the order of their numbers."""
    kind, _, number = row["seat"].partition(" ")
    return kind == "spare", int(number)


def _of(key: str) -> Callable[[Row], Any]:
    return lambda row: row.get(key)


COLUMNS: Sequence[Column] = (
    Column("env", 7, 0, _of("seat"), str, is_text=True),
    Column(NODE, 11, 2, _of(NODE), str, is_text=True),
    Column("inst", 4, 10, _of("instance"), whole),
    Column("pid", 7, 9, _of("pid"), whole),
    Column(GUEST, 7, 9, _of("guest_pid"), whole),
    Column("port", 5, 11, _of("port"), whole),
    Column("state", 9, 1, _of("state"), str, is_text=True),
    Column("episodes", 8, 3, _of("episodes"), whole),
    Column("steps", 5, 8, _of("episode_steps"), whole),
    Column("return", 7, 2, _of("episode_return"), tenths),
    Column("steps/s", 7, 5, _of("steps_per_s"), tenths),
    Column(GAP, 6, 5, _of("gap_s"), milliseconds),
    Column("memory", 6, 7, _of("memory_bytes"), size),
    Column("cpu", 4, 6, _of("cpu_share"), percent),
    Column("cost", 4, 13, _of("loop_cost_growth"), percent),
    Column("faults", 6, 4, _of("faults"), whole),
    Column(REPLACED, 24, 12, lambda row: causes(row["replacements"]) or None, str, is_text=True),
)
"""If an env has no game, `pid` is its worker's pid (see `rows`). `cost` is the CPU time of a game
loop now, in per cent of its CPU time in the game's first episodes."""

NAMES = [column.name for column in COLUMNS]


def is_realtime(pool: Row) -> bool:
    """True if the pool's games run in real time; only in such games can an action be late."""
    return bool(pool["realtime"]["steps"])


def is_cluster(pool: Row) -> bool:
    """True if the pool's games are on the nodes of a Ray cluster."""
    return any(row.get(NODE) for row in pool["instances"])


def where(pool: Row) -> str:
    """A text with the pool's process or, on a Ray cluster, the number of nodes with a pool."""
    if not is_cluster(pool):
        return f"process {pool['trainer_pid']}"
    count = len({row[NODE] for row in pool["instances"]})
    return f"{count} Ray node{'s' * (count > 1)}"


def names(pool: Row, sort: str) -> list[str]:
    """The names of the columns that this pool has, and of the column to sort by."""
    matches = any(row.get("other_games") for row in pool["instances"])
    optional = ((GAP, is_realtime(pool)), (NODE, is_cluster(pool)), (GUEST, matches))
    lacks = {name for name, has in optional if not has}
    return [name for name in NAMES if name == sort or name not in lacks]


def rows(pool: Row) -> list[dict[str, Any]]:
    """A row per instance, with `gap_s` in real time; without a game, `pid` is the worker's pid."""
    late = pool["realtime"]["envs"]
    return [
        {
            **row,
            "pid": row["pid"] or row["worker_pid"],
            "guest_pid": next((game["pid"] for game in row.get("other_games") or ()), None),
            "episodes": None if is_spare(row) else row["episodes"],
            "gap_s": ((late.get(row["seat"]) or {}).get("gap_s") or {}).get("p95"),
        }
        for row in pool["instances"]
    ]


def is_spare(row: Row) -> bool:
    return str(row["seat"]).startswith("spare")


def ordered(unordered: Sequence[Row], sort: str, *, flipped: bool = False) -> list[Row]:
    """Sort rows by a column: text ascending, figures descending; `flipped` reverses the order."""
    column = COLUMNS[NAMES.index(sort)]
    if sort == "env":
        return sorted(unordered, key=seat_key, reverse=flipped)
    known = [row for row in unordered if column.value(row) is not None]
    downwards = column.is_text == flipped
    unknown = [row for row in unordered if column.value(row) is None]
    return [*sorted(known, key=column.value, reverse=downwards), *unknown]


class Table:
    """The instances of a pool, in the columns that fit into a terminal of this width.

    The column by which rows are sorted is always shown, and then as many of the most important
    other columns as fit, in the order of `COLUMNS`. `hidden` has the titles of the columns that do
    not fit. The column of replacements is not in `hidden`, because lines of their own show the
    causes.
    """

    def __init__(self, pool: Row, sort: str, *, flipped: bool, width: int) -> None:
        self._rows = ordered(rows(pool), sort, flipped=flipped)
        self._width = width
        own = names(pool, sort)
        texts = {
            column: [column.head(sort, flipped=flipped), *map(column.cell, self._rows)]
            for column in COLUMNS
            if column.name in own
        }
        widths = {column: max(column.width, *map(len, of)) for column, of in texts.items()}
        shown: set[Column] = set()
        left = width + len(_BETWEEN)
        for column in sorted(texts, key=lambda one: (one.name != sort, one.rank)):
            left -= widths[column] + len(_BETWEEN)
            if left < 0 and shown:
                break
            shown.add(column)
        self._shows_replacements = any(column.name == REPLACED for column in shown)
        self.hidden = [
            column.name.upper()
            for column in texts
            if column not in shown and column.name != REPLACED
        ]
        aligned = [
            [
                text.ljust(widths[column]) if column.is_text else text.rjust(widths[column])
                for text in of
            ]
            for column, of in texts.items()
            if column in shown
        ]
        lines = (_BETWEEN.join(cells).rstrip() for cells in zip(*aligned, strict=True))
        self.title, *self._lines = lines

    def __iter__(self) -> Iterator[tuple[Row, str]]:
        """Yield each instance's line, and lines for its replacements if no column shows these."""
        for row, line in zip(self._rows, self._lines, strict=True):
            yield row, line
            if row["replacements"] and not self._shows_replacements:
                below = textwrap.wrap(
                    "└ " + causes(row["replacements"]).replace(" ", _KEPT).replace(2 * _KEPT, "  "),
                    self._width,
                    subsequent_indent="  ",
                    break_on_hyphens=False,
                )
                for each in below:
                    yield row, each.replace(_KEPT, " ")


def folded(parts: Iterable[str], width: int) -> list[str]:
    """Join these parts into as few lines of at most `width` characters as possible."""
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + len(_DOT) + len(part) <= width:
            lines[-1] += _DOT + part
        else:
            lines += textwrap.wrap(part, width)
    return lines


def head_lines(pool: Row, age_s: float, width: int) -> list[str]:
    """The lines about the whole pool: its task, progress and faults."""
    spares = sum(map(is_spare, pool["instances"]))
    envs = len(pool["instances"]) - spares
    rate = NONE if pool["steps_per_s"] is None else f"{pool['steps_per_s']:,.0f}"
    mean = NONE if pool["mean_return"] is None else f"{pool['mean_return']:.2f}"
    recovery = pool["recovery_s"]
    late = pool["realtime"]
    sections = [
        [
            pool["task"] or "envs of your own",
            f"{envs} env{'s' * (envs > 1)}"
            + (f", {spares} spare{'s' * (spares > 1)}" if spares else ""),
            game_name(pool["game_version"]),
            *([f"as of {duration(age_s)} ago"] if age_s >= 3 else []),
        ],
        [
            f"{pool['env_steps']:,} steps, {rate}/s",
            f"mean return {mean}",
            f"{pool['episodes']:,} episodes",
            f"{where(pool)}, up {duration(pool['uptime_s'])}",
        ],
        [
            f"replaced: {causes(pool['replacements']) or 'none'}",
            *([f"recovered within {recovery['max']:.1f} s"] if recovery else []),
            f"{pool['launches']} launches, {pool['resets']:,} resets",
        ],
    ]
    if pool.get("matches"):
        sections.append(match_figures(pool["matches"]))
    if is_realtime(pool):
        gap = late["gap_s"]
        sections.append(
            [
                "in real time",
                f"gap {milliseconds(gap['p50'])}, 95 % within {milliseconds(gap['p95'])}, "
                f"longest {milliseconds(gap['max'])}",
                f"{late['misses']:,} actions too late",
            ]
        )
    return [line for section in sections for line in folded(section, width)]


def match_figures(matches: Mapping[str, Mapping[str, int]]) -> list[str]:
    """For each of the newest opponents, a text with the number of matches won against it."""
    shown = [
        f"{results['win']:,} of {sum(results.values()):,} against {name}"
        for name, results in list(matches.items())[:_OPPONENTS_SHOWN]
    ]
    more = len(matches) - len(shown)
    return ["matches won", *shown, *([f"{more} more opponents"] if more else [])]


def event_lines(pool: Row, count: int, width: int) -> list[str]:
    """Lines for faults and planned replacements, the newest first; each line is cut to `width`."""
    lines: list[str] = []
    for event in reversed(pool["events"]):
        if event["event"] == "fault":
            what = f"{event['cause']} while {event['phase']}: {event['detail']}"
        elif event["event"] == "recycle":
            what = f"recycled for its {event['cause'].removeprefix('soft-')}"
        else:
            continue
        ago = duration(pool["at_s"] - event["at_s"])
        lines.append(
            f"{ago:>6} ago  {event['seat']}, instance {event['instance']}: "
            + " ".join(what.split())
        )
    return [line if len(line) <= width else line[: width - 1] + "…" for line in lines[:count]]
