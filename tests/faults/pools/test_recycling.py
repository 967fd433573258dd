"""Instances that are replaced although they work: at an episode's end, unseen; too large: at once.

A game's memory is really taken by its process. Episodes are five steps long.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from fault_pools import (
    SEED,
    MakeEnv,
    Recording,
    assert_same_bytes,
    record,
    step,
)
from fault_tasks import N_WALKS, Grows, Short

from sc2pool import SubprocSC2VecEnv
from sc2pool.config import Limits, PoolConfig, RecyclePolicy
from tests.contract.envs import Mischief
from tests.support.audit.faulty import Faulty
from tests.support.programs import has_ended

STEPS = 12
FIRST_OF_SECOND_EPISODE = 6
TAKEN_BYTES = 300_000_000
LIMIT_BYTES = 250_000_000
UNLIMITED = RecyclePolicy(soft_memory_bytes=None, hard_memory_bytes=None, growth_bytes=None)


def config(**policy: Any) -> PoolConfig:
    return PoolConfig(recycle=RecyclePolicy(**(vars(UNLIMITED) | policy)), watchdog_interval_s=0.1)


@pytest.fixture(scope="module")
def quiet_run(standin_dir: Path) -> Recording:
    """Two envs that nothing is done to."""
    with closing(SubprocSC2VecEnv(n=2, task=Short, game=standin_dir, seed=SEED)) as env:
        return record(env, STEPS)


def assert_recycled_unseen(
    env: SubprocSC2VecEnv, quiet: Recording, in_step: Callable[[int], None], recycles: Any
) -> None:
    """Not one transition is another, and no info tells of it; `stats` does."""
    assert_same_bytes(env.reset(), quiet.observations[0])
    for number in range(STEPS):
        in_step(number)
        observations, rewards, dones, infos = step(env, 0, 0)
        assert_same_bytes(observations, quiet.observations[number + 1])
        assert_same_bytes(rewards, quiet.rewards[number])
        assert_same_bytes(dones, quiet.dones[number])
        for info, done in zip(infos, dones, strict=True):
            assert set(info) == {"TimeLimit.truncated"} | (
                {"terminal_observation"} if done else set()
            )
        assert env.reset_infos == [{}, {}]
    stats = env.stats()
    assert stats.recycles == recycles
    assert stats.recovery_s is None
    told = [event.cause for event in stats.events if event.event == "recycle"]
    assert told == [name for name, count in recycles.items() for _ in range(count)]


def memory_of(env: SubprocSC2VecEnv, index: int) -> int:
    return env.stats().instances[index].memory_bytes or 0


@pytest.mark.parametrize(
    ("policy", "spares"),
    [({"soft_memory_bytes": LIMIT_BYTES}, 1), ({"growth_bytes": LIMIT_BYTES}, 0)],
    ids=str,
)
def test_over_the_soft_limit_of_memory(  # noqa: PLR0917
    make_env: MakeEnv,
    faulty: Faulty,
    quiet_run: Recording,
    wait_for: Callable[..., None],
    policy: dict[str, int],
    spares: int,
) -> None:
    env = make_env(task=Short, game=faulty.installation, config=config(**policy), spares=spares)
    before_bytes = 0

    def in_step(number: int) -> None:
        nonlocal before_bytes
        if number == 1:
            # Growth counts from what the game has in its first episode.
            wait_for(lambda: memory_of(env, 0))
        elif number == FIRST_OF_SECOND_EPISODE:
            before_bytes = memory_of(env, 0)
            pid = env.stats().instances[0].pid
            faulty.order("allocate", "step", pid=pid, bytes=TAKEN_BYTES)
        elif number == FIRST_OF_SECOND_EPISODE + 1:
            # A sample may show a part of it only.
            wait_for(lambda: memory_of(env, 0) - before_bytes > 0.95 * TAKEN_BYTES)

    assert_recycled_unseen(env, quiet_run, in_step, {"soft-memory": 1})


@pytest.mark.parametrize(
    ("policy", "recycles"),
    [({"episodes": 2}, {"soft-episodes": 2}), ({"age_s": 0.0}, {"soft-age": 4})],
    ids=str,
)
def test_recycled_after_episodes_or_seconds(
    make_env: MakeEnv, quiet_run: Recording, policy: dict[str, Any], recycles: dict[str, int]
) -> None:
    env = make_env(task=Short, config=config(**policy))
    assert_recycled_unseen(env, quiet_run, lambda _: None, recycles)


def test_a_shared_worker_over_the_soft_limit_of_memory(
    begun: MakeEnv, wait_for: Callable[..., None]
) -> None:
    """Its envs move into another one, each at the end of its episode."""
    settings = replace(config(soft_memory_bytes=LIMIT_BYTES), envs_per_worker=2)
    env = begun(task=Grows, config=settings)
    before, other = env.stats().instances
    assert before.worker_pid == other.worker_pid
    step(env, N_WALKS, 0)
    wait_for(lambda: memory_of(env, 0) > TAKEN_BYTES)
    assert memory_of(env, 1) < LIMIT_BYTES, "a worker's memory counts once"
    for _ in range(STEPS):
        time.sleep(0.05)  # for the watchdog's verdict
        _, _, _, infos = step(env, 0, 0)
        assert not any("sc2pool.fault" in info for info in infos)
    assert env.stats().recycles == {"soft-memory": 2}
    first, second = env.stats().instances
    assert first.worker_pid == second.worker_pid != before.worker_pid


def test_a_shared_worker_over_the_hard_limit_of_memory(begun: MakeEnv) -> None:
    settings = replace(config(hard_memory_bytes=LIMIT_BYTES), envs_per_worker=2)
    env = begun(task=Grows, config=settings)
    told: dict[int, str] = {}
    action = N_WALKS
    while len(told) < 2:
        for index, info in enumerate(step(env, action, 0)[3]):
            if "sc2pool.fault" in info:
                told[index] = info["sc2pool.fault"]["detail"]
        action = 0
        time.sleep(0.01)
    assert any("over the hard limit of 250 MB" in detail for detail in told.values())
    assert all("the worker, which serves several envs" in detail for detail in told.values())


def test_over_the_hard_limit_of_memory(
    begun: MakeEnv, faulty: Faulty, quiet_run: Recording, wait_for: Callable[..., None]
) -> None:
    """At once, in the middle of the episode, as a marked truncation."""
    env = begun(task=Short, game=faulty.installation, config=config(hard_memory_bytes=LIMIT_BYTES))
    pid = env.stats().instances[0].pid
    faulty.order("allocate", "step", pid=pid, bytes=TAKEN_BYTES)
    # The watchdog may catch it while it grows; else in one of the next steps, because plain steps
    # look for verdicts 50 times a second only.
    played = [step(env, 0, 0)]
    if not played[0][2][0]:
        wait_for(lambda: memory_of(env, 0) > LIMIT_BYTES)
    while "sc2pool.fault" not in played[-1][3][0]:
        time.sleep(0.01)
        played.append(step(env, 0, 0))
    marked = played[-1][3][0]
    assert marked["sc2pool.fault"]["kind"] == "memory"
    assert "over the hard limit of 250 MB" in marked["sc2pool.fault"]["detail"]
    assert marked["TimeLimit.truncated"] and marked["sc2pool.synthetic"]
    for number, (observations, _, dones, _) in enumerate(played, start=1):
        assert_same_bytes(observations[1], quiet_run.observations[number][1])
        assert_same_bytes(dones[1], quiet_run.dones[number - 1][1])
    assert env.stats().recycles == {"memory": 1}


def test_a_game_that_needs_a_hard_reset(begun: MakeEnv, faulty: Faulty) -> None:
    """It plays one more episode, reached by create_game, and is replaced at its end."""
    env = begun(n=1, task=Short, game=faulty.installation, seed=None, config=config())
    faulty.order("needs a hard reset", "restart_game")
    ended = 0
    while not faulty.done:
        ended += int(step(env, 0)[2].sum())
        assert ended <= 2
    assert env.stats().recycles == {}
    for _ in range(5):
        _, _, dones, (info,) = step(env, 0)
        assert "sc2pool.fault" not in info
    assert dones.all()
    assert env.reset_infos == [{}]
    assert env.stats().recycles == {"soft-game-loops": 1}


def test_an_env_of_the_user_that_hangs_in_its_close_is_ended(wait_for: Callable[..., None]) -> None:
    hangs = partial(Mischief, "close", partial(time.sleep, 60))
    settings = replace(config(episodes=1), limits=Limits(worker_grace_s=0.3))
    with closing(SubprocSC2VecEnv([hangs], config=settings)) as env:
        env.reset()
        (first,) = psutil.Process().children()
        wait_for(lambda: step(env, 0) and has_ended(first))
        assert env.stats().faults == 0
