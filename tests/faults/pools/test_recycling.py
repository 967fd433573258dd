"""Tests recycling and spares: replacements change no byte of a seeded run, and leave nothing.

A soft limit replaces an instance at an episode's end, a hard limit within the episode. In these
tests a game's process really takes the memory. All episodes are five steps long.
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
    LENIENT,
    SEED,
    MakeEnv,
    Recording,
    assert_fault,
    assert_same_bytes,
    assert_same_run,
    processes_of,
    record,
    step,
)
from fault_tasks import N_WALKS, Grows, Short, ShortSaboteur, harm_action

from sc2pool import SubprocSC2VecEnv
from sc2pool.config import Limits, PoolConfig, RecyclePolicy
from tests.contract.envs import Mischief
from tests.support.audit.belongings import (
    descriptors,
    leases_held,
    our_processes,
    shared_mappings,
    temp_folders,
)
from tests.support.programs import has_ended
from tests.support.systems import strike

STEPS = 12
FIRST_OF_SECOND_EPISODE = 6
TAKEN_BYTES = 300_000_000
LIMIT_BYTES = 250_000_000
UNLIMITED = RecyclePolicy(soft_memory_bytes=None, hard_memory_bytes=None, growth_bytes=None)


def config(**policy: Any) -> PoolConfig:
    return PoolConfig(recycle=RecyclePolicy(**(vars(UNLIMITED) | policy)), watchdog_interval_s=0.1)


@pytest.fixture(scope="module")
def quiet_run(standin_dir: Path) -> Recording:
    """A run of two envs without replacements."""
    with closing(SubprocSC2VecEnv(n=2, task=Short, game=standin_dir, seed=SEED)) as env:
        return record(env, STEPS)


def assert_recycled_unseen(
    env: SubprocSC2VecEnv, quiet: Recording, in_step: Callable[[int], None], replacements: Any
) -> None:
    """Transitions and infos must be as in the quiet run; only `stats` may show replacements."""
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
    assert stats.replacements == replacements
    assert stats.recovery_s is None
    told = [event.cause for event in stats.events if event.event == "recycle"]
    assert told == [name for name, count in replacements.items() for _ in range(count)]


def memory_of(env: SubprocSC2VecEnv, index: int) -> int:
    return env.stats().instances[index].memory_bytes or 0


@pytest.mark.parametrize(
    ("policy", "spares"),
    [({"soft_memory_bytes": LIMIT_BYTES}, 1), ({"growth_bytes": LIMIT_BYTES}, 0)],
    ids=str,
)
def test_over_the_soft_limit_of_memory(  # noqa: PLR0917
    make_env, faulty, quiet_run, wait_for, policy, spares
):
    env = make_env(task=Short, game=faulty.installation, config=config(**policy), spares=spares)
    before_bytes = 0

    def in_step(number: int) -> None:
        nonlocal before_bytes
        if number == 1:
            # Growth is measured from the memory of the game's first episode.
            wait_for(lambda: memory_of(env, 0))
        elif number == FIRST_OF_SECOND_EPISODE:
            before_bytes = memory_of(env, 0)
            pid = env.stats().instances[0].pid
            faulty.order("allocate", "step", pid=pid, bytes=TAKEN_BYTES)
        elif number == FIRST_OF_SECOND_EPISODE + 1:
            # A sample may show only part of the growth.
            wait_for(lambda: memory_of(env, 0) - before_bytes > 0.95 * TAKEN_BYTES)

    assert_recycled_unseen(env, quiet_run, in_step, {"soft-memory": 1})


@pytest.mark.parametrize(
    ("policy", "replacements"),
    [({"episodes": 2}, {"soft-episodes": 2}), ({"age_s": 0.0}, {"soft-age": 4})],
    ids=str,
)
def test_recycled_after_episodes_or_seconds(make_env, quiet_run, policy, replacements):
    env = make_env(task=Short, config=config(**policy))
    assert_recycled_unseen(env, quiet_run, lambda _: None, replacements)


def test_a_shared_worker_over_the_soft_limit_of_memory(begun, wait_for):
    """The worker's envs must move to another worker, each env at the end of its episode."""
    settings = replace(config(soft_memory_bytes=LIMIT_BYTES), envs_per_worker=2)
    env = begun(task=Grows, config=settings)
    before, other = env.stats().instances
    assert before.worker_pid == other.worker_pid
    step(env, N_WALKS, 0)
    wait_for(lambda: memory_of(env, 0) > TAKEN_BYTES)
    assert memory_of(env, 1) < LIMIT_BYTES, "a worker's memory counts once"
    for _ in range(STEPS):
        time.sleep(0.05)  # gives the watchdog time for its verdict
        _, _, _, infos = step(env, 0, 0)
        assert not any("sc2pool.fault" in info for info in infos)
    assert env.stats().replacements == {"soft-memory": 2}
    first, second = env.stats().instances
    assert first.worker_pid == second.worker_pid != before.worker_pid


def test_a_shared_worker_over_the_hard_limit_of_memory(begun):
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


