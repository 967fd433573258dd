"""A call that hangs ends at its limit, with the instance it hangs in."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from fault_pools import LENIENT, assert_fault
from fault_tasks import Hanging

from sc2pool import SubprocSC2VecEnv
from sc2pool.config import Limits, PoolConfig

LIMIT_S = 1.0
CALLS: dict[str, Callable[[SubprocSC2VecEnv], Any]] = {
    "env_method": lambda env: env.env_method("hang"),
    "get_attr": lambda env: env.get_attr("hanging"),
    "set_attr": lambda env: env.set_attr("hanging", 2),
    "is_wrapped": lambda env: env.env_is_wrapped(gymnasium.Wrapper),
    "render": lambda env: env.get_images(),
}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """One line for each call that has hung."""
    return tmp_path / "log"


@pytest.fixture
def two(log: Path) -> Iterator[SubprocSC2VecEnv]:
    """Two envs, the first of which hangs in calls."""
    config = PoolConfig(limits=Limits(call_s=LIMIT_S), restart=LENIENT)
    with closing(
        SubprocSC2VecEnv([partial(Hanging, log), partial(Hanging, None)], config=config)
    ) as made:
        made.reset()
        made.step([0, 0])
        yield made


@pytest.mark.parametrize("operation", CALLS)
def test_a_call_that_hangs(two: SubprocSC2VecEnv, log: Path, operation: str) -> None:
    with pytest.raises(multiprocessing.TimeoutError, match=rf"^{operation}: env 0 did.*call_s"):
        CALLS[operation](two)
    observations, _, dones, infos = two.step([0, 0])
    assert dones.tolist() == [True, False]
    assert_fault(infos[0], {"deadline"}, "idle", instance=0)
    assert "did not answer a call" in infos[0]["sc2pool.fault"]["detail"]
    assert observations.tolist() == [0, 2], "a new episode, and the next step"
    assert log.read_text() == "called\n", "the new instance is not asked again"
    assert two.get_attr("steps") == [0, 2]


def test_a_caller_with_more_time(two: SubprocSC2VecEnv) -> None:
    """The time that a caller gives counts, if it is longer than the limit."""
    pool = two.pool
    with pytest.raises(multiprocessing.TimeoutError, match="of 2 envs have not answered"):
        pool.call([0, 1], "env_method", "hang", (), {}, timeout_s=0.01)
    with pytest.raises(multiprocessing.TimeoutError, match="1 of 1 envs have not answered"):
        pool.call([0], "get_attr", "steps", timeout_s=2 * LIMIT_S)
