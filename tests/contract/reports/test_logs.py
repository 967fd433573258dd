"""The pool's log tells by attributes what each record is about."""

from __future__ import annotations

import logging
from contextlib import closing

import numpy as np
import psutil
import pytest
import torch

from sc2pool import SubprocSC2VecEnv
from sc2pool.config import PoolConfig, RecyclePolicy
from sc2pool.envs.sb3 import threads_advice
from sc2pool.processes.table import usable_cores
from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon
from tests.contract.envs import Counting


class Brief(MoveToBeacon):
    """Over after three steps."""

    max_loops = 24


def test_records_carry_env_instance_and_phase(vec_task, caplog):
    caplog.set_level(logging.INFO, "sc2pool")
    env = vec_task(n=2)
    env.reset()
    struck = env.stats().instances[1]
    psutil.Process(struck.pid).kill()
    env.step(np.array([env.action_space.sample() for _ in range(2)]))
    records = [record for record in caplog.records if record.name == "sc2pool"]
    ups = [record for record in records if record.getMessage().endswith(f"port {struck.port}")]
    assert [(up.env, up.instance, up.phase, up.levelname) for up in ups] == [
        ("env 1", 1, "launching", "INFO")
    ]
    assert f"process {struck.pid}" in ups[0].getMessage()
    (fault,) = [one for one in records if one.levelno == logging.WARNING and hasattr(one, "env")]
    assert (fault.env, fault.instance) == ("env 1", 1)
    assert fault.phase in ("idle", "stepping")
    assert fault.getMessage().startswith("env 1, instance 1: game-exited while")
    assert fault.getMessage().splitlines()[-1].endswith("a new game takes over")
    assert fault.funcName == "of_fault"


def test_a_soft_recycle_is_no_warning(vec_task, caplog):
    caplog.set_level(logging.INFO, "sc2pool")
    env = vec_task(Brief, n=1, config=PoolConfig(recycle=RecyclePolicy(episodes=1)))
    env.reset()
    done = [False]
    while not done[0]:
        _, _, done, _ = env.step(np.array([env.action_space.sample()]))
    told = [record for record in caplog.records if record.getMessage().endswith("its episodes")]
    assert [(r.env, r.instance, r.phase, r.levelname) for r in told] == [
        ("env 0", 0, "idle", "INFO")
    ]


@pytest.mark.parametrize(
    ("threads", "games", "cores", "advised"),
    [(2, 8, 2, True), (1, 8, 2, False), (2, 1, 2, False), (16, 16, 16, True), (16, 8, 16, False)],
)
def test_threads_that_take_the_games_cores(threads, games, cores, advised):
    assert (threads_advice(threads, games, cores) is not None) is advised


def test_advice_on_threads_is_given_once_and_only_for_games(caplog, standin_dir):
    threads = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with closing(SubprocSC2VecEnv([Counting] * usable_cores(), serial=True)) as env:
            env.reset()
        assert "torch computes" not in caplog.text
        with closing(SubprocSC2VecEnv(n=usable_cores(), game=standin_dir)) as env:
            env.reset()
            env.reset()
        assert caplog.text.count("torch computes with 3 threads") == 1
    finally:
        torch.set_num_threads(threads)


def test_an_env_without_a_game_is_logged_too(vec, caplog):
    caplog.set_level(logging.INFO, "sc2pool")
    vec(Counting).reset()
    assert "env 0, instance 0: up, without a game" in caplog.messages
