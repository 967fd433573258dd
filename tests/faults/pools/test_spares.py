"""A seeded run is the same, byte for byte, with any number of spares, whatever befalls them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest
from fault_pools import (
    SEED,
    MakeEnv,
    Recording,
    assert_fault,
    assert_same_bytes,
    assert_same_run,
    record,
    step,
)
from fault_tasks import Short, ShortSaboteur, harm_action

from sc2pool import SubprocSC2VecEnv
from tests.support.programs import has_ended
from tests.support.systems import strike

N = 3
STEPS = 12


@pytest.fixture
def spared(make_env: MakeEnv) -> Callable[..., SubprocSC2VecEnv]:
    """Makes pools of three with spares; episodes are five steps long."""

    def make(spares: int, task: type = Short, **options: Any) -> SubprocSC2VecEnv:
        return make_env(n=N, task=task, spares=spares, **options)

    return make


def strike_spares(env: SubprocSC2VecEnv, wait_for: Callable[..., None]) -> int:
    """Kills the games of all spares that have one; how many, once their workers have told."""
    struck = [instance for instance in env.stats().instances[N:] if instance.pid]
    for instance in struck:
        game = psutil.Process(instance.pid)
        strike(instance.pid, "KILL")
        wait_for(lambda g=game: not g.is_running())  # its worker tells, and then reaps it
    return len(struck)


@pytest.fixture(scope="module")
def quiet(standin_dir: Path) -> Recording:
    """The run without spares."""
    with closing(SubprocSC2VecEnv(n=N, task=Short, game=standin_dir, seed=SEED)) as env:
        return record(env, STEPS)


def test_two_spares(
    spared: Callable[..., SubprocSC2VecEnv], quiet: Recording, wait_for: Callable[..., None]
) -> None:
    env = spared(2)
    assert len(env.stats().instances) == N + 2
    assert_same_run(record(env, STEPS), quiet)
    # Again, and the spares are killed, ready or not.
    env.seed(SEED)
    assert_same_bytes(env.reset(), quiet.observations[0])
    struck = 0
    for number in range(STEPS):
        if number in (2, 7):
            struck += strike_spares(env, wait_for)
        observations, rewards, dones, infos = step(env, 0, 0, 0)
        assert_same_bytes(observations, quiet.observations[number + 1])
        assert_same_bytes(rewards, quiet.rewards[number])
        assert_same_bytes(dones, quiet.dones[number])
        assert not any("sc2pool.fault" in info for info in infos)
    assert env.stats().recycles == ({"game-exited": struck} if struck else {})


def test_a_killed_env_takes_the_next_episode(spared: Callable[..., SubprocSC2VecEnv]) -> None:
    """The same one, with spares or without, and the run continues the same."""
    runs = []
    for spares in (0, 1):
        env = spared(spares, ShortSaboteur)
        run = [env.reset()]
        for number in range(STEPS):
            harm = harm_action("game KILL") if number == 2 else 0
            observations, rewards, dones, infos = step(env, 0, harm, 0)
            run += [observations, rewards, dones]
            if number == 2:
                assert dones.tolist() == [False, True, False]
                assert_fault(infos[1], {"game-exited"}, "stepping", instance=1)
            else:
                assert not any("sc2pool.fault" in info for info in infos)
        runs.append(run)
        env.close()
    for one, other in zip(*runs, strict=True):
        assert_same_bytes(one, other)


def void_by_reset(env: SubprocSC2VecEnv) -> None:
    env.reset()


def void_by_seed(env: SubprocSC2VecEnv) -> None:
    env.seed(99)
    env.reset()


def void_by_options(env: SubprocSC2VecEnv) -> None:
    env.set_options({"unused": 1})
    env.reset()


def void_by_attribute(env: SubprocSC2VecEnv) -> None:
    """Env 1's later episodes are two steps long; it plays its episodes itself."""
    env.set_attr("max_loops", 16, indices=[1])


def test_episodes_not_yet_played_are_void(spared: Callable[..., SubprocSC2VecEnv]) -> None:
    """Two spares hold two of them by then; that they did shows nowhere."""
    without, with_spares = spared(0), spared(2)
    for void in (void_by_reset, void_by_seed, void_by_options, void_by_attribute):
        runs = []
        for env in (without, with_spares):
            env.seed(SEED)
            env.reset()
            run = [step(env, 0, 0, 0)[0]]
            void(env)
            for _ in range(STEPS):
                run += step(env, 0, 0, 0)[:3]
            runs.append(run)
        for one, other in zip(*runs, strict=True):
            assert_same_bytes(one, other)


def test_a_spare_takes_over_without_a_launch(
    spared: Callable[..., SubprocSC2VecEnv], wait_for: Callable[..., None]
) -> None:
    env = spared(1)
    env.reset()
    # The spare gets ready by and by; the pool takes notice in its steps.
    wait_for(lambda: step(env, 0, 0, 0) and env.stats().instances[N].state == "ready")
    pids = [instance.pid for instance in env.stats().instances]
    victim = psutil.Process(pids[0])
    victim.kill()
    wait_for(lambda: has_ended(victim))
    _, _, dones, infos = step(env, 0, 0, 0)
    assert dones[0]
    assert "sc2pool.fault" in infos[0]
    taken = [instance.pid for instance in env.stats().instances]
    assert taken[:N] == [pids[N], *pids[1:N]]
