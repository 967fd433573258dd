"""From what a user asks for to the players of a pool, all checked before a process starts."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from sc2pool.config import PoolConfig
from sc2pool.envs.specs import check_n, check_seed, gym_specs, task_spec
from sc2pool.errors import ConfigError
from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon


@pytest.mark.parametrize("task", ["MoveToBeacon", MoveToBeacon], ids=str)
def test_a_task_by_name_or_class(standin_dir, task):
    spec = task_spec(task, standin_dir, PoolConfig())
    assert spec.task is MoveToBeacon
    assert spec.map_path.name == "MoveToBeacon.SC2Map"
    assert spec.installation.root == standin_dir
    assert pickle.loads(pickle.dumps(spec)) == spec


@pytest.mark.parametrize(
    ("task", "told"),
    [
        ("movetobeacon", "did you mean 'MoveToBeacon'"),
        ("", "unknown task ''"),
        (None, "got None"),
        (MoveToBeacon(), "must be a built-in name, or a subclass"),
    ],
    ids=["case", "empty", "None", "object"],
)
def test_what_is_no_task(standin_dir, task, told):
    with pytest.raises(ConfigError, match=told):
        task_spec(task, standin_dir, PoolConfig())


def test_what_is_no_installation(tmp_path):
    with pytest.raises(ConfigError, match="no StarCraft II installation"):
        task_spec("MoveToBeacon", tmp_path, PoolConfig())


def test_functions_that_make_envs():
    assert [spec.env_fn for spec in gym_specs([int, str])] == [int, str]
    with pytest.raises(ConfigError, match="env_fns is empty"):
        gym_specs([])
    with pytest.raises(ConfigError, match=r"env_fns\[1\] must be a function.*got 'x'"):
        gym_specs([int, "x"])


@pytest.mark.parametrize("wrong", [0, -1, True, 2.0, "2", None], ids=repr)
def test_a_number_of_envs(wrong):
    assert check_n(3) == 3
    with pytest.raises(ConfigError, match="n must be a whole number of at least 1"):
        check_n(wrong)


@pytest.mark.parametrize("wrong", [-1, True, 2.0, "2", None], ids=repr)
def test_a_seed(wrong):
    assert [check_seed(seed) for seed in (0, np.int64(4), 2**40)] == [0, 4, 2**40]
    with pytest.raises(ConfigError, match="seed must be None or a whole number of at least 0"):
        check_seed(wrong)
