"""A serial pool: episodes are the same as with workers, and hooks run in the trainer's process."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import selectors
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import psutil
import pytest
from gymnasium import spaces

from sc2pool import DummySC2VecEnv, SC2GymEnv, SC2VectorEnv, SubprocSC2VecEnv
from sc2pool.config import Limits, PoolConfig, RestartPolicy
from sc2pool.errors import ConfigError
from sc2pool.platform import WINDOWS
from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon
from tests.contract.envs import Counting
from tests.contract.tasks import Masked, PlacedBot
from tests.support.pools import begun
from tests.support.systems import strike

STEPS = 60
CALLED: list[str] = []
"""The calls that hooks in this process have logged."""


def steps_of(env: Any) -> Iterator[Any]:
    """Everything that SB3's env returns in a seeded run."""
    env.action_space.seed(3)
    env.seed(5)
    yield env.reset(), env.reset_infos
    for _ in range(STEPS):
        yield env.step(np.array([env.action_space.sample() for _ in range(env.num_envs)]))


def test_what_is_closed_is_not_waited_for(monkeypatch):
    """The env waits by `select`, which is the default on Windows and refuses closed descriptors."""
    monkeypatch.setattr(selectors, "DefaultSelector", selectors.SelectSelector)
    env = begun(SC2VectorEnv([Counting], serial=True))
    env.close(terminate=True)


@pytest.mark.parametrize(
    "keywords",
    [
        {"task": Masked, "n": 2, "spares": 1},
        {"task": PlacedBot, "n": 1},
        {"task": "MarineDuel", "n": 1},
        {"task": "3m", "n": 1},
        {"env_fns": [Counting, Counting]},
    ],
    ids=str,
)
def test_serial_pool_plays_the_same_as_workers(standin_dir, keywords):
    runs = []
    for kind in (SubprocSC2VecEnv, DummySC2VecEnv):
        game = {} if "env_fns" in keywords else {"game": standin_dir}
        with closing(kind(**keywords, **game)) as env:
            runs.append(list(steps_of(env)))
    with_workers, serial = runs
    for one, other in zip(with_workers, serial, strict=True):
        np.testing.assert_equal(one, other)


class Noting(MoveToBeacon):
    def act(self, action):
        CALLED.append("act")
        return super().act(action)

    def process(self):
        return os.getpid()


@pytest.fixture
def serial(pools, standin_dir):
    """Makes SB3's serial env."""

    def make(task: Any, n: int = 2, **keywords: Any) -> DummySC2VecEnv:
        env = DummySC2VecEnv(task, n=n, game=standin_dir, **keywords)
        pools.callback(env.close)
        return env

    return make


def test_the_users_own_class_runs_in_the_trainers_process(serial):
    CALLED.clear()
    env = begun(serial(Noting))
    env.step([0, 0])
    assert CALLED == ["act", "act"]
    assert env.env_method("process") == [os.getpid()] * 2
    assert [one.worker_pid for one in env.stats().instances] == [os.getpid()] * 2


def test_games_are_processes_that_the_terminals_ctrl_c_does_not_reach(serial):
    env = begun(serial("MoveToBeacon"))
    for one in env.stats().instances:
        assert psutil.Process(one.pid).ppid() == os.getpid()
        if not WINDOWS:  # outside Windows, each game has its own process group
            assert os.getpgid(one.pid) != os.getpgrp()


class Raising(MoveToBeacon):
    error: type[BaseException] = ValueError

    def act(self, action):
        if action == 7:
            raise self.error("of the user's own")
        return super().act(action)


@pytest.mark.parametrize("error", [ValueError, StopIteration])
def test_exception_of_a_hook_is_raised_unchanged_and_a_reset_begins_anew(
    serial, monkeypatch, error
):
    monkeypatch.setattr(Raising, "error", error)
    env = begun(serial(Raising, config=PoolConfig(restart=RestartPolicy(per_env=1))))
    for _ in range(2):  # a pool with workers would end at the second error
        with pytest.raises(error, match="of the user's own") as raised:
            env.step([0, 7])
        names = [frame.name for frame in traceback.extract_tb(raised.tb)]
        assert names[0] == "test_exception_of_a_hook_is_raised_unchanged_and_a_reset_begins_anew"
        assert names[-1] == "act"
        assert raised.value.__notes__[-1] == "env 1: raised while stepping"
        assert env.reset().shape == (2, 5)
        assert env.step([0, 0])[2].tolist() == [False, False]


def test_errors_of_two_envs_in_one_step_are_over_with_the_next_reset(serial):
    env = begun(serial(Raising))
    for _ in range(3):  # the second env's error may come at any time
        with pytest.raises(ValueError, match="of the user's own"):
            env.step([7, 7])
        env.reset()
        assert env.step([0, 0])[2].tolist() == [False, False]


def test_ctrl_c_in_a_hook(serial, monkeypatch):
    monkeypatch.setattr(Raising, "error", KeyboardInterrupt)
    env = begun(serial(Raising))
    with pytest.raises(KeyboardInterrupt):
        env.step([7, 0])
    env.reset()
    env.step([0, 0])


class Pondering(MoveToBeacon):
    """A task that waits in its first step, as at a breakpoint."""

    stood = False

    def act(self, action):
        if not Pondering.stood:
            Pondering.stood = True
            breakpoint()
        return super().act(action)


