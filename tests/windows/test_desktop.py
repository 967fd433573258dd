"""SuperTux's env on the desktop: a window's keys and its picture."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from sc2pool.errors import ConfigError, GameFault
from sc2pool.realtime.screen import desktop
from sc2pool.realtime.screen.capture import Screen

RETURN, SPACE, RIGHT = "0x1c", "0x39", "0x14d"


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
    with closing(desktop.Desktop()) as keys:
        keys.aim_at(window.pid)
        for held in (("Return",), ("Right",), ("Right", "space"), ()):
            keys.hold(held)
    assert window.stdout is not None
    got = [window.stdout.readline().split() for _ in range(6)]
    assert got[:3] == [["down", RETURN], ["up", RETURN], ["down", RIGHT]]
    assert got[3] == ["down", SPACE]
    assert sorted(got[4:]) == [["up", RIGHT], ["up", SPACE]]


def test_the_picture_is_the_windows(window: subprocess.Popen[str]) -> None:
    pytest.importorskip("mss")
    with closing(desktop.Desktop()) as keys:
        keys.aim_at(window.pid)
        with closing(Screen(keys.name, keys.area)) as screen:
            picture = screen.colours()
    assert picture.shape == (240, 320, 3)
    assert (picture == (0, 0, 255)).all()


def test_a_window_that_is_gone_is_a_fault(window: subprocess.Popen[str]) -> None:
    with closing(desktop.Desktop()) as keys:
        keys.aim_at(window.pid)
        window.kill()
        window.wait()
        with pytest.raises(GameFault, match="cannot be brought to the front"):
            keys.hold(("Right",))
        with pytest.raises(GameFault, match="its window is not open"):
            keys.area()


def test_the_desktop_belongs_to_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desktop, "_FREE_WITHIN_S", 0.1)
    first = desktop.Desktop()
    with pytest.raises(ConfigError, match="one can be played at a time"):
        desktop.Desktop()
    first.close()
    desktop.Desktop().close()
