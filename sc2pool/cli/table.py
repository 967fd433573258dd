"""Columns of text, for the terminal. Pure."""

from __future__ import annotations

from collections.abc import Sequence

GAP = "  "


def columns(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose columns are as wide as their longest cell, the header underlined."""
    widths = [max(map(len, cells)) for cells in zip(header, *rows, strict=True)]
    lines = [header, ["─" * width for width in widths], *rows]
    return "\n".join(
        GAP.join(f"{cell:{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
