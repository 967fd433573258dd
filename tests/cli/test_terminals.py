"""What `top` and a training show in terminals of several widths, as tmux draws them."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

TMUX = shutil.which("tmux")
WIDTHS = (60, 80, 120, 200)
HEIGHT = 24
SIZES = ("COLUMNS", "LINES")

IMPORTANT = "ENV STATE EPISODES RETURN STEPS/S CPU FAULTS"
PROGRESS = """
import sys
from sc2pool.cli.training.progress import Figures, open_display
with open_display() as display:
    for steps in (0, 123_456):
        display.show(Figures(steps, 1_500_000, 1234.5, -123.45, 12_345, 17))
    sys.stdin.readline()
print("the end")
"""

pytestmark = pytest.mark.skipif(TMUX is None, reason="no tmux on this machine")


class Terminal:
    """A terminal of tmux in which one program runs."""

    def __init__(self, width: int, *program: str) -> None:
        # Not the test's folder: the path of a socket is short.
        self._folder = tempfile.mkdtemp(prefix="sc2pool-tmux-", dir="/tmp")
        size = ("-x", str(width), "-y", str(HEIGHT))
        self._tmux("-f", os.devnull, "new-session", "-d", *size, f"exec {shlex.join(program)}")

    def _tmux(self, *arguments: str) -> str:
        assert TMUX is not None
        # pytest-xdist says in two of them how large its own terminal is.
        inherited = {name: value for name, value in os.environ.items() if name not in SIZES}
        done = subprocess.run(
            [TMUX, "-u", "-S", f"{self._folder}/socket", *arguments],
            env={**inherited, "LC_ALL": "C.UTF-8", "TERM": "xterm-256color"},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        return done.stdout

    def lines(self) -> list[str]:
        """What is on the screen."""
        return [line.rstrip() for line in self._tmux("capture-pane", "-p").splitlines()]

    def shows(self, *texts: str) -> bool:
        screen = "\n".join(self.lines())
        return all(text in screen for text in texts)

    def press(self, *keys: str) -> None:
        self._tmux("send-keys", *keys)

    @property
    def ended(self) -> bool:
        return not self._tmux("list-sessions")

    def close(self) -> None:
        self._tmux("kill-server")
        shutil.rmtree(self._folder)


@pytest.fixture
def terminal() -> Iterator[Callable[..., Terminal]]:
    """Opens terminals: `terminal(width, program, argument, …)`."""
    with ExitStack() as opened:

        def open_one(width: int, *program: str) -> Terminal:
            made = Terminal(width, *program)
            opened.callback(made.close)
            return made

        yield open_one


@pytest.mark.parametrize("width", WIDTHS)
def test_top_shows_all_that_is_important(pool, terminal, wait_for, width):
    screen = terminal(width, sys.executable, "-m", "sc2pool", "top", "--pid", str(pool.pid))
    wait_for(lambda: screen.shows("spare 2", "q quit"), 120)
    lines = screen.lines()
    assert lines[0].startswith("DefeatRoaches · 2 envs, 1 spare")
    head = " ".join(lines[:8])
    for part in ("stand-in, not StarCraft II", "mean return", f"process {pool.pid}", "recycles:"):
        assert part in head
    (titles,) = (line for line in lines if line.startswith("ENV"))
    assert set(IMPORTANT.split()) <= set(titles.replace("▲", "").split())
    for seat in ("env 0", "env 1", "spare 2"):
        (row,) = (line for line in lines if line.startswith(seat))
        state = titles.index("STATE")
        assert re.match(r"[a-z]+ ", row[state:]), "the cells stand below their titles"
    everything = titles.replace("▲", "").split()
    everything += " ".join(lines).partition("hidden:")[2].split()
    for name in ("INST", "PID", "PORT", "STEPS", "MEMORY"):
        assert name in everything
    screen.press("Right")
    wait_for(lambda: screen.shows("INST▼"))
    screen.press("q")
    wait_for(lambda: screen.ended)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_progress_of_a_training_is_never_cut(terminal, wait_for, width):
    screen = terminal(width, sys.executable, "-c", PROGRESS)
    wait_for(lambda: screen.shows("123,456"), 120)
    words = " ".join(" ".join(screen.lines()).split())
    assert "━" in words or "╸" in words, "the bar"
    for part in (
        "123,456 / 1,500,000 steps",
        "18m35s left",
        "1,234 steps/s",
        "mean return -123.45 (12,345 episodes)",
        "17 cut short by faults",
    ):
        assert part in words
    assert words.count("123,456") == 1, "it is redrawn in place"
    screen.press("Enter")
    wait_for(lambda: screen.ended)
