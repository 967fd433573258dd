"""`GameWindow` on Windows' desktop: keys to a window, and the window's picture."""

from __future__ import annotations

import queue
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from sc2pool.errors import ConfigError, GameFault
from sc2pool.realtime.screen import window as module
from sc2pool.realtime.screen.window import GameWindow

pytest.importorskip("mss")

RETURN, SPACE, RIGHT, A = "0x1c", "0x39", "0x14d", "0x1e"


@pytest.fixture
def window() -> Iterator[subprocess.Popen[str]]:
    program = Path(__file__).with_name("key_window.py")
    with subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE, text=True) as window:
        assert window.stdout is not None
        try:
            if "no display" in window.stdout.readline():
                pytest.skip("no display")
            yield window
        finally:
            window.kill()


def test_a_window_gets_the_keys_and_each_once(window: subprocess.Popen[str]) -> None:
    with closing(GameWindow.attach(pid=window.pid)) as game:
        for held in (("Return",), ("Right",), ("Right", "space"), (), ("a",)):
            game.hold(held)
    assert window.stdout is not None
    got = [window.stdout.readline().split() for _ in range(8)]
    assert got[:3] == [["down", RETURN], ["up", RETURN], ["down", RIGHT]]
    assert got[3] == ["down", SPACE]
    assert sorted(got[4:6]) == [["up", RIGHT], ["up", SPACE]]
    assert got[6:] == [["down", A], ["up", A]]  # `close` releases the key


def test_a_started_game_gets_the_keys_and_ends_with_its_window() -> None:
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def take(line: bytes) -> bool:
        lines.put(line.strip())
        return True

    program = Path(__file__).with_name("key_window.py")
    try:
        game = GameWindow.start([sys.executable, str(program)], size=(320, 240), on_line=take)
    except GameFault:
        pytest.skip("no display")
    with closing(game):
        assert lines.get(timeout=60) == b"open"
        game.press("a")
        assert [lines.get(timeout=60) for _ in range(2)] == [b"down 0x1e", b"up 0x1e"]
        assert game.colours().shape == (240, 320, 3)
        assert game.end() is None
    assert game.end() is not None


def test_the_picture_is_the_windows(window: subprocess.Popen[str]) -> None:
    with closing(GameWindow.attach(title="keys", pid=window.pid, size=(320, 240))) as game:
        picture = game.colours()
    assert picture.shape == (240, 320, 3)
    assert (picture == (0, 0, 255)).all()


def test_a_window_that_is_gone_is_a_fault(window: subprocess.Popen[str]) -> None:
    with closing(GameWindow.attach(pid=window.pid)) as game:
        window.kill()
        window.wait()
        with pytest.raises(GameFault, match="cannot be brought to the front"):
            game.hold(("Right",))
        with pytest.raises(GameFault, match="window is not open"):
            game.grey(12, 16)


def test_the_desktop_belongs_to_one(
    window: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_FREE_WITHIN_S", 0.1)
    with (
        closing(GameWindow.attach(pid=window.pid)),
        pytest.raises(ConfigError, match="one game can be played there at a time"),
    ):
        GameWindow.attach(pid=window.pid)
    GameWindow.attach(pid=window.pid).close()


def test_windows_that_are_wanted_and_not_there(window: subprocess.Popen[str]) -> None:
    with pytest.raises(
        ConfigError, match=r"no window .* 'Doom' in the title; open windows: .*keys"
    ):
        GameWindow.attach(title="Doom")
    with (
        closing(GameWindow.attach(title="KEYS")) as game,
        pytest.raises(ConfigError, match="there is no key 'jump'; expected a letter"),
    ):
        game.hold(["jump"])
