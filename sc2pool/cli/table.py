"""Prints text and tables with rich, and formats durations, sizes and names of games as text.

Rules: in a pipe or a file, lines are not cut, wrapped or coloured, so that scripts can read them.
On a terminal whose encoding lacks line-drawing characters, tables have ASCII lines.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from sc2pool.utilities import printable

PIPE_WIDTH = 1000
"""Width of the output in a pipe, in characters; every table of this command is narrower."""


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Raise the error that `print` would raise, so that `main` handles it for every command."""
        raise BrokenPipeError


def open_console() -> Console:
    """A console on stdout that prints text unchanged."""
    console = _Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = PIPE_WIDTH
    return console


def make_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A table with an underlined header, whose columns are two spaces apart."""
    table = Table(
        *header,
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        collapse_padding=True,
        header_style="bold",
    )
    for column in table.columns:
        column.overflow = "fold"  # wrap long cells, do not cut them
    table.columns[0].no_wrap = True  # users copy names from this column
    for row in rows:
        table.add_row(*(printable(cell, None) for cell in row))
    return table


NONE = "–"
"""The text for a missing figure."""


def size(value: float) -> str:
    """A number of bytes, in megabytes or gigabytes."""
    return f"{value / 1e9:.1f}G" if value >= 1e9 else f"{value / 1e6:.0f}M"


def duration(seconds: float) -> str:
    """A rounded duration as text, such as 12s, 3m04s, 2h05m or 3d04h; a dash for infinity."""
    if not math.isfinite(seconds):
        return NONE
    whole_s = int(seconds)
    for big, small, unit_s in (("d", "h", 86_400), ("h", "m", 3600), ("m", "s", 60)):
        if whole_s >= unit_s:
            rest = whole_s % unit_s // {"d": 3600, "h": 60, "m": 1}[big]
            return f"{whole_s // unit_s}{big}{rest:02d}{small}"
    return f"{whole_s}s"


def milliseconds(seconds: float) -> str:
    """A short time as text, such as 0.4ms, 12ms or 1.5s."""
    if seconds >= 1.0:
        return f"{seconds:.1f}s"
    return f"{1e3 * seconds:.0f}ms" if seconds >= 0.01 else f"{1e3 * seconds:.1f}ms"


def is_standin(game_version: str | None) -> bool:
    """True if this is the version of a stand-in for the game."""
    return (game_version or "").startswith("standin")


def game_name(game_version: str | None) -> str:
    """A game's version, with a warning if the game is the stand-in."""
    if not game_version:
        return "no game"
    warning = " (stand-in, not StarCraft II)" if is_standin(game_version) else ""
    return printable(game_version) + warning
