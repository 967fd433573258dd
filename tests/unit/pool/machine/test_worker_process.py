"""The end of a worker takes all of its group with it, and is told in words."""

from __future__ import annotations

import os
import subprocess
import threading

import psutil
import pytest

from sc2pool.deadline import Deadline
from sc2pool.pool.machine.worker_process import WorkerProcess
from sc2pool.processes.follower import Follower
from tests.support.programs import has_ended


def started(script: str) -> tuple[WorkerProcess, str]:
    """A worker that runs this, and the first line that it prints."""
    process = subprocess.Popen(
        ["sh", "-c", script], process_group=0, stdout=subprocess.PIPE, text=True
    )
    with process.stdout as told:
        line = told.readline()
    return WorkerProcess(Follower(process, os.open(os.devnull, os.O_RDONLY))), line


def test_its_game_ends_with_it(wait_for):
    worker, pid = started("sleep 60 & echo $!; wait")
    game = psutil.Process(int(pid))
    worker.end()
    assert worker.how_it_ended() == "was killed by SIGKILL"
    wait_for(lambda: has_ended(game))
    worker.end()


def test_children_left_by_a_worker_are_ended(wait_for):
    worker, pid = started("sleep 60 >/dev/null & echo $!")
    left = psutil.Process(int(pid))
    worker.wait(Deadline.after(5.0), threading.Event())
    assert left.is_running()
    worker.end()
    assert worker.how_it_ended() == "exited with status 0"
    wait_for(lambda: has_ended(left))


@pytest.mark.parametrize(
    ("script", "words"),
    [("exit 3", "status 3"), ("kill -TERM $$", "SIGTERM"), ("kill -40 $$", "killed by 40")],
)
def test_how_it_ended_by_itself(script, words):
    worker, _ = started(script)
    worker.wait(Deadline.after(5.0), threading.Event())
    worker.end()
    assert words in worker.how_it_ended()


def test_it_may_not_have_ended():
    worker, _ = started("echo; exec sleep 60")
    worker.wait(Deadline.after(0.05), threading.Event())
    assert "could not be reaped" in worker.how_it_ended()
    worker.end()
