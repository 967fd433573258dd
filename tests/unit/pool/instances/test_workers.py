"""The end of a worker takes all of its group with it, and is told in words."""

from __future__ import annotations

import threading

import psutil
import pytest

from sc2pool.deadline import Deadline
from sc2pool.platform import WINDOWS
from sc2pool.pool.instances.workers import WorkerProcess
from tests.support.programs import has_ended
from tests.support.systems import SLEEPS, start_group

STARTS = "import subprocess; game = subprocess.Popen({}); print(game.pid, flush=True)"
has_signals = pytest.mark.skipif(WINDOWS, reason="a process has an exit code alone")


def started(program: str) -> tuple[WorkerProcess, bytes]:
    """A worker that runs this, and the first line that it prints."""
    group = start_group(program)
    with group.process.stdout as told:
        line = told.readline()
    return WorkerProcess(group), line


def test_its_game_ends_with_it(wait_for):
    worker, pid = started(f"{STARTS.format(SLEEPS)}; game.wait()")
    game = psutil.Process(int(pid))
    worker.end()
    assert worker.how_it_ended() == ("exited with status 1" if WINDOWS else "was killed by SIGKILL")
    wait_for(lambda: has_ended(game))
    worker.end()


def test_children_left_by_a_worker_are_ended(wait_for):
    worker, pid = started(STARTS.format(SLEEPS))
    left = psutil.Process(int(pid))
    worker.wait(Deadline.after(5.0), threading.Event())
    assert left.is_running()
    worker.end()
    assert worker.how_it_ended() == "exited with status 0"
    wait_for(lambda: has_ended(left))


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("raise SystemExit(3)", "status 3"),
        pytest.param("import os; os.kill(os.getpid(), 15)", "SIGTERM", marks=has_signals),
        pytest.param("import os; os.kill(os.getpid(), 40)", "killed by 40", marks=has_signals),
    ],
)
def test_how_it_ended_by_itself(program, words):
    worker, _ = started(program)
    worker.wait(Deadline.after(5.0), threading.Event())
    worker.end()
    assert words in worker.how_it_ended()


def test_it_may_not_have_ended():
    worker, _ = started("print(flush=True); import time; time.sleep(60)")
    worker.wait(Deadline.after(0.05), threading.Event())
    assert "could not be reaped" in worker.how_it_ended()
    worker.end()
