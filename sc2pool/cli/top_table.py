"""What `sc2pool top` shows, as lines of text: pure functions of what a pool tells of itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]

NONE = "–"


@dataclass(frozen=True)
class Column:
    """One column of the table.

    Attributes:
        name: as `--sort` takes it.
        width: in characters; text is left-aligned, figures right-aligned.
        value: what rows are sorted by; None sorts last.
        text: how it is shown.
        is_text: whether it is text, which sorts upwards where figures sort downwards.
    """

    name: str
    width: int
    value: Callable[[Row], Any]
    text: Callable[[Any], str]
    is_text: bool = False

    def cell(self, row: Row) -> str:
        value = self.value(row)
        text = NONE if value is None else self.text(value)
        text = text if len(text) <= self.width else text[: self.width - 1] + "…"
        return text.ljust(self.width) if self.is_text else text.rjust(self.width)

    @property
    def head(self) -> str:
        name = self.name.upper()
        return name.ljust(self.width) if self.is_text else name.rjust(self.width)


def whole(value: float) -> str:
    return f"{value:.0f}"


def grouped(value: float) -> str:
    """A number with thousands set apart."""
    return f"{value:,.0f}"


def tenths(value: float) -> str:
    """A number with one digit behind the point, where it is small."""
    return f"{value:.1f}" if abs(value) < 1000 else f"{value:,.0f}"


def percent(value: float) -> str:
    return f"{value:.0%}"


def size(value: float) -> str:
    """Bytes as people read them."""
    return f"{value / 1e9:.1f}G" if value >= 1e9 else f"{value / 1e6:.0f}M"


def duration(seconds: float) -> str:
    """About how long: 12s, 3m04s, 2h05m, 3d04h."""
    whole_s = int(seconds)
    for big, small, unit_s in (("d", "h", 86_400), ("h", "m", 3600), ("m", "s", 60)):
        if whole_s >= unit_s:
            rest = whole_s % unit_s // {"d": 3600, "h": 60, "m": 1}[big]
            return f"{whole_s // unit_s}{big}{rest:02d}{small}"
    return f"{whole_s}s"


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
"""Where an env of the user's own has no game, `pid` is its worker's: see `rows`."""

NAMES = [column.name for column in COLUMNS]


def rows(pool: Row) -> list[dict[str, Any]]:
    """A row for each instance; without a game, the worker's pid stands for it."""
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
        + (f" · told {duration(age_s)} ago" if age_s >= 3 else ""),
        f"{pool['env_steps']:,} steps, {rate}/s · {pool['episodes']:,} episodes · "
        f"{pool['launches']} launches · {pool['resets']:,} resets",
        f"recycles: {causes(pool['recycles']) or 'none'}"
        + (f" · recovered within {recovery['max']:.1f} s" if recovery else ""),
    ]


def head_row(sort: str, *, flipped: bool = False) -> str:
    """The columns' names, the sorted one marked."""
    cells = []
    for column in COLUMNS:
        if column.name == sort:
            mark = "▲" if column.is_text != flipped else "▼"
            name = column.name.upper()[: column.width - 1] + mark
            cells.append(name.ljust(column.width) if column.is_text else name.rjust(column.width))
        else:
            cells.append(column.head)
    return " ".join(cells).rstrip()


def line_of(row: Row) -> str:
    """One instance's line."""
    return " ".join(column.cell(row) for column in COLUMNS).rstrip()


def event_lines(pool: Row, count: int) -> list[str]:
    """The newest faults and recycles, the newest first."""
    told = []
    for event in reversed(pool["events"]):
        if event["event"] == "fault":
            what = f"{event['cause']} while {event['phase']}: {event['detail']}"
        elif event["event"] == "recycle":
            what = f"recycled for its {event['cause'].removeprefix('soft-')}"
        else:
            continue
        ago = duration(pool["at_s"] - event["at_s"])
        told.append(
            f"{ago:>6} ago  {event['seat']}, instance {event['instance']}: "
            + " ".join(what.split())
        )
    return told[:count]


def text(pool: Row, sort: str, age_s: float = 0.0) -> str:
    """All of it, for a terminal that is not redrawn."""
    lines = [*head_lines(pool, age_s), "", head_row(sort)]
    lines += [line_of(row) for row in ordered(rows(pool), sort)]
    events = event_lines(pool, 5)
    return "\n".join([*lines, *(["", *events] if events else [])])
