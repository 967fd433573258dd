"""The end of a worker takes all of its group with it, and is told in words."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import psutil
import pytest

from sc2pool.deadline import Deadline
from sc2pool.pool.machine.worker_process import WorkerProcess
from sc2pool.processes.follower import Follower

WITH_A_GAME = """
import subprocess
game = subprocess.Popen(["sleep", "60"])
print(game.pid, flush=True)
game.wait()
"""


def as_worker(process: subprocess.Popen[bytes]) -> WorkerProcess:
    return WorkerProcess(Follower(process, os.open(os.devnull, os.O_RDONLY)))


def start(*command: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, process_group=0, stdout=subprocess.PIPE)


def test_its_game_ends_with_it(wait_for):
    process = start(sys.executable, "-c", WITH_A_GAME)
    assert process.stdout is not None
    with process.stdout as told:
        game = psutil.Process(int(told.readline()))
    worker = as_worker(process)
    worker.end()
    assert worker.how_it_ended() == "was killed by SIGKILL"
    wait_for(lambda: not game.is_running() or game.status() == psutil.STATUS_ZOMBIE)
    worker.end()


def test_children_left_by_a_worker_are_ended(wait_for):
    process = start("sh", "-c", "sleep 60 >/dev/null & echo $!")
    assert process.stdout is not None
    with process.stdout as told:
        left = psutil.Process(int(told.readline()))
    worker = as_worker(process)
    worker.wait(Deadline.after(5.0), threading.Event())
    assert left.is_running()
    worker.end()
    assert worker.how_it_ended() == "exited with status 0"
    wait_for(lambda: not left.is_running() or left.status() == psutil.STATUS_ZOMBIE)


@pytest.mark.parametrize(
    ("command", "words"),
    [("exit 3", "status 3"), ("kill -TERM $$", "SIGTERM"), ("kill -40 $$", "killed by 40")],
)
def test_how_it_ended_by_itself(command, words):
    process = start("sh", "-c", command)
    assert process.stdout is not None
    process.stdout.close()
    worker = as_worker(process)
    worker.wait(Deadline.after(5.0), threading.Event())
    worker.end()
    assert words in worker.how_it_ended()


def test_it_may_not_have_ended():
    process = start("sleep", "60")
    assert process.stdout is not None
    process.stdout.close()
    worker = as_worker(process)
    worker.wait(Deadline.after(0.05), threading.Event())
    assert "could not be reaped" in worker.how_it_ended()
    worker.end()
