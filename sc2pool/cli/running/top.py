"""`sc2pool top`: a live table of a running pool, from another terminal.

The keys ← and → sort by another column, r reverses the order, ↑ and ↓ scroll, and q quits.
On Windows, keys are not read: the option `--sort` sorts, and Ctrl-C quits.

Rules: the command only reads, so it cannot disturb the pool. If the pool ends, the command says so
and ends with exit code 0.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from sc2pool.cli.running import top_table as table
from sc2pool.cli.running.runs import ClusterRun, Run, choose
from sc2pool.cli.table import open_console
from sc2pool.errors import ConfigError
from sc2pool.utilities import WINDOWS, printable

_KEY_WAIT_S = 0.2
_EVENTS = 5
_EVENTS_AT_LEAST = 2
"""If the terminal has few lines, only this many events are shown, to leave room for envs."""
_ROWS_AT_LEAST = 4
_HELP = "Ctrl-C quit" if WINDOWS else "←→ sort   ↑↓ scroll   r reverse   q quit"
_SCROLLS = "" if WINDOWS else " (↑↓)"
_RIGHT, _LEFT, _ESCAPE = ("\x1b[C", "\x1bOC"), ("\x1b[D", "\x1bOD"), "\x1b"
_UP, _DOWN = ("\x1b[A", "\x1bOA"), ("\x1b[B", "\x1bOB")
_KEY = re.compile(r"\x1b[\[O].|.", re.DOTALL)

Styled = tuple[str, str]
"""A line of text, and the name of its style."""

_PLAYS = frozenset({"playing", "stepping"})
_ENDED = frozenset({"dead", "failed", "closed"})


def run(args: argparse.Namespace) -> int:
    """Run `sc2pool top`; raises `ConfigError` if a pool, or a live table's terminal, is missing."""
    pool = ClusterRun(args.ray) if args.ray else choose(args.run_dir, args.pid)
    once = args.json or args.once
    console = open_console()
    redraws = sys.stdin.isatty() and sys.stdout.isatty() and not console.is_dumb_terminal
    if not once and not redraws:
        raise ConfigError("a live table needs a terminal that redraws: give --once or --json")
    stats = pool.first_poll()
    if stats is not None and args.json:
        print(json.dumps(stats, indent=2))
    elif stats is not None and args.once:
        console.print(TableView(stats, args.sort).draw(console.width))
    elif stats is None or not show(pool, TableView(stats, args.sort), console):
        print(f"{pool.name} has ended")
    return 0


class TableView:
    """The pool's newest statistics and their age, drawn in the order that the user has chosen."""

    def __init__(self, stats: dict[str, Any], sort: str) -> None:
        self.stats = stats
        self.age_s = 0.0
        self._sort = sort
        self._flipped = False
        self._scrolled = 0
        """How many lines of the table are hidden above the visible lines."""

    def press(self, key: str) -> bool:
        """Handle a key; returns True if the key quits."""
        step = (key in _RIGHT) - (key in _LEFT)
        if step:
            names = table.names(self.stats, self._sort)
            self._sort = names[(names.index(self._sort) + step) % len(names)]
        elif key == "r":
            self._flipped = not self._flipped
        self._scrolled += (key in _DOWN) - (key in _UP)
        return key in ("q", _ESCAPE)

    def draw(self, width: int, height: int | None = None) -> Text:
        """The text on the pool, its instances and newest events; all lines if `height` is None."""
        stats = self.stats
        shown = table.Table(stats, self._sort, flipped=self._flipped, width=width)
        first, *others = table.head_lines(stats, self.age_s, width)
        title = shown.title if height is None else shown.title.ljust(width)
        head = [(first, "bold"), *((line, "") for line in others), ("", ""), (title, "reverse")]
        body = [(line, _colour(row["state"])) for row, line in shown]
        events = [(line, "dim") for line in table.event_lines(stats, _EVENTS, width)]
        if height is None:
            return _text([*head, *body, *([("", ""), *events] if events else [])])
        keys = [_HELP, *([f"hidden: {' '.join(shown.hidden)}"] if shown.hidden else [])]
        foot = [(line, "dim") for line in table.folded(keys, width)]
        room = height - len(head) - len(foot)
        while len(events) > _EVENTS_AT_LEAST and len(body) + 1 + len(events) > room:
            events.pop()
        if room - 1 - len(events) < _ROWS_AT_LEAST:
            events = []
        if events:
            events.insert(0, ("", ""))
        seen = self._scroll(body, room - len(events))
        gap = [("", "")] * (room - len(events) - len(seen))
        return _text([*head, *seen, *events, *gap, *foot])

    def _scroll(self, body: list[Styled], room: int) -> list[Styled]:
        """The visible part of the table; if lines are hidden, the last line tells how many."""
        if len(body) <= room:
            self._scrolled = 0
            return body
        room = max(1, room - 1)
        self._scrolled = min(max(0, self._scrolled), len(body) - room)
        above, below = self._scrolled, len(body) - room - self._scrolled
        more = f"… {above} lines above, {below} below{_SCROLLS}"
        return [*body[above : above + room], (more, "dim")]


def _text(lines: list[Styled]) -> Text:
    """Convert styled lines to rich's `Text` without wrapping; control characters are escaped."""
    return Text("\n", no_wrap=True, overflow="crop").join(
        Text(printable(line, None), style=style) for line, style in lines
    )


def show(pool: Run | ClusterRun, view: TableView, console: Console) -> bool:
    """Show the live table until the user quits (True) or the pool ends (False)."""
    with (
        read_keys() as read,
        Live(Text(), console=console, screen=True, auto_refresh=False) as live,
    ):
        while True:
            if pool.ended():
                return False
            seen = pool.poll()
            if seen is not None:
                view.stats, view.age_s = seen
            live.update(view.draw(console.width, console.height), refresh=True)
            if any(map(view.press, _KEY.findall(read(_KEY_WAIT_S)))):
                return True


@contextmanager
def read_keys() -> Iterator[Callable[[float], str]]:
    """Yield a function that waits at most a given time for keys, and returns them, or "".

    Within the block, the terminal sends each key without Enter. On Windows the function only waits.
    """
    if WINDOWS:

        def wait(wait_s: float) -> str:
            time.sleep(wait_s)
            return ""

        yield wait
        return
    import select  # noqa: PLC0415
    import termios  # noqa: PLC0415
    import tty  # noqa: PLC0415

    terminal = sys.stdin.fileno()

    def read(wait_s: float) -> str:
        if not select.select([terminal], [], [], wait_s)[0]:
            return ""
        return os.read(terminal, 64).decode(errors="ignore")

    before = termios.tcgetattr(terminal)
    tty.setcbreak(terminal)
    try:
        yield read
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def _colour(state: str) -> str:
    """The colour of an instance's line: green while playing, red after its end, else yellow."""
    return "green" if state in _PLAYS else "red" if state in _ENDED else "yellow"
