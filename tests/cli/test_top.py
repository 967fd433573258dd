"""`sc2pool top` as a user runs it: in another terminal than the training."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest

IMPORTANT = "ENV STATE EPISODES RETURN STEPS/S CPU FAULTS"
"""The columns that even a narrow terminal shows."""


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


@pytest.mark.parametrize("width", [60, 120])
def test_the_screen_shows_all_that_is_important(pool, screen, wait_for, width):
    shown = screen(width, *top(pool.pid))
    wait_for(lambda: shown.shows("spare 2", "q quit"), 120)
    lines = shown.lines()
    assert lines[0].startswith("DefeatRoaches · 2 envs, 1 spare")
    head = " ".join(lines[:8])
    for part in ("stand-in, not StarCraft II", "mean return", f"process {pool.pid}", "recycles:"):
        assert part in head
    (titles,) = (line for line in lines if line.startswith("ENV▲"))
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
    shown.press("r")
    wait_for(lambda: shown.shows("INST▲"))
    shown.press("q")
    wait_for(lambda: shown.shows("exit code 0"))


def top(pid: int) -> tuple[str, ...]:
    """`sc2pool top` for a terminal, which shows its exit code and waits."""
    command = shlex.join([sys.executable, "-m", "sc2pool", "top", "--pid", str(pid)])
    return "sh", "-c", f"{command}; echo exit code $?; read -r _"


def test_a_killed_game_shows_and_so_does_the_end(start_pool, command, screen, wait_for):
    pool = start_pool(2)
    shown = screen(120, *top(pool.pid))
    wait_for(lambda: shown.shows("recycles: none"), 120)
    struck = pool.told()["instances"][1]
    os.kill(struck["pid"], signal.SIGKILL)
    wait_for(lambda: shown.shows("game-exited 1"))
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
    wait_for(lambda: shown.shows(f"the pool of process {pool.pid} has ended", "exit code 0"))


@pytest.mark.parametrize("argument", ["--json", "--once"])
def test_into_a_closed_pipe(pool, into_closed_pipe, argument):
    done = into_closed_pipe("top", "--pid", str(pool.pid), argument)
    assert (done.returncode, done.stderr) == (141, "")


def test_a_live_table_needs_a_terminal(pool, command):
    done = command("top")
    assert done.returncode == 2
    assert "give --once or --json" in done.stderr


def test_a_terminal_that_cannot_redraw_is_none(pool, screen, wait_for):
    shown = screen(120, "env", "TERM=dumb", *top(pool.pid))
    wait_for(lambda: shown.shows("give --once or --json", "exit code 2"))
