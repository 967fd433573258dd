"""`GameWindow` on virtual displays: pictures, keys, and errors of windows."""

from __future__ import annotations

import os
import queue
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from gymnasium import spaces

from sc2pool.errors import ConfigError, FaultKind, GameFault
from sc2pool.realtime.env import RealTimeEnv
from sc2pool.realtime.screen import window as module
from sc2pool.realtime.screen.capture import fitted, shrunk
from sc2pool.realtime.screen.program import VirtualDisplay
from sc2pool.realtime.screen.window import GameWindow

pytest.importorskip("mss")
pytest.importorskip("Xlib")
needs_xvfb = pytest.mark.skipif(shutil.which("Xvfb") is None, reason="there is no Xvfb")

PROGRAM = str(Path(__file__).parent / "programs" / "x11_window.py")
GAME = [sys.executable, PROGRAM, "My game"]
SIZE = (160, 120)
BLUE = [0, 0, 255]
ENVIRONMENT = {"PYTHONPATH": os.pathsep.join(sys.path)}


@contextmanager
def started(**options: Any) -> Iterator[GameWindow]:
    with closing(GameWindow.start(GAME, size=SIZE, environment=ENVIRONMENT, **options)) as window:
        yield window


@pytest.fixture
def display(tmp_path: Path) -> Iterator[VirtualDisplay]:
    with closing(VirtualDisplay(tmp_path, SIZE)) as display:
        yield display


@pytest.fixture
def opened(display: VirtualDisplay) -> Iterator[Callable[[str], subprocess.Popen[str]]]:
    """A fixture that opens a window with a title on the display."""
    programs = []

    def open_window(title: str) -> subprocess.Popen[str]:
        program = subprocess.Popen(
            [sys.executable, PROGRAM, title],
            stdout=subprocess.PIPE,
            env={**os.environ, **ENVIRONMENT, "DISPLAY": display.name},
            text=True,
        )
        programs.append(program)
        assert program.stdout is not None
        assert program.stdout.readline() == "open\n"
        return program

    yield open_window
    for program in programs:
        program.kill()
        program.communicate()


# ---- pictures ------------------------------------------------------------------------------------


def test_a_small_frame():
    screen = np.zeros((240, 320, 3), np.uint8)
    screen[:4, 4:8] = 255
    screen[4:8, :4] = (0, 0, 255)  # red, because the order is blue, green, red
    small = shrunk(screen, 60, 80)
    assert small.shape == (1, 60, 80)
    assert small.dtype == np.uint8
    assert small[0, :3, :3].tolist() == [[0, 255, 0], [76, 0, 0], [0, 0, 0]]


def test_a_small_frame_of_any_size():
    screen = np.full((555, 546, 3), 200, np.uint8)
    assert (shrunk(screen, 84, 83) == 200).all()
    assert shrunk(screen, 555, 546).shape == (1, 555, 546)
    with pytest.raises(ConfigError, match=r"60 × 547 pixels, expected .* at most 555 × 546"):
        shrunk(screen, 60, 547)


def test_a_picture_that_was_enlarged_is_reduced():
    screen = np.random.default_rng(0).integers(0, 256, (240, 320, 3), np.uint8)
    assert (fitted(screen, (320, 240)) == screen).all()
    assert (fitted(screen.repeat(2, axis=0).repeat(3, axis=1), (320, 240)) == screen).all()
    assert fitted(screen[:213, :312], (320, 240)).shape == (240, 320, 3)


# ---- a game on its own display -------------------------------------------------------------------


@needs_xvfb
def test_a_started_game_is_seen_and_gets_each_key_once():
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def take(line: bytes) -> bool:
        lines.put(line.rstrip())
        return True

    with started(on_line=take) as window:
        assert window.colours().shape == (120, 160, 3)
        assert (window.colours() == BLUE).all()
        assert (window.grey(12, 16) == 28).all()
        for held in (["Return"], ["a"], ["a", "b"], []):
            window.hold(held)
        window.press("a")
        assert lines.get(timeout=60) == b"open"
        got = [lines.get(timeout=60) for _ in range(8)]
        assert got[:4] == [b"down 0xff0d", b"up 0xff0d", b"down 0x61", b"down 0x62"]
        assert sorted(got[4:6]) == [b"up 0x61", b"up 0x62"]
        assert got[6:] == [b"down 0x61", b"up 0x61"]
        process = psutil.Process(window.pid)
        assert window.log_tail() == ""
        assert window.end() is None
    assert not process.is_running()
    window.close()


@needs_xvfb
def test_a_display_that_ends_is_a_fault():
    older = psutil.Process().children()
    with started() as window:
        (server,) = (
            one for one in psutil.Process().children() if one not in older and one.name() == "Xvfb"
        )
        server.kill()
        with pytest.raises(GameFault, match="Xvfb: it ended: signal SIGKILL") as raised:
            window.colours()
        assert raised.value.kind is FaultKind.CONNECTION_LOST
        with pytest.raises(GameFault, match="Xvfb: it ended"):
            window.hold(["a"])


@needs_xvfb
def test_a_program_that_ends_at_once_is_a_fault_with_its_log():
    command = [sys.executable, "-c", "print('no sound card'); raise SystemExit(3)"]
    with pytest.raises(GameFault, match=r"it ended: exit code 3; its log ends with:\nno sound"):
        GameWindow.start(command, size=SIZE)


