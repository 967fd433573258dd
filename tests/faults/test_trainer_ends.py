"""However the trainer ends, its workers and games end with it."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from fault_pools import MakeEnv, processes_of, step
from fault_tasks import SlowToClose, strike

from sc2pool import SC2GymEnv, SubprocSC2VecEnv
from sc2pool.pool.run_dir import sweep

GONE_WITHIN_S = 2.0
TRAINER = Path(__file__).with_name("trainer.py")


class Trainer:
    """A running training program."""

    def __init__(self, game: Path, ending: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, TRAINER, game, ending],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.children: list[psutil.Process] = []

    def wait_for_stage(self, stage: str) -> dict[str, Any]:
        """What the program says when it gets there."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            said: dict[str, Any] = json.loads(line)
            if said["stage"] == stage:
                self.children = [psutil.Process(pid) for pid in said.get("children", [])]
                return said
        raise AssertionError(f"it never got to {stage!r}: {self.process.communicate()[1]}")

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def trainer(standin_dir: Path) -> Iterator[Callable[[str], Trainer]]:
    """Starts a training program."""
    trainers: list[Trainer] = []

    def start(ending: str) -> Trainer:
        trainers.append(Trainer(standin_dir, ending))
        return trainers[-1]

    yield start
    for started in trainers:
        started.end()


@pytest.fixture(autouse=True)
def swept(run_temp: Path) -> Iterator[None]:
    """What a killed trainer leaves behind is swept by the next pool; here, after the test."""
    yield
    sweep(run_temp)


def assert_all_gone(children: list[psutil.Process]) -> None:
    assert len(children) == 4, "two workers and two games"
    _, left = psutil.wait_procs(children, timeout=GONE_WITHIN_S)
    # A zombie has ended; when it is reaped is up to whoever inherited it.
    assert [child for child in left if child.status() != psutil.STATUS_ZOMBIE] == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_killed(trainer: Callable[[str], Trainer], number: signal.Signals) -> None:
    victim = trainer("trains")
    victim.wait_for_stage("training")
    victim.process.send_signal(number)
    assert_all_gone(victim.children)
    assert victim.process.wait(GONE_WITHIN_S) == -number


def test_killed_while_children_are_stopped(trainer: Callable[[str], Trainer]) -> None:
    """A stopped process reads no lifeline."""
    victim = trainer("trains")
    victim.wait_for_stage("training")
    for child in victim.children:
        child.suspend()
    victim.process.kill()
    assert_all_gone(victim.children)


@pytest.mark.parametrize(("ending", "status"), [("exits", 3), ("raises", 1)])
def test_ends_without_closing(
    trainer: Callable[[str], Trainer], run_temp: Path, ending: str, status: int
) -> None:
    ended = trainer(ending)
    ended.wait_for_stage("training")
    assert ended.process.wait(10.0) == status
    assert_all_gone(ended.children)
    assert list(run_temp.glob("sc2pool-run-*")) == []


def test_the_next_pool_sweeps_what_a_killed_trainer_left(
    trainer: Callable[[str], Trainer], make_env: MakeEnv, run_temp: Path
) -> None:
    victim = trainer("trains")
    victim.wait_for_stage("training")
    victim.process.kill()
    assert_all_gone(victim.children)
    (left,) = run_temp.glob("sc2pool-run-*")
    make_env(n=1)
    assert not left.exists()
    assert len(list(run_temp.glob("sc2pool-run-*"))) == 1


def test_dropped_without_closing(standin_dir: Path) -> None:
    env = SC2GymEnv(task="MoveToBeacon", game=standin_dir)
    env.reset()
    children = psutil.Process().children(recursive=True)
    assert len(children) == 2
    del env
    gc.collect()
    _, left = psutil.wait_procs(children, timeout=GONE_WITHIN_S)
    # A zombie has ended; when it is reaped is up to whoever inherited it.
    assert [child for child in left if child.status() != psutil.STATUS_ZOMBIE] == []


@pytest.mark.parametrize("stage", ["constructing", "resetting", "training"])
@pytest.mark.parametrize("delay_s", [0.0, 0.1])
def test_interrupted(trainer: Callable[[str], Trainer], stage: str, delay_s: float) -> None:
    """Ctrl-C is a KeyboardInterrupt for the training loop, which can close what it has."""
    interrupted = trainer("trains")
    interrupted.wait_for_stage(stage)
    time.sleep(delay_s)  # into the stage: the instant is what is tried out
    interrupted.process.send_signal(signal.SIGINT)
    said = interrupted.wait_for_stage("interrupted")
    assert said["close_s"] < 5.0
    assert said["children"] == []
    assert interrupted.process.wait(5.0) == 0


def test_close_ends_what_is_stopped(make_env: MakeEnv) -> None:
    env = make_env()
    env.reset()
    children = [process for index in range(2) for process in processes_of(env, index).values()]
    for child in children:
        strike(child.pid, "STOP")
    began_s = time.monotonic()
    env.close()
    assert time.monotonic() - began_s < GONE_WITHIN_S
    # The games have lost the worker that was their parent: the system reaps them.
    _, left = psutil.wait_procs(children, timeout=GONE_WITHIN_S)
    # A zombie has ended; when it is reaped is up to whoever inherited it.
    assert [child for child in left if child.status() != psutil.STATUS_ZOMBIE] == []
    env.close()


def test_close_with_a_step_pending(make_env: MakeEnv) -> None:
    env = make_env()
    env.reset()
    step(env, 0, 0)
    env.step_async([0, 0])
    env.close()
    assert psutil.Process(os.getpid()).children() == []


def test_a_second_interrupt_cuts_the_grace_of_closing_short() -> None:
    """User environments may take their time to close; who interrupts that loses no process."""
    env = SubprocSC2VecEnv([SlowToClose] * 2)
    env.reset()
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            env.close()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert psutil.Process().children() == []
    env.close()
