"""Ctrl-C in a session that continues, as in a notebook: the next reset gives a working pool.

An interrupt is raised where a chosen function of the package begins, so the same instant can be
tried again. Python looks there, and after calls, whether a signal has come. `scripts/chaos.py`
tries thousands by timer.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import psutil
import pytest

import sc2pool
from sc2pool import SC2VectorEnv, SubprocSC2VecEnv
from sc2pool.errors import ClosedError, InterruptedCallError
from sc2pool.pool.pool import Pool
from sc2pool.pool.queues.doorbell import Waiter
from sc2pool.processes.uninterrupted import submit
from tests.contract.envs import Counting

PACKAGE = str(Path(sc2pool.__file__).parent)
N = 2
WAITER = type(Waiter.create())


@contextmanager
def interrupt_at(call: int) -> Iterator[list[int]]:
    """Raise KeyboardInterrupt as this call of one of the package's functions begins.

    Args:
        call: counted from here; 0 for none.

    Gives a list of one number: how many calls there were.
    """
    calls = [0]

    def trace(frame: FrameType, event: str, _: Any) -> None:
        del event
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return
        calls[0] += 1
        if calls[0] == call:
            sys.settrace(None)
            raise KeyboardInterrupt

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield calls
    finally:
        sys.settrace(before)


def calls_in(work: Callable[[], Any]) -> int:
    """How many of the package's functions this calls; a wait may make it differ."""
    with interrupt_at(0) as calls:
        work()
    return calls[0]


def assert_it_works(env: Any, step: Callable[[], Any]) -> None:
    observations = env.reset()
    if isinstance(observations, tuple):
        observations = observations[0]
    assert observations.tolist() == [[0.0]] * N
    for number in (1.0, 2.0):
        assert step()[0].tolist() == [[number]] * N


@pytest.mark.parametrize("env_class", [SubprocSC2VecEnv, SC2VectorEnv])
@pytest.mark.parametrize("what", ["step", "reset"])
def test_at_any_instant_of_a_call(env_class: type, what: str) -> None:
    env = env_class([Counting] * N)

    def step() -> Any:
        return env.step(np.zeros(N, np.int64))

    work = {"step": step, "reset": env.reset}[what]
    env.reset()
    fewest = min(calls_in(work) for _ in range(3))
    struck = 0
    for part in (0.0, 0.4, 0.8):
        env.reset()
        try:
            with interrupt_at(1 + int(part * fewest)):
                work()  # a wait may be shorter than the others, and the instant never come
        except KeyboardInterrupt:
            struck += 1
        assert_it_works(env, step)
        assert len(psutil.Process().children()) == N
    assert struck > 0
    env.close()


def test_torn_records_say_so_until_the_reset(monkeypatch: pytest.MonkeyPatch) -> None:
    env = SubprocSC2VecEnv([Counting] * N)
    env.reset()

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("sc2pool.pool.stepping.stepping.Stepping.begin", interrupted)
        with pytest.raises(KeyboardInterrupt):
            env.reset()
    actions = np.zeros(N, np.int64)
    for call in (
        lambda: env.step(actions),
        env.pause,
        lambda: env.get_attr("count"),
        lambda: env.set_attr("count", 1),
    ):
        with pytest.raises(InterruptedCallError, match="reset all envs first"):
            call()
    assert env.stats().instances[0].state
    assert_it_works(env, lambda: env.step(actions))
    env.close()


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9])
def test_at_any_instant_of_the_construction_and_the_end(part: float) -> None:
    """Nothing is left, neither of a pool that was never made nor of one that was being closed."""
    whole: list[SubprocSC2VecEnv] = []
    construction = calls_in(lambda: whole.append(SubprocSC2VecEnv([Counting])))
    end = calls_in(whole[0].close)
    before = psutil.Process().num_fds()
    made: list[SubprocSC2VecEnv] = []
    with interrupt_at(1 + int(part * construction)), suppress(KeyboardInterrupt):
        made.append(SubprocSC2VecEnv([Counting]))
    for one in made:
        one.close()
    env = SubprocSC2VecEnv([Counting])
    env.reset()
    with interrupt_at(1 + int(part * end)), suppress(KeyboardInterrupt):
        env.close()
    env.close()
    assert psutil.Process().num_fds() == before
    assert not psutil.Process().children()


def test_a_call_after_the_wait_was_interrupted_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the instants at which records change, an interrupt costs nothing but the call."""
    env = SubprocSC2VecEnv([Counting] * N)
    env.reset()
    workers = {process.pid for process in psutil.Process().children()}

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    env.step_async(np.zeros(N, np.int64))
    with monkeypatch.context() as patch:
        patch.setattr(WAITER, "wait", interrupted)
        patch.setattr(WAITER, "wait_for", interrupted)
        with pytest.raises(KeyboardInterrupt):
            while True:  # the replies may be there before the wait
                env.step_wait()
                env.step_async(np.zeros(N, np.int64))
    assert_it_works(env, lambda: env.step(np.zeros(N, np.int64)))
    assert {process.pid for process in psutil.Process().children()} == workers
    env.close()


def test_an_interrupted_recv_may_be_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    env = SubprocSC2VecEnv([Counting] * N)
    env.reset()
    pool: Pool = env.pool
    number = 1
    pool.send(np.zeros(1, np.int64), [1])

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(WAITER, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            while True:  # the reply may be there before the wait
                assert pool.recv().observations.tolist() == [[number % 3]]
                number += 1
                pool.send(np.zeros(1, np.int64), [1])
    batch = pool.recv()
    assert batch.envs.tolist() == [1]
    assert batch.observations.tolist() == [[number % 3]]
    env.close()


def test_an_alarm_of_the_users_in_the_construction_arrives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A TimeoutError is an OSError, but none of those with which the system refuses a process."""

    def interrupted(work: Callable[[], Any]) -> Any:
        submit(work).result()
        raise TimeoutError("the user's alarm")

    monkeypatch.setattr("sc2pool.pool.instances.instance.uninterrupted", interrupted)
    with pytest.raises(TimeoutError, match="the user's alarm"):
        SubprocSC2VecEnv([Counting])
    assert not psutil.Process().children()


@pytest.mark.parametrize("call", ["step", "reset"])
def test_a_handler_that_closes_ends_the_call_with_closed_error(
    monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    env = SubprocSC2VecEnv([Counting] * N)
    env.reset()
    wait, wait_for = WAITER.wait, WAITER.wait_for
    actions = np.zeros(N, np.int64)

    def closing(original: Callable[..., Any]) -> Callable[..., Any]:
        def wait(*arguments: Any) -> Any:
            env.close()  # as a signal handler that returns does
            return original(*arguments)

        return wait

    monkeypatch.setattr(WAITER, "wait", closing(wait))
    monkeypatch.setattr(WAITER, "wait_for", closing(wait_for))
    with pytest.raises(ClosedError, match=r"has closed the pool|the pool is closed"):
        while True:  # the replies may be there before the wait
            env.step(actions) if call == "step" else env.reset()
