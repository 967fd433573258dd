"""Calls of instances that hang in them, or that have died since their last step."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from fault_pools import LENIENT, MakeEnv, assert_fault, processes_of
from fault_tasks import Counter, Hanging

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


def numbers(env: SubprocSC2VecEnv) -> list[int]:
    """Of the episodes that are played."""
    return [episode.number for episode in env.get_attr("episode")]


@pytest.mark.parametrize("victim", ["game", "worker"])
@pytest.mark.parametrize("spares", [0, 1])
def test_a_game_that_has_died_since_the_last_step_answers_from_its_next_episode(
    begun: MakeEnv, victim: str, spares: int
) -> None:
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


def test_an_episode_that_a_call_has_begun_is_dealt_again_by_a_reset(begun: MakeEnv) -> None:
    env = begun(task=Counter, n=2)
    processes_of(env, 0)["game"].kill()
    while env.get_attr("episode")[0].number == 0:
        pass
    assert numbers(env) == [2, 1]
    env.reset()
    assert numbers(env) == [2, 3]
    assert "sc2pool.fault" in env.reset_infos[0]


def test_a_caller_with_more_time(two: SubprocSC2VecEnv) -> None:
    """The time that a caller gives counts, if it is longer than the limit."""
    pool = two.pool
    with pytest.raises(multiprocessing.TimeoutError, match="of 2 envs have not answered"):
        pool.call([0, 1], "env_method", "hang", (), {}, timeout_s=0.01)
    with pytest.raises(multiprocessing.TimeoutError, match="1 of 1 envs have not answered"):
        pool.call([0], "get_attr", "steps", timeout_s=2 * LIMIT_S)
