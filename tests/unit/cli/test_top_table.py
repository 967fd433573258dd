"""The table of `sc2pool top`, line by line."""

from __future__ import annotations

from typing import Any

import pytest

from sc2pool.cli import top_table as table


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


def test_a_line():
    line = table.line_of(row("env 3", recycles={"soft-age": 1, "hung": 2, "deadline": 2}, faults=4))
    shown = "env 3 0 100 5000 playing 7 12 -3.2 130.0 1.2G 50% 4 deadline 2 hung 2 sof…"
    assert " ".join(line.split()) == shown
    unknown = dict.fromkeys(("pid", "port", "episode", "steps_per_s", "memory_bytes", "cpu_share"))
    assert table.line_of(row("env 3", **unknown)).count(table.NONE) == len(unknown) + 1


def test_heads_stand_over_their_columns():
    line, head = table.line_of(ROWS[3]), table.head_row("memory")
    assert head.index("STATE") == line.index("playing")
    assert head.index("PORT") + len("PORT") == line.index("5000") + len("5000")
    assert "MEMORY▼" in head
    assert "MEMORY▲" in table.head_row("memory", flipped=True)


def test_without_a_game_the_worker_stands_for_it():
    (shown,) = table.rows({"instances": [row("env 0", pid=None)]})
    assert shown["pid"] == 99


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.9, "0s"), (59, "59s"), (184, "3m04s"), (7500, "2h05m"), (273_600, "3d04h")],
)
def test_duration(seconds, text):
    assert table.duration(seconds) == text


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
    told = {
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
        "events": [{"event": "launch", "at_s": 1000.0}, fault],
    }
    lines = table.text(told, "env", age_s=9).splitlines()
    assert lines[:3] == [
        "process 42, up 1m01s · 4.10 · 3 envs, 1 spare · told 9s ago",
        "1,234 steps, –/s · 5 episodes · 4 launches · 9 resets",
        "recycles: hung 1 · recovered within 2.0 s",
    ]
    assert lines[5].startswith("env 0 ")
    assert lines[-1] == " 1m01s ago  env 0, instance 3: hung while stepping: no reply for 10 s"
