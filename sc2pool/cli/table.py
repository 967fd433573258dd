"""Text and tables on stdout, drawn by rich.

Rules: in a pipe or a file, lines are not cut, wrapped or coloured, so that scripts can read them. A
terminal whose encoding has no line-drawing characters gets ASCII.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from sc2pool.foreign import printable

PIPE_WIDTH = 1000
"""In characters; wider than any table of this command."""


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Raise as `print` does, so that `main` ends every command in the same way."""
        raise BrokenPipeError


def open_console() -> Console:
    """A console on stdout that prints text unchanged."""
    console = _Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = PIPE_WIDTH
    return console


def make_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A table with its header underlined, in columns two spaces apart."""
    table = Table(
        *header,
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        collapse_padding=True,
        header_style="bold",
    )
    for column in table.columns:
        column.overflow = "fold"  # wrap long cells instead of cutting them
    table.columns[0].no_wrap = True  # so that a name can be copied
    for row in rows:
        table.add_row(*(printable(cell, None) for cell in row))
    return table
