"""`sc2pool top`: a live table of a running pool, from another terminal.

    ← →  sort by another column    r  reverse    q  quit

Rules: it only reads, so it cannot disturb the pool; if the pool ends meanwhile, it says so and
ends with exit code 0.
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

from rich.console import Console, Group
from rich.layout import Layout
from rich.live import Live
from rich.table import Table
from rich.text import Text

from sc2pool.cli import top_table as table
from sc2pool.cli.runs import Run, choose
from sc2pool.cli.table import open_console
from sc2pool.errors import ConfigError
from sc2pool.pool.instances.states import LIVE, State

_KEY_WAIT_S = 0.2
_EVENTS = 5
_HELP = "←→ sort   r reverse   q quit"
_RIGHT, _LEFT, _ESCAPE = ("\x1b[C", "\x1bOC"), ("\x1b[D", "\x1bOD"), "\x1b"
_KEY = re.compile(r"\x1b[\[O].|.", re.DOTALL)

_PLAYS = frozenset({State.PLAYING, State.STEPPING})


def run(args: argparse.Namespace) -> int:
    """`sc2pool top` with its parsed arguments.

    Returns:
        The exit code.

    Raises:
        ConfigError: there is no pool, or no terminal for a live table.
    """
    pool = choose(args.run_dir, args.pid)
    once = args.json or args.once
    if not once and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ConfigError("a live table needs a terminal: give --once or --json")
    stats = pool.first_look()
    console = open_console()
    if stats is not None and args.json:
        print(json.dumps(stats, indent=2))
    elif stats is not None and args.once:
        console.print(TableView(stats, args.sort).draw())
    elif stats is None or not show(pool, TableView(stats, args.sort), console):
        print(f"the pool of process {pool.pid} has ended")
    return 0


class TableView:
    """The table as it is sorted now.

    Attributes:
        stats: the pool's newest statistics.
        age_s: how old they are.

    Args:
        sort: a column's name.
    """

    def __init__(self, stats: dict[str, Any], sort: str) -> None:
        self.stats = stats
        self.age_s = 0.0
        self._sort = sort
        self._flipped = False

    def press(self, key: str) -> bool:
        """Handle a key; returns whether it means to quit."""
        step = (key in _RIGHT) - (key in _LEFT)
        if step:
            names = table.NAMES
            self._sort = names[(names.index(self._sort) + step) % len(names)]
        elif key == "r":
            self._flipped = not self._flipped
        return key in ("q", _ESCAPE)

    def draw(self) -> Group:
        """The pool, a line for each instance, and the newest events."""
        first, *others = table.head_lines(self.stats, self.age_s)
        events = table.event_lines(self.stats, _EVENTS)
        return Group(
            Text(first, style="bold"),
            Text("\n".join(others) + "\n"),
            self._instances(),
            *([Text("\n" + "\n".join(events), style="dim")] if events else []),
        )

    def _instances(self) -> Table:
        grid = Table(box=None, pad_edge=False, collapse_padding=True, header_style="reverse")
        for column in table.COLUMNS:
            grid.add_column(
                column.head(self._sort, flipped=self._flipped),
                justify="left" if column.is_text else "right",
                min_width=column.width,
                no_wrap=True,
            )
        rows = table.rows(self.stats)
        for row in table.ordered(rows, self._sort, flipped=self._flipped):
            cells = [column.cell(row) for column in table.COLUMNS]
            grid.add_row(*cells, style=_colour(State(row["state"])))
        return grid


def show(pool: Run, view: TableView, console: Console) -> bool:
    """Show the live table until the user quits (True) or the pool ends (False)."""
    screen = Layout()
    screen.split_column(Layout(name="view"), Layout(Text(_HELP, style="dim"), size=1))
    with (
        read_keys() as read,
        Live(screen, console=console, screen=True, auto_refresh=False) as live,
    ):
        while True:
            if pool.ended():
                return False
            seen = pool.look()
            if seen is not None:
                view.stats, view.age_s = seen
            screen["view"].update(view.draw())
            live.refresh()
            if any(map(view.press, _KEY.findall(read(_KEY_WAIT_S)))):
                return True


@contextmanager
def read_keys() -> Iterator[Callable[[float], str]]:
    """In the block, single keys can be read from the terminal.

    Yields:
        A function that waits some seconds for keys and returns them, or nothing. On Windows it
        only waits; Ctrl-C ends the table there.
    """
    if sys.platform == "win32":

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


def _colour(state: State) -> str:
    """The colour of an instance's line: it plays, it is on its way or stopped, or it has ended."""
    return "green" if state in _PLAYS else "yellow" if state in LIVE else "red"
