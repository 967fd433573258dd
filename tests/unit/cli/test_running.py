"""Tests `sc2pool top` and `watch`: which run they choose, and the table of the run's pool."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest
from rich.console import Console

from sc2pool.cli.running import top_table as table
from sc2pool.cli.running.runs import NoAnswerError, Run, choose
from sc2pool.cli.running.top import TableView
from sc2pool.cli.table import PIPE_WIDTH
from sc2pool.errors import ConfigError
from sc2pool.pool.machine import RunDir
from sc2pool.pool.report import live_files
from tests.support.programs import talking

# ---- the chosen run ------------------------------------------------------------------------------


@pytest.fixture
def temp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def runs(temp: Path) -> Iterator[list[RunDir]]:
    """The folders of two runs (pools) of this process."""
    with ExitStack() as stack:
        made = [RunDir(), RunDir()]
        for run in made:
            stack.callback(run.close)
        yield made


def test_the_only_one_is_meant(runs):
    runs[1].close()
    chosen = choose(None, None)
    assert (chosen.path, chosen.pid) == (runs[0].path, os.getpid())
    assert choose(None, os.getpid()).path == runs[0].path
    assert choose(runs[0].path, None).pid == os.getpid()


@pytest.mark.parametrize("pid", [None, os.getpid()], ids=["no pid", "its pid"])
def test_of_one_process_the_first_is_meant(runs, pid):
    assert choose(None, pid).path == runs[0].path
    assert choose(runs[1].path, None).path == runs[1].path


OTHER_TRAINER = """
from sc2pool.pool.machine import RunDir
run = RunDir()
print(run.path, flush=True)
input()
run.close()
"""


def answers(run: RunDir, task: str | None, games: int, uptime_s: float) -> None:
    """Write the file with which a pool answers a request, with a time after the request."""
    instances = [{"seat": f"env {env}"} for env in range(games)] + [{"seat": "spare 2"}]
    pool = {"task": task, "instances": instances, "uptime_s": uptime_s}
    file = run.path / live_files.POOL_FILE
    live_files.write(file, pool)
    os.utime(file, (time.time() + 60,) * 2)


def test_several_processes_are_told_apart(runs, temp):
    """The error lists each pool with its task, its games and an option that chooses the pool."""
    answers(runs[0], "MoveToBeacon", 2, 184.0)
    answers(runs[1], None, 1, 5.0)
    environment = {**os.environ, "TMPDIR": str(temp)}
    with talking(sys.executable, "-c", OTHER_TRAINER, env=environment) as other:
        path = Path(other.stdout.readline().strip())
        with pytest.raises(ConfigError, match="3 pools are running: choose one") as caught:
            choose(None, None)
        lines = str(caught.value).splitlines()
        assert f"  --pid {os.getpid()}  MoveToBeacon, 2 games, up 3m04s" in lines
        assert f"  --run {runs[1].path}  envs of your own, 1 of them, up 5s" in lines
        assert any(line.startswith(f"  --pid {other.pid}  does not answer (") for line in lines)
        assert len(lines) == 4
        assert choose(None, other.pid).path == path
        assert choose(None, os.getpid()).path == runs[0].path
        other.communicate("\n")


def test_one_in_another_temp_folder_is_found(runs, tmp_path_factory, monkeypatch, wait_for):
    """The pid of the pool's process is enough to choose the run."""
    runs[1].close()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path_factory.mktemp("other")))
    with pytest.raises(ConfigError, match="no pool of yours is running"):
        choose(None, None)
    environment = {**os.environ, "TMPDIR": str(runs[0].instance_dir(0))}  # a worker's environment
    with (
        subprocess.Popen(["true"]) as ended,
        subprocess.Popen(["sleep", "60"], env=environment) as worker,
    ):
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)  # a zombie, like a killed worker
        wait_for(psutil.Process(worker.pid).environ)  # an environment is empty during exec
        assert choose(None, os.getpid()).path == runs[0].path
        worker.kill()


def test_there_is_none(temp):
    with pytest.raises(ConfigError, match=f"no pool of yours is running .looked in {temp}"):
        choose(None, None)
    with pytest.raises(ConfigError) as caught:
        choose(None, os.getpid())
    assert str(caught.value) == (
        f"no pool of process {os.getpid()} is running, nor another of yours (looked in {temp}; "
        "for one with another TMPDIR give --run)"
    )
    with pytest.raises(ConfigError, match="no pool of yours is running there"):
        choose(temp, None)


def test_a_process_without_a_pool_is_answered_with_those_that_have_one(runs):
    other = os.getppid()
    with pytest.raises(ConfigError) as caught:
        choose(None, other)
    first, *lines = str(caught.value).splitlines()
    assert first == f"no pool of process {other} is running; others are:"
    assert [line.split()[:2] for line in lines] == [
        ["--pid", str(os.getpid())],
        ["--run", str(runs[1].path)],
    ]