def test_over_the_hard_limit_of_memory(begun, faulty, quiet_run, wait_for):
    """The game is replaced within the episode, and the episode ends as a marked truncation."""
    env = begun(task=Short, game=faulty.installation, config=config(hard_memory_bytes=LIMIT_BYTES))
    pid = env.stats().instances[0].pid
    faulty.order("allocate", "step", pid=pid, bytes=TAKEN_BYTES)
    # This step may show the watchdog's verdict; otherwise a later step shows it.
    # Plain steps (only observations and rewards) check for verdicts only 50 times a second.
    played = [step(env, 0, 0)]
    if not played[0][2][0]:
        # The call that reads the memory may itself show the verdict.
        wait_for(lambda: memory_of(env, 0) > LIMIT_BYTES or env.stats().replacements)
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
    assert env.stats().replacements == {"memory": 1}


def test_a_game_that_needs_a_hard_reset(begun, faulty):
    """The game plays one more episode, which create_game begins, and is then replaced."""
    env = begun(n=1, task=Short, game=faulty.installation, seed=None, config=config())
    faulty.order("needs a hard reset", "restart_game")
    ended = 0
    while not faulty.done:
        ended += int(step(env, 0)[2].sum())
        assert ended <= 2
    assert env.stats().replacements == {}
    for _ in range(5):
        _, _, dones, (info,) = step(env, 0)
        assert "sc2pool.fault" not in info
    assert dones.all()
    assert env.reset_infos == [{}]
    assert env.stats().replacements == {"soft-game-loops": 1}


def test_an_env_of_the_user_that_hangs_in_its_close_is_ended(wait_for):
    hangs = partial(Mischief, "close", partial(time.sleep, 60))
    settings = replace(config(episodes=1), limits=Limits(worker_grace_s=0.3))
    with closing(SubprocSC2VecEnv([hangs], config=settings)) as env:
        env.reset()
        (first,) = psutil.Process().children()
        wait_for(lambda: step(env, 0) and has_ended(first))
        assert env.stats().faults == 0


N = 3


@pytest.fixture
def spared(make_env: MakeEnv) -> Callable[..., SubprocSC2VecEnv]:
    """Makes pools of three envs with spares; episodes are five steps long."""
    return lambda spares, task=Short: make_env(n=N, task=task, spares=spares)


def strike_spares(env: SubprocSC2VecEnv, wait_for: Callable[..., None]) -> int:
    """Kills the games of all spares, waits for the workers' reports, and returns their number."""
    struck = [instance for instance in env.stats().instances[N:] if instance.pid]
    for instance in struck:
        game = psutil.Process(instance.pid)
        strike(instance.pid, "KILL")
        wait_for(lambda g=game: not g.is_running())  # the game's end is reported
    return len(struck)


@pytest.fixture(scope="module")
def quiet(standin_dir: Path) -> Recording:
    """The recorded run of a pool without spares."""
    with closing(SubprocSC2VecEnv(n=N, task=Short, game=standin_dir, seed=SEED)) as env:
        return record(env, STEPS)


def test_two_spares(spared, quiet, wait_for):
    env = spared(2)
    assert len(env.stats().instances) == N + 2
    assert_same_run(record(env, STEPS), quiet)
    # The same run is played again, and the spares are killed, whether they are ready or not.
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
    assert env.stats().replacements == ({"game-exited": struck} if struck else {})


def test_a_killed_env_takes_the_next_episode(spared):
    """The env's next episode and the rest of the run are the same with spares and without them."""
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


VOIDS: tuple[Callable[[SubprocSC2VecEnv], Any], ...] = (
    lambda env: env.reset(),
    lambda env: (env.seed(99), env.reset()),
    lambda env: (env.set_options({"unused": 1}), env.reset()),
    # Later episodes of env 1 are two steps long, so a spare's episode no longer suits env 1.
    lambda env: env.set_attr("max_loops", 16, indices=[1]),
)
"""After each of these calls, episodes that were prepared before the call are no longer valid."""


def test_episodes_not_yet_played_are_void(spared):
    """Before each call two spares hold prepared episodes, which must not change any result."""
    without, with_spares = spared(0), spared(2)
    for void in VOIDS:
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


def test_a_spare_takes_over_without_a_launch(spared, wait_for):
    env = spared(1)
    env.reset()
    # Only in a step can the pool notice that the spare has become ready.
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


ROUNDS = 2
"""The number of rounds; in each round the games of all envs are killed, and then their workers."""


def belongings(run_temp: Path) -> dict[str, object]:
    """The counts of resources of this process, of its children, and in the temporary folder."""
    processes = our_processes(run_temp)
    (run,) = run_temp.glob("sc2pool-run-*")
    return {
        "descriptors": descriptors(run_temp),
        "queue pairs": shared_mappings().total(),
        "processes": len(processes),
        "temp folders": len([path for path in run.iterdir() if path.is_dir()]),
        "game folders": len(temp_folders(run_temp)),
        "leases": len(leases_held(processes)),
    }


def test_replacements_of_all_envs_at_once(begun, wait_for, run_temp):
    env = begun(config=PoolConfig(restart=LENIENT))
    step(env, 0, 0)
    before = belongings(run_temp)
    for number in range(ROUNDS):
        target = ("game", "worker")[number % 2]
        for index in range(2):
            strike(processes_of(env, index)[target].pid, "KILL")
        _, rewards, dones, infos = step(env, 0, 0)
        assert (rewards.tolist(), dones.tolist()) == ([0.0, 0.0], [True, True])
        assert all("sc2pool.fault" in info for info in infos)
        assert not step(env, 0, 0)[2].any()
    assert sum(env.stats().replacements.values()) == 2 * ROUNDS
    # The system takes some time to reap the games of killed workers.
    wait_for(lambda: belongings(run_temp) == before)