def test_a_breakpoint_may_last_longer_than_any_limit(serial, monkeypatch):
    monkeypatch.setattr(sys, "breakpointhook", lambda: time.sleep(1.5))
    env = begun(serial(Pondering, config=PoolConfig(limits=Limits(step_s=0.2, worker_grace_s=0.1))))
    for _ in range(3):
        assert env.step([0, 0])[2].tolist() == [False, False]
    assert env.stats().replacements == {}
    assert Pondering.stood


@pytest.mark.parametrize("n", [1, 2])
def test_a_killed_game_is_one_marked_truncation(serial, n):
    env = begun(serial("MoveToBeacon", n))
    strike(env.stats().instances[0].pid, "KILL")
    done = False
    while not done:
        _, rewards, dones, infos = env.step([0] * n)
        done = dones[0]
    assert rewards[0] == 0
    assert infos[0]["sc2pool.fault"]["kind"] == "game-exited"
    assert infos[0]["TimeLimit.truncated"]
    assert not any(dones[1:])
    env.step([0] * n)
    assert sum(env.stats().replacements.values()) == 1


def test_gymnasiums_classes(pools, standin_dir):
    env = SC2GymEnv(Noting, game=standin_dir, serial=True)
    pools.callback(env.close)
    observation, _ = env.reset(seed=1)
    assert observation in env.observation_space
    assert env.step(0)[0] in env.observation_space
    envs = SC2VectorEnv(Noting, n=2, game=standin_dir, serial=True)
    pools.callback(envs.close)
    envs.reset(seed=1)
    assert envs.call("process") == (os.getpid(),) * 2
    registered = gymnasium.make("sc2pool/MoveToBeacon-v0", game=standin_dir, serial=True)
    pools.callback(registered.close)
    registered.reset()


def test_in_a_running_event_loop_as_in_a_notebook(standin_dir):
    async def cell() -> int:
        with closing(DummySC2VecEnv(InItsThread, n=2, game=standin_dir)) as env:
            env.reset()
            await asyncio.sleep(0)
            env.step([0, 0])
            await asyncio.sleep(0)
            return env.num_envs

    assert asyncio.run(cell()) == 2


class InItsThread(MoveToBeacon):
    """A task that checks that its hooks run in the trainer's own thread."""

    def act(self, action):
        assert threading.current_thread() is threading.main_thread()
        return super().act(action)


def test_large_actions_and_attributes_do_not_block(pools):
    """In one thread, neither end of a channel can read while the other end sends."""

    class Large(gymnasium.Env):
        observation_space = spaces.Text(3_000_000)
        action_space = spaces.Text(3_000_000)
        kept = ""

        def reset(self, *, seed=None, options=None):
            return "", {}

        def step(self, action):
            return action, float(len(self.kept)), False, False, {"large": action}

    env = SC2VectorEnv([Large, Large], serial=True, shared_memory=False)
    pools.callback(env.close)
    env.reset()
    env.set_attr("kept", "x" * 2_000_000)
    observations, rewards, *_ = env.step(("y" * 2_000_000, "z"))
    assert [len(one) for one in observations] == [2_000_000, 1]
    assert rewards.tolist() == [2e6, 2e6]


class Clumsy(Counting):
    def close(self):
        raise ValueError("of the user's own")


def test_an_env_whose_close_raises_leaves_no_descriptor(monkeypatch):
    # The test's log would keep the traceback, and with it the pool's memory.
    monkeypatch.setattr(logging.getLogger("asyncio"), "disabled", True)

    def descriptors_after_one() -> int:
        env = begun(DummySC2VecEnv([Clumsy]))
        with pytest.raises(ValueError, match="of the user's own"):
            env.close()
        del env
        gc.collect()  # frees the pool, to which the traceback refers
        return psutil.Process().num_fds()

    assert descriptors_after_one() == descriptors_after_one()


def test_what_an_envs_own_close_raises_is_raised_once_all_are_closed(pools, caplog):
    class Noted(Counting):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

        def close(self):
            CALLED.append(self.name)
            if self.name != "first":
                raise StopIteration("of the user's own")

    CALLED.clear()
    names = ["first", "second", "third"]
    env = DummySC2VecEnv([partial(Noted, name) for name in names])
    pools.callback(env.close)
    env.reset()
    with pytest.raises(StopIteration, match="of the user's own"):
        env.close()
    assert sorted(CALLED) == names
    env.close()
    gc.collect()
    assert "never retrieved" not in caplog.text, "asyncio's words for the third's error"


def test_an_envs_own_close_does_not_hide_why_a_pool_could_not_be_made():
    class Other(Counting):
        action_space = spaces.Discrete(9)

    with pytest.raises(ConfigError, match="env 1: action_space is Discrete"):
        DummySC2VecEnv([Clumsy, Other])


def test_close_leaves_no_connection_open(standin_dir):
    env = begun(DummySC2VecEnv("MoveToBeacon", n=1, game=standin_dir))
    env.step([0])
    with warnings.catch_warnings(record=True, action="always") as warned:
        env.close()
        del env
        gc.collect()
    assert warned == []


@pytest.mark.parametrize(
    ("keywords", "said"),
    [
        ({"serial": 1}, "serial must be True or False, got 1"),
        ({"render_mode": "human"}, "render_mode='human' needs workers"),
    ],
)
def test_keywords_that_need_workers_are_refused(standin_dir, keywords, said):
    with pytest.raises(ConfigError, match=said):
        DummySC2VecEnv("MoveToBeacon", game=standin_dir, **keywords)