def test_one_that_does_not_answer(runs):
    """A file from before the request does not count as an answer."""
    live_files.write(runs[0].path / live_files.POOL_FILE, {"old": True})
    os.utime(runs[0].path / live_files.POOL_FILE, (0, 0))
    with pytest.raises(NoAnswerError, match=f"process {os.getpid()} .*has not answered for 0 s"):
        Run(runs[0].path, os.getpid()).first_poll(timeout_s=0.2)


def test_one_that_ends_before_it_answers(runs):
    run = Run(runs[0].path, os.getpid())
    runs[0].close()
    assert run.ended()
    assert run.first_poll() is None


# ---- the table -----------------------------------------------------------------------------------


FAULT = {
    "event": "fault",
    "at_s": 1000.0,
    "seat": "env 0",
    "instance": 3,
    "cause": "hung",
    "phase": "stepping",
}


def row(seat: str, **more: Any) -> dict[str, Any]:
    place = {"seat": seat, "instance": 0, "pid": 100, "worker_pid": 99, "port": 5000}
    played = {"episode": 70, "episodes": 7, "episode_steps": 12, "episode_return": -3.25}
    costs = {"memory_bytes": 1_234_567_890, "cpu_share": 0.5, "loop_cost_growth": 1.3}
    usual = {"state": "playing", "steps_per_s": 130.04, "replacements": {}, "faults": 0}
    return place | played | costs | usual | more


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
    """The content of a pool's live file, as data."""
    return {
        "trainer_pid": 42,
        "task": "DefeatRoaches",
        "mean_return": 3.14159,
        "realtime": {"steps": 0, "envs": {}},
        "at_s": 1061.0,
        "uptime_s": 61,
        "game_version": "4.10",
        "instances": ROWS,
        "steps_per_s": None,
        "env_steps": 1234,
        "episodes": 5,
        "launches": 4,
        "resets": 9,
        "replacements": {"hung": 1},
        "recovery_s": {"count": 1, "max": 2.0},
        "events": [],
        **more,
    }


def drawn(view: TableView, width: int = PIPE_WIDTH, height: int | None = None) -> list[str]:
    """The table's drawn lines: in a file or, if a height is given, in a terminal of this size."""
    file = io.StringIO()
    console = Console(file=file, width=width, highlight=False, markup=False)
    console.print(view.draw(width, height))
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_a_line():
    replacements = {"soft-age": 1, "hung": 2, "deadline": 2}
    one = row("env 3", replacements=replacements, faults=4)
    line = drawn(TableView(told(instances=[one]), "env"))[5]
    shown = "env 3 0 100 5000 playing 7 12 -3.2 130.0 1.2G 50% 130% 4 deadline 2 hung 2 soft-age 1"
    assert " ".join(line.split()) == shown
    names = "pid port episodes steps_per_s memory_bytes cpu_share loop_cost_growth".split()
    unknown = dict.fromkeys(names)
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
    for key, head in (("\x1b[C", "INST▼"), ("\x1bOD", "ENV▲"), ("\x1b[D", "REPLACED▲")):
        assert not view.press(key)
        assert head in drawn(view)[4]
    assert "GAP" not in drawn(view)[4]
    assert view.press("q")


def test_without_a_game_the_worker_stands_for_it():
    (shown,) = table.rows(told(instances=[row("env 0", pid=None)]))
    assert shown["pid"] == 99


def test_won_matches_are_shown_for_the_opponents_met_last():
    results = {"win": 3, "loss": 1, "tie": 0, "undecided": 1}
    matches = {f"step-{n}": results for n in range(7)}
    head = " ".join(drawn(TableView(told(matches=matches), "env"), 200)[:6])
    assert "matches won · 3 of 5 against step-0" in head
    assert "step-4 · 2 more opponents" in head
    assert "step-5" not in head
    assert "matches" not in " ".join(drawn(TableView(told(matches={}), "env")))


def test_a_match_shows_the_pids_of_both_games():
    match = row("env 0", other_games=[{"pid": 101, "port": 5001}])
    view = TableView(told(instances=[match, row("env 1")]), "env")
    head, *lines = drawn(view)[4:7]
    assert "PID   GUEST" in head
    assert " 100     101 " in lines[0]
    assert f" 100       {table.NONE} " in lines[1]
    assert "GUEST" not in drawn(TableView(told(), "env"))[4]


