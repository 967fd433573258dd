"""What `sc2pool top` shows, as text: pure functions of the statistics in a pool's live files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sc2pool.cli.units import NONE, duration, size

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Column:
    """One column of the table.

    Attributes:
        name: as `--sort` takes it.
        width: at least, in characters, so that the table keeps still.
        value: what rows are sorted by; None sorts last.
        show: makes the cell's text.
        is_text: text is left-aligned and sorts upwards, figures the other way round.
    """

    name: str
    width: int
    value: Callable[[Row], Any]
    show: Callable[[Any], str]
    is_text: bool = False

    def cell(self, row: Row) -> str:
        """The text in this column for one instance."""
        value = self.value(row)
        return NONE if value is None else self.show(value)

    def head(self, sort: str, *, flipped: bool) -> str:
        """The column's title, marked if the rows are sorted by it."""
        if self.name != sort:
            return self.name.upper()
        return self.name.upper() + ("▲" if self.is_text != flipped else "▼")


def whole(value: float) -> str:
    return f"{value:.0f}"


def grouped(value: float) -> str:
    """A number with separators between the thousands."""
    return f"{value:,.0f}"


def tenths(value: float) -> str:
    """A number; below 1000 with one decimal."""
    return f"{value:.1f}" if abs(value) < 1000 else f"{value:,.0f}"


def percent(value: float) -> str:
    return f"{value:.0%}"


def causes(counts: Mapping[str, int]) -> str:
    """Recycles by cause, the most frequent first."""
    ordered = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    return "  ".join(f"{cause} {count}" for cause, count in ordered)


def seat_key(row: Row) -> tuple[bool, int]:
    """Envs by number, then spares."""
    kind, _, number = row["seat"].partition(" ")
    return kind == "spare", int(number)


def _of(key: str) -> Callable[[Row], Any]:
    return lambda row: row.get(key)


COLUMNS: Sequence[Column] = (
    Column("env", 8, _of("seat"), str, is_text=True),
    Column("inst", 5, _of("instance"), whole),
    Column("pid", 8, _of("pid"), whole),
    Column("port", 6, _of("port"), whole),
    Column("state", 10, _of("state"), str, is_text=True),
    Column("episode", 8, _of("episode"), whole),
    Column("steps", 6, _of("episode_steps"), whole),
    Column("return", 8, _of("episode_return"), tenths),
    Column("steps/s", 8, _of("steps_per_s"), tenths),
    Column("memory", 7, _of("memory_bytes"), size),
    Column("cpu", 5, _of("cpu_share"), percent),
    Column("faults", 6, _of("faults"), whole),
    Column("recycles", 24, lambda row: causes(row["recycles"]) or None, str, is_text=True),
)
"""An env without a game shows its worker's pid: see `rows`."""

NAMES = [column.name for column in COLUMNS]


def rows(pool: Row) -> list[dict[str, Any]]:
    """A row for each instance; one without a game gets the worker's pid."""
    return [{**row, "pid": row["pid"] or row["worker_pid"]} for row in pool["instances"]]


def ordered(unordered: Sequence[Row], sort: str, *, flipped: bool = False) -> list[Row]:
    """Rows sorted by a column: text upwards, figures downwards, or the other way round."""
    column = COLUMNS[NAMES.index(sort)]
    if sort == "env":
        return sorted(unordered, key=seat_key, reverse=flipped)
    known = [row for row in unordered if column.value(row) is not None]
    downwards = column.is_text == flipped
    unknown = [row for row in unordered if column.value(row) is None]
    return [*sorted(known, key=column.value, reverse=downwards), *unknown]


def head_lines(pool: Row, age_s: float) -> list[str]:
    """The pool as a whole."""
    spares = sum(row["seat"].startswith("spare") for row in pool["instances"])
    envs = len(pool["instances"]) - spares
    rate = NONE if pool["steps_per_s"] is None else grouped(pool["steps_per_s"])
    recovery = pool["recovery_s"]
    return [
        f"process {pool['trainer_pid']}, up {duration(pool['uptime_s'])} · "
        f"{pool['game_version'] or 'no game'} · {envs} env{'s' * (envs > 1)}"
        + (f", {spares} spare{'s' * (spares > 1)}" if spares else "")
        + (f" · as of {duration(age_s)} ago" if age_s >= 3 else ""),
        f"{pool['env_steps']:,} steps, {rate}/s · {pool['episodes']:,} episodes · "
        f"{pool['launches']} launches · {pool['resets']:,} resets",
        f"recycles: {causes(pool['recycles']) or 'none'}"
        + (f" · recovered within {recovery['max']:.1f} s" if recovery else ""),
    ]


def event_lines(pool: Row, count: int) -> list[str]:
    """The newest faults and recycles, the newest first."""
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
    return lines[:count]
