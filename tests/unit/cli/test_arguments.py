"""Readers of the command line's arguments."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import pytest

from sc2pool.cli.arguments import (
    check_file,
    check_writable,
    hint,
    integer,
    numbers_of_games,
    positive_number,
)
from sc2pool.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("150000", 150_000),
        ("150,000", 150_000),
        ("1,500,000", 1_500_000),
        ("150_000", 150_000),
        ("1e5", 100_000),
        ("1.5E3", 1_500),
    ],
)
def test_whole_numbers_as_people_write_them(text: str, value: int) -> None:
    assert integer(1)(text) == value


@pytest.mark.parametrize(
    "text", ["", "0", "-3", "1.5", "1.5e0", "15,00", "1,2", "1e999", "nan", "ten", "1e"]
)
def test_other_texts_than_whole_numbers_are_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="expected a whole number of at least 1"):
        integer(1)(text)


@pytest.mark.parametrize("wrong", ["0", "-1", "a", "1.5", "1e30", "65536", ""])
def test_each_number_of_games_has_a_port(wrong: str) -> None:
    assert numbers_of_games("1,2,1e3,65535") == (1, 2, 1000, 65_535)
    told = f"expected a whole number from 1 to 65535, got '{wrong}'$"
    with pytest.raises(argparse.ArgumentTypeError, match=told):
        numbers_of_games(f"1,{wrong}")


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "soon", ""])
def test_other_texts_than_numbers_above_0_are_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=f"a number above 0, got '{text}'"):
        positive_number(text)


def test_a_device_or_a_pipe_is_not_replaced(tmp_path: Path) -> None:
    """For root this is possible: then the machine has no `/dev/null` any more."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for special in (pipe, Path(os.devnull)):
        with pytest.raises(ConfigError, match=f"^--replay {special} is a device or a pipe"):
            check_file(special, "--replay")


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
def test_a_folder_in_which_not_even_root_can_write() -> None:
    with pytest.raises(ConfigError, match=r"^--out /proc/run: cannot write into /proc \("):
        check_writable(Path("/proc/run"), "--out")


def test_a_guess_leaves_the_dashes_out() -> None:
    known = ["--out", "--task", "-h"]
    assert hint("--bogus", known) == ""
    assert hint("--tasks", known) == "; did you mean --task?"


def test_a_drive_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sc2pool.cli.arguments.os.path.exists", lambda _: False)  # as of Q:
    with pytest.raises(ConfigError, match=r"^--out runs: there is no drive /$"):
        check_writable(Path("runs"), "--out")