@needs_xvfb
def test_a_program_that_opens_no_window_is_a_fault(monkeypatch):
    monkeypatch.setattr(module, "_OPENS_WITHIN_S", 0.1)
    with pytest.raises(GameFault, match=r"sleep: it opened no window in 0.1 s") as raised:
        GameWindow.start(["sleep", "600"], size=SIZE)
    assert raised.value.kind is FaultKind.LAUNCH_FAILED


@pytest.mark.parametrize("size", [(0, 120), (160,), "160x120", (160.0, 120.0)])
def test_a_wrong_size_is_an_error(size):
    with pytest.raises(ConfigError, match="expected width and height in pixels"):
        GameWindow.start(GAME, size=size)


def test_a_missing_program_is_an_error():
    with pytest.raises(ConfigError, match="no program nosuchgame; install it, or give its path"):
        GameWindow.start(["nosuchgame"])


@pytest.mark.parametrize(("package", "name"), [("Xlib", "python-xlib"), ("mss", "mss")])
def test_a_missing_package_names_the_extra(monkeypatch, package, name):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ConfigError, match=rf'needs {name}: .*pip install "sc2pool\[screen\]"'):
        GameWindow.start(GAME)


@needs_xvfb
def test_a_picture_that_stays_the_same_is_a_fault():
    class Still(RealTimeEnv):
        observation_space = spaces.Box(0, 255, (1, 12, 16), np.uint8)
        action_space = spaces.Discrete(2)
        period_s = 0.05
        frozen_after_s = 0.3

        def __init__(self, window: GameWindow) -> None:
            self.window, self.game_pid = window, window.pid

        def begin(self, options: dict[str, Any]) -> None:
            pass

        def act(self, action: np.int64) -> None:
            self.window.hold(["a"] if action else [])

        def observe(self) -> np.ndarray:
            return self.window.grey(12, 16)

    with started() as window, closing(Still(window)) as env:
        env.reset()
        with pytest.raises(GameFault, match=r"the observation has not changed for 0.3 s"):
            for step in range(100):
                env.step(step % 2)


# ---- a window on the desktop ---------------------------------------------------------------------


@needs_xvfb
@pytest.mark.parametrize("how", ["title", "pid"])
def test_a_window_is_found(display, opened, how):
    game = opened("My game, level 1")
    opened("A terminal")
    chosen = {"title": "my GAME"} if how == "title" else {"pid": game.pid}
    with closing(GameWindow.attach(**chosen, display=display.name)) as window:
        assert window.pid == game.pid
        assert (window.grey(12, 16) == 28).all()
        window.hold(["a"])
        assert game.stdout.readline() == "down 0x61\n"
        window.hold([])
        assert game.stdout.readline() == "up 0x61\n"
        window.hold(["b"])
        assert game.stdout.readline() == "down 0x62\n"
    assert game.stdout.readline() == "up 0x62\n"  # `close` has released the key
    assert game.poll() is None


@needs_xvfb
def test_two_windows_and_none_are_errors(display, opened):
    first, second = opened("My game"), opened("My game: settings")
    with pytest.raises(ConfigError, match=r"2 windows have 'My game' in the title: ") as raised:
        GameWindow.attach(title="My game", display=display.name)
    assert f"'My game' of process {first.pid}" in str(raised.value)
    GameWindow.attach(title="My game", pid=second.pid, display=display.name).close()
    with pytest.raises(ConfigError, match=r"no window .* 'Doom' in the title; open windows: 'My"):
        GameWindow.attach(title="Doom", display=display.name)
    with pytest.raises(ConfigError, match="belong to process 1; open windows"):
        GameWindow.attach(pid=1, display=display.name)


@needs_xvfb
def test_a_window_that_is_gone_is_a_fault(display, opened):
    game = opened("My game")
    with closing(GameWindow.attach(title="My game", display=display.name)) as window:
        game.kill()
        game.wait()
        with pytest.raises(GameFault, match="the game's window is closed"):
            while True:  # the server closes the window when it notices the end
                window.grey(12, 16)
        with pytest.raises(GameFault, match="cannot be brought to the front"):
            window.hold(["a"])


@needs_xvfb
def test_a_desktop_belongs_to_one(display, opened, monkeypatch):
    monkeypatch.setattr(module, "_FREE_WITHIN_S", 0.1)
    opened("My game")
    with (
        closing(GameWindow.attach(title="My game", display=display.name)),
        pytest.raises(ConfigError, match="one game can be played there at a time"),
    ):
        GameWindow.attach(title="My game", display=display.name)
    GameWindow.attach(title="My game", display=display.name).close()


@needs_xvfb
def test_a_wrong_key_is_an_error(display, opened):
    opened("My game")
    with closing(GameWindow.attach(title="My game", display=display.name)) as window:
        with pytest.raises(ConfigError, match="there is no key 'jump'; expected a name of X11"):
            window.hold(["jump"])
        window.hold("a")  # a string is one key's name


def test_there_must_be_a_display(monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    with pytest.raises(ConfigError, match=r"there is no display: .*DISPLAY is not set"):
        GameWindow.attach(title="My game")
    with pytest.raises(ConfigError, match="there is no display ':9999'"):
        GameWindow.attach(title="My game", display=":9999")
    with pytest.raises(ConfigError, match="give the title of the game's window or the pid"):
        GameWindow.attach()
