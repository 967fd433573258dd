"""The parts of the SuperTux env that need no game."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest

from examples.supertux.clock import ElasticClock
from examples.supertux.env import SuperTuxEnv
from examples.supertux.game import State, parse_state
from examples.supertux.log import LogFile
from examples.supertux.needs import check_installed
from examples.supertux.screen import SMALL_SHAPE, fitted, shrunk
from sc2pool.errors import ConfigError


@pytest.mark.parametrize(
    ("comes_at", "late", "misses", "next_due"),
    [
        ([0, 7, 14], 0, 0, 21),
        ([1, 9], 2, 0, 14),  # the next one is due at the same tick
        ([0, 13], 6, 0, 14),
        ([0, 14], 7, 1, 21),  # a whole period late: the clock restarts
        ([0, 30, 38], 1, 3, 44),
        ([0, 3], 0, 0, 14),  # an early action changes nothing
    ],
)
def test_the_clock(comes_at, late, misses, next_due):
    clock = ElasticClock(7, 0)
    for now in comes_at:
        clock.begin_period(now)
    assert (clock.late, clock.misses, clock.due) == (late, misses, next_due)


def test_a_state_is_parsed_and_other_lines_are_ignored():
    state = parse_state(b"[SCRIPTING] run 3 412 1 96.5 385.196 0 -700\n")
    assert state == State(3, 412, True, 96.5, 385.196, 0.0, -700.0)
    assert parse_state(b"[SCRIPTING] run away\n"[:11]) is None
    assert parse_state(b"[WARNING] level_parser.cpp:181 run 1 2\n") is None


def test_a_small_frame():
    screen = np.zeros((240, 320, 3), np.uint8)
    screen[:4, 4:8] = 255
    screen[4:8, :4] = (0, 0, 255)  # red, of blue, green and red
    small = shrunk(screen)
    assert small.shape == SMALL_SHAPE
    assert small.dtype == np.uint8
    assert small[0, :3, :3].tolist() == [[0, 255, 0], [76, 0, 0], [0, 0, 0]]


def test_a_picture_that_was_enlarged_is_reduced():
    screen = np.random.default_rng(0).integers(0, 256, (240, 320, 3), np.uint8)
    assert (fitted(screen) == screen).all()
    assert (fitted(screen.repeat(2, axis=0).repeat(3, axis=1)) == screen).all()
    assert fitted(screen[:213, :312]).shape == (240, 320, 3)


def test_a_log_file_is_read_as_it_grows_and_left_as_it_was(tmp_path):
    path = tmp_path / "game" / "console.err"
    path.parent.mkdir()
    path.write_bytes(b"of an older run\n")
    log = LogFile(path)
    ended = threading.Event()
    with path.open("ab", buffering=0) as game:
        lines = log.lines(ended.is_set)
        game.write(b"one\ntwo, in")
        assert next(lines) == b"one\n"
        # The second half comes while the reader waits for it.
        rest = threading.Timer(0.05, game.write, [b" two parts\n"])
        rest.start()
        assert next(lines) == b"two, in two parts\n"
        rest.join()
        game.write(b"last words\n")
        ended.set()
        assert list(lines) == [b"last words\n"]
    log.close()
    assert path.read_bytes() == b"of an older run\n"


def test_a_missing_game_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("examples.supertux.needs._GAME_FOLDER", str(tmp_path))
    with pytest.raises(ConfigError, match=r"no program supertux2; .*apt-get install .*supertux"):
        SuperTuxEnv()


def test_windows_needs_no_display_server(monkeypatch, tmp_path):
    (tmp_path / "supertux2").touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("examples.supertux.needs._MODULES", ())
    monkeypatch.setattr("examples.supertux.needs.WINDOWS", True)
    check_installed()


def test_a_missing_python_package_says_what_to_install(monkeypatch, tmp_path):
    for name in ("supertux2", "Xvfb"):
        (tmp_path / name).touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "Xlib", None)
    with pytest.raises(ConfigError, match=r'module Xlib; .*pip install "sc2pool\[supertux\]"'):
        SuperTuxEnv()