def test_the_whole_table():
    fault = FAULT | {"detail": "no reply\nfor 10 s"}
    view = TableView(told(events=[{"event": "launch", "at_s": 1000.0}, fault]), "env")
    view.age_s = 9
    lines = drawn(view)
    assert lines[:3] == [
        "DefeatRoaches · 3 envs, 1 spare · 4.10 · as of 9s ago",
        "1,234 steps, –/s · mean return 3.14 · 5 episodes · process 42, up 1m01s",
        "replaced: hung 1 · recovered within 2.0 s · 4 launches, 9 resets",
    ]
    assert lines[5].startswith("env 0 ")
    assert lines[-1] == " 1m01s ago  env 0, instance 3: hung while stepping: no reply for 10 s"


def test_the_stand_in_is_named_as_such():
    shown = drawn(TableView(told(game_version="standin-0.1"), "env"))[0]
    assert shown.endswith("standin-0.1 (stand-in, not StarCraft II)")
    assert drawn(TableView(told(task=None, game_version=None), "env"))[0] == (
        "envs of your own · 3 envs, 1 spare · no game"
    )


def test_in_real_time_the_gaps_are_shown():
    gap = {"p50": 0.004, "p95": 0.012, "max": 1.25}
    envs = {"env 9": {"gap_s": gap}, "env 0": {"gap_s": None}}
    late = {"steps": 9, "misses": 3, "gap_s": gap, "envs": envs}
    view = TableView(told(realtime=late), "gap")
    lines = drawn(view)
    assert (
        lines[3] == "in real time · gap 4.0ms, 95 % within 12ms, longest 1.2s · 3 actions too late"
    )
    assert "GAP▼" in lines[5]
    assert lines[6].startswith("env 9")
    assert " 12ms " in lines[6]


IMPORTANT = {
    60: "ENV STATE EPISODES RETURN STEPS/S CPU FAULTS",
    80: "ENV STATE EPISODES STEPS RETURN STEPS/S MEMORY CPU FAULTS",
    120: "ENV INST PID PORT STATE EPISODES STEPS RETURN STEPS/S MEMORY CPU FAULTS",
}


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_a_narrow_terminal_hides_the_least_important_columns(width):
    replacements = {
        "game-exited": 3,
        "soft-episodes": 12,
        "deadline": 1,
        "port-taken": 1,
        "hung": 2,
    }
    view = TableView(
        told(instances=[*ROWS, row("env 3", replacements=replacements, faults=7)]), "return"
    )
    lines = drawn(view, width)
    assert max(map(len, lines)) <= width
    assert not any("…" in line for line in lines)
    titles = next(line for line in lines if line.startswith("ENV")).replace("▼", "").split()
    assert set(IMPORTANT[min(width, 120)].split()) <= set(titles)
    for cause, count in replacements.items():
        assert f"{cause} {count}" in "\n".join(lines)


@pytest.mark.parametrize("name", table.NAMES)
def test_the_column_of_the_order_is_never_hidden(name):
    lines = drawn(TableView(told(), name), 60)
    assert max(map(len, lines)) <= 60
    assert any("▲" in line or "▼" in line for line in lines)


@pytest.mark.parametrize(("width", "height"), [(60, 12), (80, 24), (60, 50)])
def test_a_low_terminal_scrolls(width, height):
    envs = [row(f"env {number}") for number in range(64)]
    fault = FAULT | {"detail": "no reply for 10 s, and a long story about it " * 3}
    view = TableView(told(instances=envs, events=[fault] * 9), "env")
    seen = set()
    for _ in range(64):
        lines = drawn(view, width, height)
        assert len(lines) == height
        assert max(map(len, lines)) <= width
        assert "q quit" in "".join(lines[-2:])
        seen |= {line.split()[1] for line in lines if line.startswith("env ")}
        assert not view.press("\x1b[B")
    assert seen == {str(number) for number in range(64)}
    for _ in range(100):
        view.press("\x1bOA")
    assert any(line.startswith("env 0 ") for line in drawn(view, width, height))


def test_hidden_columns_are_named():
    lines = drawn(TableView(told(), "env"), 80, 24)
    assert "hidden: INST PORT" in "\n".join(lines[-2:])
    assert "hidden" not in "\n".join(drawn(TableView(told(), "env"), 200, 24))


def test_no_name_is_a_command_to_the_terminal():
    """Control characters are escaped in names (from files) and in texts (from a game)."""
    fault = FAULT | {"detail": "\x1b[2J"}
    matches = {"\x1b]0;title\x07": {"win": 1, "loss": 0, "tie": 0, "undecided": 0}}
    view = TableView(
        told(task="\x1b[1A", game_version="\x9b2J", events=[fault], matches=matches), "env"
    )
    lines = drawn(view)
    assert all(line.isprintable() for line in lines)
    assert any(r"\x1b]0;title\x07" in line for line in lines)
