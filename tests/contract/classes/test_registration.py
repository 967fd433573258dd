"""Every built-in task in gymnasium's registry, for `make` and `make_vec`."""

from __future__ import annotations

import os
import sys
import warnings
from contextlib import closing

import gymnasium
import pytest
from gymnasium.envs.registration import load_env_creator
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

import sc2pool
from sc2pool.tasks.registry import PLACES
from tests.support.programs import run

ID = "sc2pool/MoveToBeacon-v0"


@pytest.mark.parametrize("name", PLACES)
def test_each_task_is_registered_under_its_name(name):
    spec = gymnasium.spec(f"sc2pool/{name}-v0")
    assert (spec.namespace, spec.name, spec.version) == ("sc2pool", name, 0)
    assert spec.kwargs == {"task": name}
    assert load_env_creator(spec.entry_point) is sc2pool.SC2GymEnv
    assert callable(load_env_creator(spec.vector_entry_point))
    assert gymnasium.envs.registration.EnvSpec.from_json(spec.to_json()) == spec


def test_registered_env_passes_the_checker(standin_dir):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with closing(gymnasium.make(ID, game=standin_dir)) as env:
            assert isinstance(env.unwrapped, sc2pool.SC2GymEnv)
            check_env(env.unwrapped)


@pytest.mark.parametrize(
    "program",
    [
        "import sc2pool, gymnasium",
        "import gymnasium, sc2pool; gymnasium.register_envs(sc2pool)",
        "import gymnasium, sc2pool, importlib; importlib.reload(sc2pool)",
        "import gymnasium; gymnasium.spec('CartPole-v1'); from sc2pool import Task",
        f"import gymnasium; gymnasium.envs.registration._find_spec('sc2pool:{ID}')",
    ],
)
def test_tasks_are_registered_in_any_import_order(program):
    shown = f"{program}\nprint(*gymnasium.registry)"
    done = run(sys.executable, "-W", "error", "-c", shown)
    assert done.returncode == 0, done.stderr
    registered = [name for name in done.stdout.split() if name.startswith("sc2pool/")]
    assert registered == [f"sc2pool/{name}-v0" for name in PLACES]


def test_a_team_is_a_vector_env(pools, standin_dir):
    env = gymnasium.make_vec("sc2pool/3m-v0", num_envs=3, game=standin_dir)
    pools.callback(env.close)
    assert len(env.stats().instances) == 1, "three marines play one game"


@pytest.mark.parametrize("task", ["MoveToBeacon", "MoveToBeaconBot", "3m", "MarineDuel"])
def test_make_vec_truncates_after_max_episode_steps(task, pools, standin_dir):
    n = 3 if task == "3m" else 2
    env = gymnasium.make_vec(
        f"sc2pool/{task}-v0", num_envs=n, max_episode_steps=4, game=standin_dir
    )
    pools.callback(env.close)
    env.reset(seed=1)
    ended = []
    for _ in range(10):
        *_, terminated, truncated, infos = env.step([1] * n)
        assert not terminated.any()
        assert (truncated == truncated[0]).all()
        ended.append(bool(truncated[0]))
        if task == "3m":
            assert ("battle_won" in infos) == ended[-1]
    # The fifth step of each episode is its reset.
    assert ended == [False, False, False, True, False] * 2


def test_the_registrys_max_episode_steps(pools, standin_dir):
    gymnasium.register(
        "OwnBeacon-v0",
        entry_point="sc2pool:SC2GymEnv",
        vector_entry_point="sc2pool:SC2VectorEnv",
        kwargs={"task": "MoveToBeacon", "game": str(standin_dir)},
        max_episode_steps=2,
    )
    try:
        limited = gymnasium.make_vec("OwnBeacon-v0")
        pools.callback(limited.close)
        unlimited = gymnasium.make_vec("OwnBeacon-v0", max_episode_steps=-1)
        pools.callback(unlimited.close)
    finally:
        del gymnasium.registry["OwnBeacon-v0"]
    for env, expected in ((limited, True), (unlimited, False)):
        env.reset(seed=1)
        assert [bool(env.step([1])[3][0]) for _ in range(2)] == [False, expected]


def test_make_vec_makes_one_pool(pools, standin_dir):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make_vec(ID, num_envs=2, game=standin_dir, seed=3, spares=1)
    pools.callback(env.close)
    assert isinstance(env, sc2pool.SC2VectorEnv)
    assert env.spec.id == ID
    assert str(env).startswith("SC2VectorEnv(task=MoveToBeacon, n=2, spares=1, ")
    assert env.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert len(env.stats().instances) == 3
    assert env.reset()[0] in env.observation_space
    assert env.step(env.action_space.sample())[0] in env.observation_space


ASYNC = """
import gymnasium

if __name__ == "__main__":
    envs = gymnasium.make_vec(
        "sc2pool:sc2pool/MoveToBeacon-v0", num_envs=2, vectorization_mode={mode!r}
    )
    envs.reset(seed=1)
    envs.close()
"""


@pytest.mark.parametrize("mode", ["vector_entry_point", "async"])
def test_async_mode_warns_once(mode, tmp_path, standin_dir):
    """gymnasium's own class then has an `SC2GymEnv` in each of its processes."""
    program = tmp_path / "program.py"
    program.write_text(ASYNC.format(mode=mode))
    done = run(sys.executable, program, env={**os.environ, "SC2PATH": str(standin_dir)})
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("SC2VectorEnv is faster") == (mode == "async")
