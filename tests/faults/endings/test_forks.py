"""A forked child has a copy of its parent's pool: it is told so, and the parent continues."""

from __future__ import annotations

import multiprocessing
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fault_pools import MakeEnv

from sc2pool import SubprocSC2VecEnv
from sc2pool.errors import ForkedPoolError

ACTIONS = np.zeros(2, np.int64)
CALLS: dict[str, Callable[[SubprocSC2VecEnv], Any]] = {
    "step": lambda env: env.step(ACTIONS),
    "step_async": lambda env: env.step_async(ACTIONS),
    "step_wait": lambda env: env.step_wait(),
    "reset": lambda env: env.reset(),
    "get_attr": lambda env: env.get_attr("episode"),
    "pause": lambda env: env.pause(),
    "close": lambda env: env.close(),
}


def call_all(env: SubprocSC2VecEnv, answers: Any) -> None:
    warnings.simplefilter("error")
    for name, call in CALLS.items():
        try:
            call(env)
        except (ForkedPoolError, RuntimeWarning) as error:
            answers.put((name, str(error)))
        except BaseException as error:
            answers.put((name, repr(error)))
        else:
            answers.put((name, "nothing was raised"))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_is_refused_and_the_parent_gets_its_own_transition(begun: MakeEnv) -> None:
    env = begun()
    expected = [env.step(ACTIONS)[0] for _ in range(3)]
    env.seed(7)
    env.reset()
    env.step_async(ACTIONS)
    forking = multiprocessing.get_context("fork")
    answers = forking.SimpleQueue()
    child = forking.Process(target=call_all, args=(env, answers))
    child.start()
    for name in CALLS:
        called, said = answers.get()
        assert called == name
        assert "this pool belongs to process" in said
    child.join()
    assert child.exitcode == 0
    assert np.array_equal(env.step_wait()[0], expected[0])
    assert np.array_equal(env.step(ACTIONS)[0], expected[1])
