"""Text and tables on stdout, drawn by rich.

Rules: in a pipe or a file no line is cut or wrapped and nothing is coloured, so that scripts can
read it; a terminal whose encoding has no line-drawing letters gets ASCII.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from sc2pool.foreign import printable

PIPE_WIDTH = 1000
"""Characters; wider than any table here."""


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Raise, as `print` does: `main` ends every command in the same way."""
        raise BrokenPipeError


def open_console() -> Console:
    """A console on stdout that prints text as it is."""
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
        column.overflow = "fold"  # what is too long goes on in the next line; nothing is cut
    table.columns[0].no_wrap = True  # a name is copied in one piece
    for row in rows:
        table.add_row(*(printable(cell, None) for cell in row))
    return table
