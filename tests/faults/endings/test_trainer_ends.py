"""Tests that workers and games end with their trainer, however the trainer ends."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from functools import partial

import psutil
import pytest
from doors import DOORS
from fault_pools import processes_of
from trainer_of_envs import StartsPrograms

from sc2pool import SubprocSC2VecEnv
from tests.contract.envs import Mischief
from tests.support.programs import GONE_WITHIN_S, PER_GAME, assert_gone, by_the_kernel
from tests.support.systems import strike

pytestmark = pytest.mark.usefixtures("swept")


def assert_all_gone(children: list[psutil.Process]) -> None:
    assert len(children) == 2 + 2 * PER_GAME, "two workers and two games"
    assert_gone(children)


@pytest.mark.parametrize(
    ("stage", "delay_s"),
    [
        ("constructing", 0.0),
        ("constructing", 0.1),
        ("constructing", 0.4),
        ("resetting", 0.01),
    ],
)
def test_killed_at_random_instants(trainer, stage, delay_s):
    """The trainer is killed; as after each test, a fixture checks that nothing is left of it."""
    victim = trainer("trains")
    victim.wait_for_stage(stage)
    time.sleep(delay_s)  # a random instant of the stage
    victim.process.kill()
    assert victim.process.wait(GONE_WITHIN_S) == -signal.SIGKILL


HANGING_IMPORT = """
import sys, time
if any("sc2pool.pool.worker" in argument for argument in sys.orig_argv):
    time.sleep(60)
"""


@by_the_kernel
def test_killed_while_workers_import(trainer, wait_for, monkeypatch, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(HANGING_IMPORT)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    victim = trainer("trains")
    victim.wait_for_stage("constructing")
    program = psutil.Process(victim.process.pid)
    wait_for(lambda: len(program.children()) == 2)
    workers = program.children()
    victim.process.kill()
    try:
        assert_gone([min(workers, key=psutil.Process.create_time)])
    finally:
        for worker in workers:  # perhaps a worker does not watch its trainer yet
            with suppress(psutil.NoSuchProcess):
                worker.kill()


def test_killed_while_children_are_stopped(trainer):
    """A stopped process does not notice that its lifeline, the pipe from its trainer, is closed."""
    victim = trainer("trains")
    victim.wait_for_stage("training")
    for child in victim.children:
        child.suspend()
    victim.process.kill()
    assert_all_gone(victim.children)


@pytest.mark.parametrize(
    "state",
    [
        "steps",
        "is paused",
        "is stopped",
        pytest.param("hangs", marks=by_the_kernel),
        pytest.param("has forked", marks=by_the_kernel),
    ],
)
def test_killed_with_envs_that_have_started_programs(start_trainer, state):
    """Programs that envs have started must end, in whatever state the envs' worker is."""
    victim = start_trainer("trainer_of_envs.py", state)
    fork = victim.wait_for_stage("training")["fork"]
    victim.process.kill()
    try:
        assert len(victim.children) == 3, "a worker, a program, and a program of the program's"
        assert_gone(victim.children)
    finally:
        if fork is not None:
            os.kill(fork, signal.SIGKILL)
        for child in victim.children:
            with suppress(psutil.NoSuchProcess):
                child.kill()


def test_ends_without_closing(trainer, run_temp):
    ended = trainer("exits")
    ended.wait_for_stage("training")
    assert ended.process.wait(10.0) == 3
    assert_all_gone(ended.children)
    assert list(run_temp.glob("sc2pool-run-*")) == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_next_pool_sweeps_what_a_killed_trainer_left(trainer, make_env, run_temp, number):
    victim = trainer("trains")
    victim.wait_for_stage("training")
    victim.process.send_signal(number)
    assert_all_gone(victim.children)
    assert victim.process.wait(GONE_WITHIN_S) == -number
    (left,) = run_temp.glob("sc2pool-run-*")
    make_env(n=1)
    assert not left.exists()
    assert len(list(run_temp.glob("sc2pool-run-*"))) == 1


@pytest.mark.timing
@pytest.mark.parametrize(
    ("stage", "delay_s"),
    [("constructing", 0.0), ("constructing", 0.1), ("resetting", 0.0), ("training", 0.1)],
)
def test_interrupted(trainer, stage, delay_s):
    """Ctrl-C raises KeyboardInterrupt in the training loop, which can then close its pool."""
    interrupted = trainer("trains")
    interrupted.wait_for_stage(stage)
    time.sleep(delay_s)  # a random instant of the stage
    interrupted.process.send_signal(signal.SIGINT)
    said = interrupted.wait_for_stage("interrupted")
    assert said["close_s"] < 5.0
    assert said["children"] == []
    assert interrupted.process.wait(5.0) == 0


@pytest.mark.timing
def test_close_ends_stopped_processes(begun):
    env = begun()
    children = [process for index in range(2) for process in processes_of(env, index).values()]
    for child in children:
        strike(child.pid, "STOP")
    began_s = time.monotonic()
    env.close()
    assert time.monotonic() - began_s < GONE_WITHIN_S
    # The system reaps the games, because their worker, which is their parent, has ended.
    assert_gone(children)
    env.close()


def test_close_ends_processes_that_envs_left():
    env = SubprocSC2VecEnv([StartsPrograms] * 2)
    env.reset()
    children = psutil.Process().children(recursive=True)
    assert len(children) == 2 * 3
    env.close()
    assert_gone(children)


def test_a_second_interrupt_cuts_the_grace_of_closing_short():
    """If the slow close of a user's envs is interrupted, no process may be left."""
    env = SubprocSC2VecEnv([partial(Mischief, "close", partial(time.sleep, 60))] * 2)
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


ENDS_WITHIN_S = 60.0
"""The time limit for a program's end, which takes as long as `close` if a resource is lacking."""


@pytest.mark.timing
@pytest.mark.parametrize(
    "door",
    [
        pytest.param(door, marks=by_the_kernel if door == "it becomes a daemon" else ())
        for door in DOORS
    ],
)
def test_nothing_stays(start_trainer, standin_dir, door):
    program = start_trainer("doors.py", standin_dir, door)
    program.wait_for_stage("playing")
    assert len(program.children) == 1 + PER_GAME, "a worker and a game"
    assert program.process.stdin is not None
    program.process.stdin.write("\n")
    program.process.stdin.flush()
    if "another program" not in door:
        program.process.wait(ENDS_WITHIN_S)
    assert_gone(program.children)
