"""The user's code raises, or observes nonsense: the pool ends with the error.

All kinds of nonsense are in `tests/unit/tasks/test_episode_rules.py` and
`tests/unit/pool/test_slots.py`.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import psutil
import pytest
from fault_pools import MakeEnv, step
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
from sc2pool.errors import ClosedError, ObservationError, UserCodeError

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
def test_hook_awaits_a_cancelled_task(begun: MakeEnv, kind: str) -> None:
    from fault_bots import CancelledBot

    env = begun(n=1, task=Cancelled if kind == "task" else CancelledBot)
    env.reset()  # the worker's own cancellation of an episode is no error
    with pytest.raises(UserCodeError) as caught:
        step(env, 0)
    message = str(caught.value)
    assert "the user's code raised while stepping: CancelledError" in message
    assert "await await_cancelled()" in message, "the traceback of the worker"
    assert_failed_for_good(env)


@pytest.mark.timing
def test_a_hook_that_cancels_all_tasks_ends_its_own_env(begun: MakeEnv) -> None:
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
def test_what_is_raised_beside_the_hooks_is_told(begun: MakeEnv, action: int, error: str) -> None:
    env = begun(task=DisturbsItsLoop)
    with pytest.raises(UserCodeError, match=f"^env 1: the user's code raised while .*: {error}"):
        step(env, 0, action)
        while True:
            step(env, 0, 0)
    assert_failed_for_good(env)


@pytest.mark.timing
def test_a_wrong_observation(begun: MakeEnv) -> None:
    env = begun(n=1, task=DictObservation)
    step(env, 0)
    vector = np.array([0.0, np.nan], np.float32)
    env.set_attr("observed", right_observation() | {"vector": vector})
    said = r"env 0, stepping: .*observation\['vector'\] is not finite at index \[1\]: nan"
    with pytest.raises(ObservationError, match=said):
        step(env, 0)
    assert_failed_for_good(env)


@pytest.mark.timing
def test_a_reward_that_is_not_finite(begun: MakeEnv) -> None:
    env = begun(task=Rewarding)
    step(env, 0, 0)
    env.set_attr("paid", np.nan, indices=[1])
    said = r"env 1, stepping: Rewarding\.reward\(\) \(.*tasks\.py, line \d+\) returned nan "
    with pytest.raises(ObservationError, match=said):
        step(env, 0, 0)
    assert_failed_for_good(env)
