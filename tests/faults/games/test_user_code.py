"""Tests that errors and nonsense of user code end a pool, and tests calls to hung or dead envs.

Tests of all kinds of nonsense are in `tests/unit/tasks/test_episode_rules.py` and
`tests/unit/pool/test_slots.py`.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from fault_pools import LENIENT, assert_fault, processes_of, step
from fault_tasks import (
    HOOKS,
    Cancelled,
    Counter,
    DictObservation,
    DisturbsItsLoop,
    Hanging,
    Raises,
    Rewarding,
    UserBugError,
    right_observation,
)

from sc2pool import SubprocSC2VecEnv
from sc2pool.config import Limits, PoolConfig
from sc2pool.errors import ClosedError, ObservationError, UserCodeError
from tests.support.programs import assert_gone

CLOSES_WITHIN_S = 5.0


def assert_failed_for_good(env: Any) -> None:
    """Check that no process runs even before `close`, and that two calls of `close` are quick."""
    assert_gone(psutil.Process().children(recursive=True))
    with pytest.raises(ClosedError, match="the pool has failed"):
        step(env, *[0] * env.num_envs)
    began_s = time.monotonic()
    env.close()
    env.close()
    assert time.monotonic() - began_s < CLOSES_WITHIN_S


@pytest.mark.timing
@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_raises(make_env, monkeypatch, hook):
    monkeypatch.setenv(Raises.RAISES_IN, hook)
    env = make_env(n=1, task=Raises)
    with pytest.raises(UserCodeError) as caught:
        env.reset()
        for _ in range(2):
            step(env, 0)
    message = str(caught.value)
    phase = "resetting" if hook in ("__init__", "on_start") else "stepping"
    assert message.startswith("env 0: ")
    assert f"raised while {phase}: UserBugError: a bug in {hook}" in message
    assert f'_maybe_raise("{hook}")' in message, "the traceback of the worker"
    assert isinstance(caught.value.__cause__, UserBugError)
    assert_failed_for_good(env)


@pytest.mark.timing
@pytest.mark.parametrize("kind", ["task", "bot"])
def test_hook_awaits_a_cancelled_task(begun, kind):
    from fault_bots import CancelledBot

    env = begun(n=1, task=Cancelled if kind == "task" else CancelledBot)
    env.reset()  # a worker may cancel an episode without an error
    with pytest.raises(UserCodeError) as caught:
        step(env, 0)
    message = str(caught.value)
    assert "the user's code raised while stepping: CancelledError" in message
    assert "await await_cancelled()" in message, "the traceback of the worker"
    assert_failed_for_good(env)


@pytest.mark.timing
def test_a_hook_that_cancels_all_tasks_ends_its_own_env(begun):
    env = begun(task=DisturbsItsLoop, config=PoolConfig(envs_per_worker=2))
    with pytest.raises(UserCodeError, match=r"^env 1: .* raised while stepping: CancelledError"):
        step(env, 0, DisturbsItsLoop.CANCELS_ALL)
    assert_failed_for_good(env)


@pytest.mark.timing
@pytest.mark.parametrize(
    ("action", "error"),
    [
        (DisturbsItsLoop.RAISES_IN_CALLBACK, "SystemExit: out of a callback"),
        (DisturbsItsLoop.RAISES_IN_HANDLER, "UserBugError: out of a handler"),
    ],
)
def test_what_is_raised_beside_the_hooks_is_told(begun, action, error):
    env = begun(task=DisturbsItsLoop)
    with pytest.raises(UserCodeError, match=f"^env 1: the user's code raised while .*: {error}"):
        step(env, 0, action)
        while True:
            step(env, 0, 0)
    assert_failed_for_good(env)


NOT_FINITE = np.array([0.0, np.nan], np.float32)


@pytest.mark.timing
@pytest.mark.parametrize(
    ("task", "attribute", "value", "said"),
    [
        (
            DictObservation,
            "observed",
            right_observation() | {"vector": NOT_FINITE},
            r".*observation\['vector'\] is not finite at index \[1\]: nan",
        ),
        (
            Rewarding,
            "paid",
            np.nan,
            r"Rewarding\.reward\(\) \(.*tasks\.py, line \d+\) returned nan ",
        ),
    ],
)
def test_a_wrong_observation_or_reward(begun, task, attribute, value, said):
    env = begun(task=task)
    step(env, 0, 0)
    env.set_attr(attribute, value, indices=[1])
    with pytest.raises(ObservationError, match=f"env 1, stepping: {said}"):
        step(env, 0, 0)
    assert_failed_for_good(env)


LIMIT_S = 1.0
CALLS: dict[str, Callable[[SubprocSC2VecEnv], Any]] = {
    "env_method": lambda env: env.env_method("hang"),
    "set_attr": lambda env: env.set_attr("hanging", 2),
    "render": lambda env: env.get_images(),
}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """The file into which envs write one line for each call that hangs."""
    return tmp_path / "log"


@pytest.fixture
def two(log: Path) -> Iterator[SubprocSC2VecEnv]:
    """A pool of two envs, the first of which hangs in calls."""
    config = PoolConfig(limits=Limits(call_s=LIMIT_S), restart=LENIENT)
    with closing(
        SubprocSC2VecEnv([partial(Hanging, log), partial(Hanging, None)], config=config)
    ) as made:
        made.reset()
        made.step([0, 0])
        yield made


@pytest.mark.parametrize("operation", CALLS)
def test_a_call_that_hangs(two, log, operation):
    with pytest.raises(multiprocessing.TimeoutError, match=rf"^{operation}: env 0 did.*call_s"):
        CALLS[operation](two)
    observations, _, dones, infos = two.step([0, 0])
    assert dones.tolist() == [True, False]
    assert_fault(infos[0], {"deadline"}, "idle", instance=0)
    assert "did not answer a call" in infos[0]["sc2pool.fault"]["detail"]
    assert observations.tolist() == [0, 2], "a new episode, and the next step"
    assert log.read_text() == "called\n", "the new instance is not asked again"
    assert two.get_attr("steps") == [0, 2]


def numbers(env: SubprocSC2VecEnv) -> list[int]:
    """The numbers of the episodes that the envs now play."""
    return [episode.number for episode in env.get_attr("episode")]


@pytest.mark.parametrize("victim", ["game", "worker"])
@pytest.mark.parametrize("spares", [0, 1])
def test_a_game_that_has_died_since_the_last_step_answers_from_its_next_episode(
    begun, victim, spares
):
    env = begun(task=Counter, n=2, spares=spares)
    env.step([0, 0])
    processes_of(env, 0)[victim].kill()
    while env.get_attr("count") == [1, 1]:
        pass
    assert env.get_attr("count") == env.env_method("steps") == [0, 1]
    assert numbers(env) == [2, 1]
    _, _, dones, infos = env.step([0, 0])
    assert dones.tolist() == [True, False]
    assert "sc2pool.fault" in infos[0]
    assert env.get_attr("count") == [0, 2]
    assert not env.step([0, 0])[2].any()
    assert numbers(env) == [2, 1], "it was begun once"


def test_an_episode_that_a_call_has_begun_is_dealt_again_by_a_reset(begun):
    env = begun(task=Counter, n=2)
    processes_of(env, 0)["game"].kill()
    while env.get_attr("episode")[0].number == 0:
        pass
    assert numbers(env) == [2, 1]
    env.reset()
    assert numbers(env) == [2, 3]
    assert "sc2pool.fault" in env.reset_infos[0]


def test_a_caller_with_more_time(two):
    """The timeout of a call applies instead of the pool's limit if the timeout is longer."""
    pool = two.pool
    with pytest.raises(multiprocessing.TimeoutError, match="of 2 envs have not answered"):
        pool.call([0, 1], "env_method", "hang", (), {}, timeout_s=0.01)
    with pytest.raises(multiprocessing.TimeoutError, match="1 of 1 envs have not answered"):
        pool.call([0], "get_attr", "steps", timeout_s=2 * LIMIT_S)
