"""The table of `sc2pool top`, as it is drawn where no line is cut."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from sc2pool.cli import top_table as table
from sc2pool.cli.table import PIPE_WIDTH
from sc2pool.cli.top import TableView


def row(seat: str, **more: Any) -> dict[str, Any]:
    return {
        "seat": seat,
        "instance": 0,
        "pid": 100,
        "worker_pid": 99,
        "port": 5000,
        "state": "playing",
        "episode": 7,
        "episode_steps": 12,
        "episode_return": -3.25,
        "steps_per_s": 130.04,
        "memory_bytes": 1_234_567_890,
        "cpu_share": 0.5,
        "recycles": {},
        "faults": 0,
        **more,
    }


ROWS = [
    row("spare 10", memory_bytes=3, state="ready"),
    row("env 10", memory_bytes=None, state="launching"),
    row("env 9", memory_bytes=1),
    row("env 0", memory_bytes=2),
]


@pytest.mark.parametrize(
    ("sort", "flipped", "seats"),
    [
        ("env", False, ["env 0", "env 9", "env 10", "spare 10"]),
        ("env", True, ["spare 10", "env 10", "env 9", "env 0"]),
        ("memory", False, ["spare 10", "env 0", "env 9", "env 10"]),
        ("memory", True, ["env 9", "env 0", "spare 10", "env 10"]),
        ("state", False, ["env 10", "env 9", "env 0", "spare 10"]),
    ],
)
def test_order(sort, flipped, seats):
    ordered = table.ordered(ROWS, sort, flipped=flipped)
    assert [each["seat"] for each in ordered] == seats


def told(**more: Any) -> dict[str, Any]:
    """What a pool shows of itself."""
    return {
        "trainer_pid": 42,
        "at_s": 1061.0,
        "uptime_s": 61,
        "game_version": "4.10",
        "instances": ROWS,
        "steps_per_s": None,
        "env_steps": 1234,
        "episodes": 5,
        "launches": 4,
        "resets": 9,
        "recycles": {"hung": 1},
        "recovery_s": {"count": 1, "max": 2.0},
        "events": [],
        **more,
    }


def drawn(view: TableView) -> list[str]:
    """The lines in a file."""
    file = io.StringIO()
    Console(file=file, width=PIPE_WIDTH, highlight=False, markup=False).print(view.draw())
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_a_line():
    recycles = {"soft-age": 1, "hung": 2, "deadline": 2}
    one = row("env 3", recycles=recycles, faults=4)
    line = drawn(TableView(told(instances=[one]), "env"))[5]
    shown = "env 3 0 100 5000 playing 7 12 -3.2 130.0 1.2G 50% 4 deadline 2 hung 2 soft-age 1"
    assert " ".join(line.split()) == shown
    unknown = dict.fromkeys(("pid", "port", "episode", "steps_per_s", "memory_bytes", "cpu_share"))
    one = row("env 3", **unknown | {"worker_pid": None})
    line = drawn(TableView(told(instances=[one]), "env"))[5]
    assert line.count(table.NONE) == len(unknown) + 1


def test_heads_stand_over_their_columns():
    view = TableView(told(), "memory")
    head, line = drawn(view)[4:6]
    assert head.index("STATE") == line.index("ready")
    assert head.index("PORT") + len("PORT") == line.index("5000") + len("5000")
    assert "MEMORY▼" in head
    assert not view.press("r")
    assert "MEMORY▲" in drawn(view)[4]


def test_keys_sort_by_another_column():
    view = TableView(told(), "env")
    for key, head in (("\x1b[C", "INST▼"), ("\x1bOD", "ENV▲"), ("\x1b[D", "RECYCLES▲")):
        assert not view.press(key)
        assert head in drawn(view)[4]
    assert view.press("q")


def test_without_a_game_the_worker_stands_for_it():
    (shown,) = table.rows({"instances": [row("env 0", pid=None)]})
    assert shown["pid"] == 99


def test_the_whole_table():
    fault = {
        "event": "fault",
        "at_s": 1000.0,
        "seat": "env 0",
        "instance": 3,
        "cause": "hung",
        "phase": "stepping",
        "detail": "no reply\nfor 10 s",
    }
    view = TableView(told(events=[{"event": "launch", "at_s": 1000.0}, fault]), "env")
    view.age_s = 9
    lines = drawn(view)
    assert lines[:3] == [
        "process 42, up 1m01s · 4.10 · 3 envs, 1 spare · as of 9s ago",
        "1,234 steps, –/s · 5 episodes · 4 launches · 9 resets",
        "recycles: hung 1 · recovered within 2.0 s",
    ]
    assert lines[5].startswith("env 0 ")
    assert lines[-1] == " 1m01s ago  env 0, instance 3: hung while stepping: no reply for 10 s"
