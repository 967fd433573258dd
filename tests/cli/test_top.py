"""`sc2pool top` as a user runs it: in another terminal than the training."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

IMPORTANT = "ENV STATE EPISODES RETURN STEPS/S CPU FAULTS"
"""The columns that even a narrow terminal shows."""


class Terminal:
    """A terminal of 120 × 30 with `sc2pool top` in it."""

    def __init__(self, *arguments: str) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 120, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "sc2pool", "top", *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm"},
            start_new_session=True,
        )
        os.close(theirs)
        self.shown = ""

    def wait_for(self, text: str, timeout_s: float = 20.0) -> None:
        """Read on until this text was shown."""
        deadline_s = time.monotonic() + timeout_s
        while text not in self.shown:
            left_s = deadline_s - time.monotonic()
            assert left_s > 0, f"no {text!r} in {self.shown!r}"
            if select.select([self._ours], [], [], left_s)[0]:
                with suppress(OSError):  # what Linux says at a terminal's end
                    self.shown += os.read(self._ours, 65536).decode(errors="replace")

    def press(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)


@pytest.fixture
def terminal() -> Iterator[Callable[..., Terminal]]:
    """Opens terminals."""
    opened: list[Terminal] = []

    def open_one(*arguments: str) -> Terminal:
        opened.append(Terminal(*arguments))
        return opened[-1]

    yield open_one
    for each in opened:
        each.close()


def test_the_table_once(pool, command):
    done = command("top", "--once")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("DefeatRoaches · 2 envs, 1 spare · standin")
    assert lines[0].endswith("(stand-in, not StarCraft II)")
    assert f"process {pool.pid}, up " in lines[1]
    assert "recycles: none" in lines[2]
    assert [line.split()[:2] for line in lines[5:8]] == [["env", "0"], ["env", "1"], ["spare", "2"]]
    for line in lines[5:8]:
        assert psutil.Process(int(line.split()[3])).is_running()


def test_json_tells_what_is_going_on(pool, command, wait_for):
    done = command("top", "--json", "--pid", str(pool.pid))
    assert done.returncode == 0, done.stderr
    before = json.loads(done.stdout)
    assert before["trainer_pid"] == pool.pid
    assert {row["seat"] for row in before["instances"]} == {"env 0", "env 1", "spare 2"}
    for row in before["instances"]:
        game = psutil.Process(row["pid"])
        assert game.ppid() == row["worker_pid"]
        assert row["memory_bytes"] > 10_000_000
        assert row["listener"] == "proven"
        assert isinstance(row["episode_return"], float)
    # Every step is counted where it is sent and, later, where its transition is handed out.
    wait_for(lambda: pool.told()["env_steps"] > before["env_steps"])
    after = pool.told()
    sent = sum(row["steps"] for row in after["instances"])
    assert 0 <= sent - after["env_steps"] <= 2
    assert after["steps_per_s"] > 0
    assert 0 < sum(row["cpu_share"] for row in after["instances"]) < 3


def test_rows_are_sorted_as_asked(pool, command):
    done = command("top", "--once", "--sort", "inst")
    numbers = [int(line.split()[2]) for line in done.stdout.splitlines()[5:8]]
    assert numbers == sorted(numbers, reverse=True)
    assert "INST▼" in done.stdout


def test_with_nobody_looking_nothing_is_written(pool, wait_for):
    """The window closes by itself: the files are as old as the last look."""
    pool.told()
    (run,) = [
        path for path in Path(tempfile.gettempdir()).glob("sc2pool-run-*") if (path / "0").exists()
    ]
    file = run / "pool.json"
    assert run.stat().st_mode & 0o777 == 0o700

    def nobody_looks_any_more() -> bool:
        newest = file.stat().st_mtime_ns
        time.sleep(0.5)  # the pool would have written twice meanwhile
        return file.stat().st_mtime_ns == newest

    wait_for(nobody_looks_any_more)
    steps = pool.told()["env_steps"]  # and opens again
    assert steps > 0


def test_the_live_table(pool, terminal):
    screen = terminal()
    screen.wait_for("spare 2")
    screen.wait_for("q quit")
    assert "ENV▲" in screen.shown
    screen.press("r")
    screen.wait_for("▼")
    screen.press("\x1bOC")  # the right arrow, as an xterm sends it
    screen.wait_for("INST▲")
    screen.press("q")
    assert screen.process.wait(10) == 0


@pytest.mark.parametrize("width", [60, 120])
def test_the_screen_shows_all_that_is_important(pool, screen, wait_for, width):
    shown = screen(width, sys.executable, "-m", "sc2pool", "top", "--pid", str(pool.pid))
    wait_for(lambda: shown.shows("spare 2", "q quit"), 120)
    lines = shown.lines()
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
    shown.press("Right")
    wait_for(lambda: shown.shows("INST▼"))
    shown.press("q")
    wait_for(lambda: shown.ended)


def test_a_killed_game_shows_and_so_does_the_end(start_pool, command, terminal, wait_for):
    pool = start_pool(2)
    screen = terminal("--pid", str(pool.pid))
    screen.wait_for("recycles: none")
    struck = pool.told()["instances"][1]
    os.kill(struck["pid"], signal.SIGKILL)
    screen.wait_for("game-exited 1")
    wait_for(lambda: pool.told()["recovery_s"])
    told = pool.told()
    whole, hurt = told["instances"]
    assert (whole["recycles"], hurt["recycles"]) == ({}, {"game-exited": 1})
    assert hurt["instance"] == 2
    assert hurt["pid"] != struck["pid"]
    (fault,) = [event for event in told["events"] if event["event"] == "fault"]
    assert (fault["seat"], fault["instance"], fault["cause"]) == ("env 1", 1, "game-exited")
    table = command("top", "--once", "--pid", str(pool.pid)).stdout
    assert "recycles: game-exited 1 · recovered within" in table
    assert "ago  env 1, instance 1: game-exited while" in table
    pool.ask_to_end()
    screen.wait_for(f"the pool of process {pool.pid} has ended")
    assert screen.process.wait(10) == 0


@pytest.mark.parametrize("argument", ["--json", "--once"])
def test_into_a_closed_pipe(pool, into_closed_pipe, argument):
    done = into_closed_pipe("top", "--pid", str(pool.pid), argument)
    assert (done.returncode, done.stderr) == (141, "")


def test_a_live_table_needs_a_terminal(pool, command):
    done = command("top")
    assert done.returncode == 2
    assert "give --once or --json" in done.stderr
