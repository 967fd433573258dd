"""Workers are a background group of the trainer's terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("prints_on_terminal.py")


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """A terminal that stops background groups which print (`stty tostop`): both its ends."""
    ours, theirs = pty.openpty()
    attributes = termios.tcgetattr(theirs)
    attributes[3] |= termios.TOSTOP
    termios.tcsetattr(theirs, termios.TCSANOW, attributes)
    yield ours, theirs
    os.close(ours)


def test_an_env_prints(terminal: tuple[int, int]) -> None:
    ours, theirs = terminal
    program = subprocess.Popen(
        [sys.executable, PROGRAM],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    said = b""
    with suppress(OSError):  # the end of a terminal
        while part := os.read(ours, 1 << 16):
            said += part
    assert program.wait(30) == 0, said.decode()
    *_, faults = said.decode().splitlines()
    assert faults == "[]"
    assert said.count(b"a line of the env's") == 6
