"""Pools that play in a process of their own, and the command that looks at them from another."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from sc2pool.cli.running.runs import choose

PROGRAM = Path(__file__).with_name("playing_pool.py")


class PlayingPool:
    """A pool of DefeatRoaches that plays at random until `end`."""

    def __init__(self, game: Path, n: int, spares: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(PROGRAM), str(game), str(n), str(spares)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    @property
    def pid(self) -> int:
        return self.process.pid

    def wait_until_it_plays(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "playing\n"

    def told(self) -> dict[str, Any]:
        """What it shows of itself, as the commands see it."""
        told = choose(None, self.pid).first_poll()
        assert told is not None
        return told

    def ask_to_end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.stdin = None

    def end(self) -> None:
        """Have it close its pool, and wait for that."""
        try:
            self.process.communicate(timeout=300)
        finally:
            self.process.kill()
            self.process.wait()


StartPool = Callable[..., PlayingPool]


def sc2pool(*arguments: str, timeout_s: float = 30.0) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    return subprocess.run(
        [sys.executable, "-m", "sc2pool", *arguments],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


@pytest.fixture(scope="session")
def command() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `sc2pool` with these arguments to its end."""
    return sc2pool


@pytest.fixture
def start_pool(standin_dir: Path) -> Iterator[StartPool]:
    """Starts a pool; `start_pool(n=2, spares=0)` returns when it plays."""
    with ExitStack() as pools:

        def start(n: int = 1, spares: int = 0) -> PlayingPool:
            pool = PlayingPool(standin_dir, n, spares)
            pools.callback(pool.end)
            pool.wait_until_it_plays()
            return pool

        yield start


@pytest.fixture(scope="module")
def pool(standin_dir: Path, wait_for: Callable[..., None]) -> Iterator[PlayingPool]:
    """A pool of two envs and a spare, for tests that only look."""
    playing = PlayingPool(standin_dir, 2, 1)
    try:
        playing.wait_until_it_plays()
        # The spare's game may come up later: no test has started it, so none is to end it.
        wait_for(lambda: all(row["pid"] for row in playing.told()["instances"]))
        yield playing
    finally:
        playing.end()
