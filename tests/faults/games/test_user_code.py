"""The user's code raises, observes nonsense, or acts outside the space."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import psutil
import pytest
from fault_pools import MakeEnv, Recording, assert_same_bytes, step
from fault_tasks import (
    HOOKS,
    Cancelled,
    DictObservation,
    DisturbsItsLoop,
    Raises,
    Rewarding,
    UserBugError,
    right_observation,
)

from sc2pool.config import PoolConfig
from sc2pool.errors import ActionError, ClosedError, ObservationError, UserCodeError

CLOSES_WITHIN_S = 5.0


def assert_failed_for_good(env: Any) -> None:
    """Nothing runs although nobody closed it; closing is quick, and may be repeated."""
    _, alive = psutil.wait_procs(psutil.Process().children(recursive=True), timeout=2.0)
    assert not alive
    with pytest.raises(ClosedError, match="the pool has failed"):
        step(env, *[0] * env.num_envs)
    began_s = time.monotonic()
    env.close()
    env.close()
    assert time.monotonic() - began_s < CLOSES_WITHIN_S


@pytest.mark.timing
@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_raises(make_env: MakeEnv, monkeypatch: pytest.MonkeyPatch, hook: str) -> None:
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
def test_hook_awaits_a_cancelled_task(make_env: MakeEnv, kind: str) -> None:
    from fault_bots import CancelledBot

    env = make_env(n=1, task=Cancelled if kind == "task" else CancelledBot)
    env.reset()
    env.reset()  # the worker's own cancellation of an episode is no error
    with pytest.raises(UserCodeError) as caught:
        step(env, 0)
    message = str(caught.value)
    assert "the user's code raised while stepping: CancelledError" in message
    assert "await await_cancelled()" in message, "the traceback of the worker"
    assert_failed_for_good(env)


@pytest.mark.timing
def test_a_hook_that_cancels_all_tasks_ends_its_own_env(make_env: MakeEnv) -> None:
    env = make_env(task=DisturbsItsLoop, config=PoolConfig(envs_per_worker=2))
    env.reset()
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
def test_what_is_raised_beside_the_hooks_is_told(
    make_env: MakeEnv, action: int, error: str
) -> None:
    env = make_env(task=DisturbsItsLoop)
    env.reset()
    with pytest.raises(UserCodeError, match=f"^env 1: the user's code raised while .*: {error}"):
        step(env, 0, action)
        while True:
            step(env, 0, 0)
    assert_failed_for_good(env)


WRONG_OBSERVATIONS = {
    "shape": (
        right_observation() | {"vector": np.zeros(3, np.float32)},
        r"observation\['vector'\] has shape \(3,\) .* expected shape \(2,\)",
    ),
    "dtype": (
        right_observation() | {"vector": np.zeros(2, np.float64)},
        r"dtype float64, expected shape \(2,\) and dtype float32",
    ),
    "NaN": (
        right_observation() | {"vector": np.array([0.0, np.nan], np.float32)},
        r"observation\['vector'\] is not finite at index \[1\]: nan",
    ),
    "infinity": (
        right_observation() | {"vector": np.array([-np.inf, 0.0], np.float32)},
        r"not finite at index \[0\]: -inf",
    ),
    "missing key": ({"vector": np.zeros(2, np.float32)}, "KeyError.*count"),
    "no dict": (np.zeros(2, np.float32), "type ndarray does not have the parts"),
}


@pytest.mark.timing
@pytest.mark.parametrize("wrong", WRONG_OBSERVATIONS)
def test_a_wrong_observation(make_env: MakeEnv, wrong: str) -> None:
    observed, message = WRONG_OBSERVATIONS[wrong]
    env = make_env(n=1, task=DictObservation)
    env.reset()
    step(env, 0)
    env.set_attr("observed", observed)
    with pytest.raises(ObservationError, match=f"env 0, stepping: .*{message}"):
        step(env, 0)
    assert_failed_for_good(env)


@pytest.mark.timing
@pytest.mark.parametrize("reward", [np.nan, -np.inf])
def test_a_reward_that_is_not_finite(make_env: MakeEnv, reward: float) -> None:
    env = make_env(task=Rewarding)
    env.reset()
    step(env, 0, 0)
    env.set_attr("paid", reward, indices=[1])
    said = rf"env 1, stepping: Rewarding\.reward\(\) \(.*tasks\.py, line \d+\) returned {reward} "
    with pytest.raises(ObservationError, match=said):
        step(env, 0, 0)
    assert_failed_for_good(env)


BAD_ACTIONS = {
    "too large": ([0, 15], r"env 1: action 15 is not in Discrete\(15\)"),
    "negative": ([-1, 0], r"env 0: action -1 is not in Discrete\(15\)"),
    "fractions": ([0.5, 0.0], "must be integers, got dtype float64"),
    "too few": ([0], "expected 2 actions, one per env, got 1"),
    "too many": ([0, 0, 0], "expected 2 actions, one per env, got 3"),
    "no sequence": (0, "expected 2 actions, one per env, got 0"),
    "too deep": ([[0], [0]], r"must have shape \(2,\), got \(2, 1\)"),
    "words": (["up", "down"], "must be integers"),
}


def test_a_wrong_action_is_never_sent(make_env: MakeEnv, undisturbed: Recording) -> None:
    """The pool goes on as if it had not been asked: another action would have left a trace."""
    env = make_env()
    assert_same_bytes(env.reset(), undisturbed.observations[0][:2])
    for number, (actions, message) in enumerate(BAD_ACTIONS.values(), start=1):
        with pytest.raises(ActionError, match=message):
            env.step(actions)
        assert_same_bytes(step(env, 0, 0)[0], undisturbed.observations[number][:2])
    assert env.stats().env_steps == 2 * len(BAD_ACTIONS)
