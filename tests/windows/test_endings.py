"""A program's workers and games end with it, however it ends; a training is saved if possible.

A Job Object ends the processes.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from sc2pool.cli.stop import Stop
from sc2pool.game.program.process import RING_BYTES, Output, read_tail
from sc2pool.pool.machine import sweep
from tests.windows.programs import CLOSED, CTRL_BREAK, tell

Program = Callable[..., subprocess.Popen[str]]
GONE_WITHIN_S = 2.0


def wait_for_stage(process: subprocess.Popen[str], stage: str) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip() == stage:
            return
    raise AssertionError(f"it ended before it was {stage}")


@pytest.mark.parametrize(
    ("stage", "delay_s"),
    [("constructing", 0.5), ("constructing", 2.5), ("resetting", 0.0), ("training", 0.5)],
)
def test_a_killed_trainer_leaves_no_process(
    program: Program, run_temp: Path, stage: str, delay_s: float
) -> None:
    trainer = program("trains")
    wait_for_stage(trainer, stage)
    time.sleep(delay_s)  # wait for a random instant of the stage
    family = psutil.Process(trainer.pid).children(recursive=True)
    trainer.kill()
    assert psutil.wait_procs(family, GONE_WITHIN_S)[1] == []
    trainer.wait()
    sweep(run_temp)  # `sweep` deletes the run's folder, as the next pool would do
    assert list(run_temp.glob("sc2pool-run-*")) == []


def test_a_child_that_is_being_started_ends_with_its_parent(
    program: Program, wait_for: Callable[..., None]
) -> None:
    before = set(psutil.pids())
    for number in range(10):
        parent = program("starts_children")
        wait_for_stage(parent, "starting")
        time.sleep(number / 20)  # the program is killed while a child starts
        parent.kill()
        parent.wait()
    wait_for(lambda: set(psutil.pids()) <= before, GONE_WITHIN_S)


def test_a_killed_owner_ends_its_job(program: Program) -> None:
    owner = program("owns_a_family")
    assert owner.stdout is not None
    family = [psutil.Process(int(pid)) for pid in owner.stdout.readline().split()]
    assert len(family) == 2
    owner.kill()
    assert psutil.wait_procs(family, GONE_WITHIN_S)[1] == []


def test_a_closed_job_ends_its_members(program: Program) -> None:
    owner = program("owns_a_family")
    assert owner.stdout is not None
    assert owner.stdin is not None
    family = [psutil.Process(int(pid)) for pid in owner.stdout.readline().split()]
    owner.stdin.close()
    assert owner.wait(20) == 0
    assert psutil.wait_procs(family, GONE_WITHIN_S)[1] == []


@pytest.mark.parametrize("event", [CTRL_BREAK, CLOSED], ids=["Ctrl-Break", "console closed"])
def test_an_event_of_the_console_asks_for_the_end(
    event: int, wait_for: Callable[..., None]
) -> None:
    stop = Stop()
    with stop.handling(), stop.polite():
        tell(event)
        wait_for(lambda: stop.signal == signal.SIGBREAK)


def test_a_closed_console_saves_the_model(program: Program, tmp_path: Path) -> None:
    trainer = program("saves", str(tmp_path))
    printed, _ = trainer.communicate(timeout=300)
    assert trainer.returncode == 128 + signal.SIGBREAK, printed
    assert (tmp_path / "model.zip").exists()


def test_what_a_child_has_printed_is_left_after_its_worker(tmp_path: Path) -> None:
    """The file that outlives a worker must hold the bytes that its child has printed."""
    lines = f"import sys; sys.stdout.buffer.write(b'a line\\n' * {RING_BYTES // 5})"
    output = Output(tmp_path / "log")
    child = subprocess.Popen([sys.executable, "-c", lines], stdout=output.writing_end)
    output.hand_over()
    child.wait(60)
    printed = output.tail(ended=True)
    assert len(printed) == RING_BYTES
    assert printed.endswith(b"\na line\n")
    assert read_tail(tmp_path / "log") == printed
    output.close()
