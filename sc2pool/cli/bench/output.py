"""The output of a measurement: progress, Markdown tables, a JSON file.

Rule: progress goes to stderr, so that stdout holds the result alone.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

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


def number(value: float) -> str:
    """Three significant digits, or all digits before the point."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    if abs(value) >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if abs(value) >= 0.1 or value == 0 else f"{value:.2g}"


def write_json(path: Path, result: Any) -> None:
    """Write it, with its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n")
