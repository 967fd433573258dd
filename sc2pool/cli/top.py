"""`sc2pool top`: a live table of a running pool, from another terminal.

    ← →  sort by another column    r  the other way round    q  leave

Rules: it only looks, so it cannot disturb what it shows; where the pool ends meanwhile, it says so
and ends well.
"""

from __future__ import annotations

import argparse
import curses
import json
import sys
import time
from typing import Any

from sc2pool.cli import top_table as table
from sc2pool.cli.runs import Run, choose
from sc2pool.errors import ConfigError
from sc2pool.pool.instances.states import State

_KEY_WAIT_MS = 200
_EVENTS = 5
_HELP = "←→ sort   r reverse   q quit"

_GREEN, _YELLOW, _RED = 1, 2, 3
_COLOURS = {_GREEN: curses.COLOR_GREEN, _YELLOW: curses.COLOR_YELLOW, _RED: curses.COLOR_RED}
_BY_STATE = {
    State.PLAYING: _GREEN,
    State.STEPPING: _GREEN,
    State.NEW: _YELLOW,
    State.LAUNCHING: _YELLOW,
    State.IDLE: _YELLOW,
    State.RESETTING: _YELLOW,
    State.PAUSED: _YELLOW,
    State.DEAD: _RED,
    State.FAILED: _RED,
    State.CLOSED: _RED,
}
"""How an instance's line is coloured; the states that are not here have no colour."""


def run(args: argparse.Namespace) -> int:
    """`sc2pool top` with its parsed arguments.

    Returns:
        The exit code.

    Raises:
        ConfigError: there is no pool, or no terminal for a live table.
    """
    pool = choose(args.run_dir, args.pid)
    if args.json or args.once:
        told = pool.first_look()
        if told is None:
            return say_ended(pool)
        if args.json:
            print(json.dumps(told, indent=2))
        else:
            print(table.text(told, args.sort))
        return 0
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ConfigError("a live table needs a terminal: give --once or --json")
    told = pool.first_look()
    if told is not None:
        left = curses.wrapper(Screen(pool, told, args.sort, args.interval).show)
        if left:
            return 0
    return say_ended(pool)


def say_ended(pool: Run) -> int:
    """The last line, where the pool has ended."""
    print(f"the pool of process {pool.pid} has ended")
    return 0


class Screen:
    """The live table.

    Args:
        pool: what to look at.
        told: the first look.
        sort: a column's name.
        interval_s: between two looks.
    """

    def __init__(self, pool: Run, told: dict[str, Any], sort: str, interval_s: float) -> None:
        self._pool = pool
        self._told = told
        self._age_s = 0.0
        self._sort = sort
        self._flipped = False
        self._interval_s = interval_s

    def show(self, window: curses.window) -> bool:
        """Show until the user leaves (True) or the pool ends (False)."""
        curses.use_default_colors()
        for number, colour in _COLOURS.items():
            curses.init_pair(number, colour, -1)
        curses.curs_set(0)
        window.timeout(_KEY_WAIT_MS)
        next_look_s = 0.0
        while True:
            now_s = time.monotonic()
            seen = self._pool.look()  # asked at every turn, however long the interval is
            if now_s >= next_look_s:
                if self._pool.ended():
                    return False
                next_look_s = now_s + self._interval_s
                if seen is not None:
                    self._told, self._age_s = seen
            self._draw(window)
            if self._key(window.getch()):
                return True

    def _key(self, key: int) -> bool:
        """Handle a key; whether it means to leave."""
        step = {curses.KEY_RIGHT: 1, curses.KEY_LEFT: -1}.get(key, 0)
        if step:
            names = table.NAMES
            self._sort = names[(names.index(self._sort) + step) % len(names)]
        elif key == ord("r"):
            self._flipped = not self._flipped
        return key in (ord("q"), 27)

    def _draw(self, window: curses.window) -> None:
        window.erase()
        lines: list[tuple[str, int]] = [
            (line, curses.A_BOLD if number == 0 else 0)
            for number, line in enumerate(table.head_lines(self._told, self._age_s))
        ]
        head = table.head_row(self._sort, flipped=self._flipped)
        lines += [("", 0), (head, curses.A_REVERSE)]
        shown = table.ordered(table.rows(self._told), self._sort, flipped=self._flipped)
        lines += [
            (table.line_of(row), curses.color_pair(_BY_STATE.get(State(row["state"]), 0)))
            for row in shown
        ]
        lines += [("", 0)]
        lines += [(line, curses.A_DIM) for line in table.event_lines(self._told, _EVENTS)]
        height, width = window.getmaxyx()
        for y, (line, attribute) in enumerate(lines[: height - 1]):
            padded = line.ljust(width) if attribute == curses.A_REVERSE else line
            window.addnstr(y, 0, padded, width - 1, attribute)
        window.addnstr(height - 1, 0, _HELP, width - 1, curses.A_DIM)
        window.refresh()
