"""Clauses 1 and 2: how a `SubprocSC2VecEnv` is made, and with what it is not."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from functools import partial

import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3.common.env_util import make_vec_env

from sc2pool import SubprocSC2VecEnv
from sc2pool.errors import ConfigError
from tests.contract.conftest import without_workers
from tests.contract.envs import Counting, Sampling


@without_workers
def test_spaces_number_and_render_mode_are_known_before_the_first_reset(vec):
    made = vec(Counting, Counting, Counting)
    assert made.num_envs == 3
    assert made.observation_space == Counting.observation_space
    assert made.action_space == Counting.action_space
    assert made.render_mode is None
    assert made.get_attr("render_mode") == [None] * 3
    assert made.unwrapped is made


@without_workers
@pytest.mark.parametrize("start_method", multiprocessing.get_all_start_methods())
def test_every_start_method_is_accepted(vec, start_method):
    made = vec(Counting, start_method=start_method)
    assert made.reset().tolist() == [[0.0]]


def test_the_start_method_may_be_given_by_place(pools):
    made = SubprocSC2VecEnv([Counting], "spawn", serial=True)
    pools.callback(made.close)
    assert made.num_envs == 1


def test_an_illegal_start_method_is_a_value_error():
    with pytest.raises(ValueError, match="cannot find context for 'illegal_method'"):
        SubprocSC2VecEnv([Counting], start_method="illegal_method")


def test_make_vec_env_makes_it(pools):
    made = make_vec_env(
        partial(Counting, 4),
        n_envs=2,
        seed=5,
        vec_env_cls=SubprocSC2VecEnv,
        vec_env_kwargs={"start_method": "spawn", "serial": True},
    )
    pools.callback(made.close)
    made.reset()
    assert [info["keywords"]["seed"] for info in made.reset_infos] == [5, 6]
    for _ in range(4):
        _, _, dones, infos = made.step([0, 0])
    assert dones.all()
    assert [info["episode"]["l"] for info in infos] == [4, 4], "each env has a Monitor"


def test_a_task_launches_one_game_for_each_env_and_no_other(vec_task):
    made = vec_task(n=2)
    made.reset()
    assert made.stats().launches == 2
    assert [instance.instance for instance in made.stats().instances] == [0, 1]


@without_workers
def test_step_mul_and_max_loops_are_the_pools(vec_task, vector_task, gym_env):
    made = vec_task(n=1, step_mul=4, max_loops=12)
    made.reset()
    assert [bool(made.step([0])[2][0]) for _ in range(3)] == [False, False, True]
    assert made.metadata["render_fps"] == 22.4 / 4
    vector = vector_task(n=1, step_mul=np.int64(4), max_loops=np.int64(12))
    assert type(vector.step_mul) is int
    assert vector.step_mul == 4
    vector.reset()
    assert [bool(vector.step([0])[3][0]) for _ in range(3)] == [False, False, True]
    single = gym_env(step_mul=6, max_loops=12)
    assert single.step_mul == 6
    single.reset()
    assert [single.step(0)[3] for _ in range(2)] == [False, True]


@without_workers
def test_what_a_pool_says_of_itself(vec, vec_task, gym_env):
    made = vec_task(n=1, spares=1)
    version = made.stats().game_version
    told = f"task=MoveToBeacon, n=1, spares=1, realtime=False, game_version={version!r}"
    assert repr(made) == f"SubprocSC2VecEnv({told}, closed=False)"
    assert repr(made.pool) == f"Pool(n=1, spares=1, game_version={version!r}, closed=False)"
    for travel in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be copied or pickled: make another env in its"):
            travel(made)
    made.close()
    assert repr(made) == f"SubprocSC2VecEnv({told}, closed=True)"
    single = gym_env()
    assert repr(single) == f"SC2GymEnv({told.replace('spares=1', 'spares=0')}, closed=False)"
    assert repr(vec(Counting, Counting)) == "SubprocSC2VecEnv(env_fns, n=2, closed=False)"


def test_envs_that_differ_in_their_spaces_are_a_config_error():
    small, large = (partial(Sampling, spaces.Box(0, 1, (size,))) for size in (2, 3))
    with pytest.raises(ConfigError, match=r"env 1: observation_space is Box.*\(3,\).*but env 0"):
        SubprocSC2VecEnv([small, large])


def test_envs_that_differ_in_their_render_mode_are_refused():
    def other() -> Counting:
        env = Counting()
        env.render_mode = "rgb_array"
        return env

    with pytest.raises(AssertionError, match="should be the same for all"):
        SubprocSC2VecEnv([Counting, other])


@without_workers
def test_an_env_without_metadata(vec):
    class Bare(Counting):
        metadata = None

    assert vec(Bare).reset().tolist() == [[0.0]]
