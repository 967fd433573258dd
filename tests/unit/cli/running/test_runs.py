"""Which running pool is meant, and one that does not answer; only their folders are real here."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from sc2pool.cli.running.runs import NoAnswerError, Run, choose
from sc2pool.errors import ConfigError
from sc2pool.pool.machine.run_dir import RunDir
from sc2pool.pool.report import live_files


@pytest.fixture
def temp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def runs(temp: Path) -> Iterator[list[RunDir]]:
    """Two runs of this process."""
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
from sc2pool.pool.machine.run_dir import RunDir
run = RunDir()
print(run.path, flush=True)
input()
run.close()
"""


def answers(run: RunDir, task: str | None, games: int, uptime_s: float) -> None:
    """Write what a pool says of itself; its time lets it count as written just after a request."""
    instances = [{"seat": f"env {env}"} for env in range(games)] + [{"seat": "spare 2"}]
    pool = {"task": task, "instances": instances, "uptime_s": uptime_s}
    file = run.path / live_files.POOL_FILE
    live_files.write(file, pool)
    os.utime(file, (time.time() + 60,) * 2)


def test_several_processes_are_told_apart(runs, temp):
    """By what they play; the first pool of a process needs no path."""
    answers(runs[0], "MoveToBeacon", 2, 184.0)
    answers(runs[1], None, 1, 5.0)
    with subprocess.Popen(
        [sys.executable, "-c", OTHER_TRAINER],
        env={**os.environ, "TMPDIR": str(temp)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
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
    """By its pid."""
    runs[1].close()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path_factory.mktemp("other")))
    with pytest.raises(ConfigError, match="no pool of yours is running"):
        choose(None, None)
    environment = {**os.environ, "TMPDIR": str(runs[0].instance_dir(0))}  # as workers have it
    with (
        subprocess.Popen(["true"]) as ended,
        subprocess.Popen(["sleep", "60"], env=environment) as worker,
    ):
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)  # a zombie, as a killed worker is
        wait_for(psutil.Process(worker.pid).environ)  # the system shows none in the midst of exec
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
    """What is left from an earlier look is no answer."""
    live_files.write(runs[0].path / live_files.POOL_FILE, {"old": True})
    os.utime(runs[0].path / live_files.POOL_FILE, (0, 0))
    with pytest.raises(NoAnswerError, match=f"process {os.getpid()} .*has not answered for 0 s"):
        Run(runs[0].path, os.getpid()).first_poll(timeout_s=0.2)


def test_one_that_ends_before_it_answers(runs):
    run = Run(runs[0].path, os.getpid())
    runs[0].close()
    assert run.ended()
    assert run.first_poll() is None
