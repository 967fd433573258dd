"""The output of a measurement: progress, Markdown tables.

Rule: progress goes to stderr, so that stdout holds the result alone.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence

_BEGAN_S = time.monotonic()


def tell(line: str) -> None:
    """Print a line of progress, with the seconds since the program began."""
    print(f"[{time.monotonic() - _BEGAN_S:6.1f} s] {line}", file=sys.stderr, flush=True)


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]], align: str = "") -> str:
    """A Markdown table.

    Args:
        head: a title per column; it may hold `|`, if one title spans several columns.
        rows: a cell per column.
        align: a letter per column, `l` or `r`; to the left by default.
    """
    titles = " | ".join(head).split(" | ")
    rules = ["--:" if side == "r" else "---" for side in align.ljust(len(titles), "l")]
    return "\n".join(f"| {' | '.join(line)} |" for line in (titles, rules, *rows))
