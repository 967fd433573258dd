"""Pools that play in separate processes, and commands that read such a pool from outside."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sc2pool.cli.main import main
from sc2pool.cli.running.runs import choose
from sc2pool.platform import WINDOWS
from tests.support.programs import Trainer, run

PROGRAM = Path(__file__).with_name("playing_pool.py")
COMMAND = (sys.executable, "-m", "sc2pool")
TMUX = shutil.which("tmux")
SCREEN_HEIGHT = 24
SIZES = ("COLUMNS", "LINES")


class PlayingPool(Trainer):
    """A pool of DefeatRoaches that plays at random, and is closed at the end of the block."""

    def __init__(self, game: Path, n: int, spares: int) -> None:
        super().__init__(PROGRAM, game, n, spares)
        self.pid = self.process.pid

    def told(self) -> dict[str, Any]:
        """The content of the pool's live files, as the commands read them."""
        told = choose(None, self.pid).first_poll()
        assert told is not None
        return told

    def ask_to_end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.stdin = None

    def __exit__(self, *_: object) -> None:
        try:
            self.process.communicate(timeout=300)  # the pool ends when its standard input is closed
        finally:
            super().__exit__()


@pytest.fixture(scope="session")
def command() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `sc2pool` with these arguments to its end."""
    return partial(run, *COMMAND)


@pytest.fixture
def in_process(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Runs `sc2pool` with these arguments in this process; returns exit code, stdout and stderr."""

    return lambda *arguments: (main(list(map(str, arguments))), *capsys.readouterr())


@pytest.fixture(scope="session")
def into_closed_pipe() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `sc2pool` with these arguments; its output is a pipe that no process reads any more."""

    def run_unread(
        *arguments: str, closed: str = "stdout", buffered: bool = True
    ) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "PYTHONUNBUFFERED": "" if buffered else "1"}
        reading, writing = os.pipe()
        os.close(reading)
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, closed: writing}
        try:
            return run(*COMMAND, *arguments, **streams, env=env, capture_output=False)
        finally:
            os.close(writing)

    return run_unread


class Screen:
    """A terminal of tmux in which one program runs."""

    def __init__(self, width: int, *program: str) -> None:
        # The socket is not in the test's folder, because its path must be short.
        self._folder = tempfile.mkdtemp(prefix="sc2pool-tmux-", dir="/tmp")
        size = ("-x", str(width), "-y", str(SCREEN_HEIGHT))
        self._tmux("-f", os.devnull, "new-session", "-d", *size, f"exec {shlex.join(program)}")

    def _tmux(self, *arguments: str) -> str:
        assert TMUX is not None
        # pytest-xdist sets two variables of SIZES to the size of its own terminal.
        inherited = {name: value for name, value in os.environ.items() if name not in SIZES}
        env = {**inherited, "LC_ALL": "C.UTF-8", "TERM": "xterm-256color"}
        return run(TMUX, "-u", "-S", f"{self._folder}/socket", *arguments, env=env).stdout

    def lines(self) -> list[str]:
        """The text on the screen."""
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
def screen() -> Iterator[Callable[..., Screen]]:
    """Opens a terminal by `screen(width, program, argument, …)`; skips the test without tmux."""
    if TMUX is None:
        pytest.skip("no tmux on this machine")
    with ExitStack() as opened:

        def open_one(width: int, *program: str) -> Screen:
            made = Screen(width, *program)
            opened.callback(made.close)
            return made

        yield open_one


@pytest.fixture
def start_pool(standin_dir: Path) -> Iterator[Callable[[int], PlayingPool]]:
    """`start_pool(2)` starts a pool of two envs, and returns when the pool plays."""
    with ExitStack() as pools:

        def start(n: int) -> PlayingPool:
            pool = pools.enter_context(PlayingPool(standin_dir, n, 0))
            pool.wait_for_stage("playing")
            return pool

        yield start


@pytest.fixture
def with_hangups() -> Iterator[None]:
    """Lets programs that the test starts get a SIGHUP, which they would ignore under nohup."""
    if WINDOWS:
        yield
        return
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture(scope="module")
def pool(standin_dir: Path, wait_for: Callable[..., None]) -> Iterator[PlayingPool]:
    """A pool of two envs and a spare game, for tests that change nothing."""
    with PlayingPool(standin_dir, 2, 1) as playing:
        playing.wait_for_stage("playing")
        # Wait for the spare's game: a later start would look like a process that a test has left.
        wait_for(lambda: all(row["pid"] for row in playing.told()["instances"]))
        yield playing
