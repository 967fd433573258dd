"""Clause 11 of the contract: gymnasium's registry, the checkers of gymnasium and SB3, SB3's
wrappers."""

from __future__ import annotations

import asyncio
import os
import sys
import warnings
from contextlib import closing
from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.registration import load_env_creator
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env as gymnasium_check
from gymnasium.vector import AutoresetMode
from stable_baselines3 import PPO
from stable_baselines3.common.env_checker import check_env as sb3_check
from stable_baselines3.common.envs import BitFlippingEnv
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import (
    VecFrameStack,
    VecMonitor,
    VecNormalize,
    VecTransposeImage,
)

import sc2pool
from sc2pool.errors import ActionError, ClosedError
from sc2pool.tasks.registry import BUILT_IN, TASK_PLACES, resolve_task
from tests.contract.conftest import without_workers
from tests.contract.envs import Counting, Sampling
from tests.support.pools import begun
from tests.support.programs import run

ID = "sc2pool/MoveToBeacon-v0"


@pytest.mark.parametrize("name", TASK_PLACES)
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
            gymnasium_check(env.unwrapped)


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
    assert registered == [f"sc2pool/{name}-v0" for name in TASK_PLACES]


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
    # Each fifth step is the reset that follows an episode of four steps.
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
    """In async mode, gymnasium's own vector class has an `SC2GymEnv` in each of its processes."""
    program = tmp_path / "program.py"
    program.write_text(ASYNC.format(mode=mode))
    done = run(sys.executable, program, env={**os.environ, "SC2PATH": str(standin_dir)})
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("SC2VectorEnv is faster") == (mode == "async")


@without_workers
@pytest.mark.parametrize("task", BUILT_IN)
def test_both_checkers_pass(gym_env, task):
    definition = resolve_task(task)
    against = {"opponent": definition.scripted} if definition.players == 2 else {}
    env = gym_env(task, **against)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sb3_check(env)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # The only allowed warning says that an env made without `gymnasium.make` has no spec.
        warnings.filterwarnings("ignore", message=".*not having a spec.*")
        gymnasium_check(env, skip_close_check=True)
    env.close()
    env.close()


@without_workers
def test_an_episode_ends_without_autoreset(gym_env):
    env = gym_env(max_loops=24)
    with pytest.raises(ResetNeeded):
        env.step(0)
    env.reset(seed=1)
    for step in range(1, 4):
        observation, reward, terminated, truncated, info = env.step(0)
        assert isinstance(reward, float)
        assert (terminated, info) == (False, {})
        assert truncated == (step == 3), "24 loops, eight a step"
    assert env.observation_space.contains(observation)
    with pytest.raises(ResetNeeded):
        env.step(0)
    assert env.observation_space.contains(env.reset()[0])


@without_workers
def test_an_action_outside_the_space_is_told(gym_env):
    env = begun(gym_env())
    for wrong in (8, -1, 0.5, None, [0]):
        with pytest.raises(ActionError, match=r"Discrete\(8\)"):
            env.step(wrong)
    env.step(np.int64(7))


def test_it_works_where_an_event_loop_runs(gym_env):
    async def notebook_cell() -> None:
        env = begun(gym_env())
        env.step(0)

    asyncio.run(notebook_cell())


@without_workers
def test_closed_is_closed(gym_env):
    env = begun(gym_env())
    env.close()
    for call in (env.reset, lambda: env.step(0)):
        with pytest.raises(ClosedError):
            call()


@without_workers
def test_vec_monitor(vec):
    monitored = begun(VecMonitor(vec(partial(Counting, 2), partial(Counting, 3))))
    ended = []
    for _ in range(6):
        infos = monitored.step([0, 0])[3]
        ended += [
            (info["episode"]["l"], info["episode"]["r"]) for info in infos if "episode" in info
        ]
    assert sorted(ended) == [(2, 3.0)] * 3 + [(3, 6.0)] * 2


@without_workers
def test_vec_monitor_warns_of_a_monitor_below(vec):
    made = vec(lambda: Monitor(Counting()))
    with pytest.warns(UserWarning, match="already wrapped with a `Monitor`"):
        VecMonitor(made)
    with pytest.warns(UserWarning, match="already wrapped with a `Monitor`"):
        VecMonitor(VecNormalize(made))


@without_workers
def test_vec_normalize(vec):
    made = vec(*[partial(Counting, 4)] * 2)
    normalized = begun(VecNormalize(made))
    for step in range(1, 9):
        _, _, dones, infos = normalized.step([0, 0])
        raw = normalized.get_original_obs()
        assert raw.tolist() == [[float(step % 4)]] * 2, "SB3 changes its copy, not ours"
        for done, info in zip(dones, infos, strict=True):
            assert ("terminal_observation" in info) == done
    assert normalized.obs_rms.count > 8
    assert normalized.get_attr("length") == [4, 4]
    with pytest.raises(AttributeError):
        _ = normalized.count_that_is_nowhere


@without_workers
def test_vec_frame_stack(vec):
    stacked = VecFrameStack(vec(*[partial(Counting, 3)] * 2), n_stack=3)
    assert stacked.reset().tolist() == [[0, 0, 0]] * 2
    assert stacked.step([0, 0])[0].tolist() == [[0, 0, 1]] * 2
    assert stacked.step([0, 0])[0].tolist() == [[0, 1, 2]] * 2
    observations, _, _, infos = stacked.step([0, 0])
    assert observations.tolist() == [[0, 0, 0]] * 2
    assert [info["terminal_observation"].tolist() for info in infos] == [[1, 2, 3]] * 2


@without_workers
def test_vec_transpose_image(vec):
    image = spaces.Box(0, 255, (36, 40, 3), np.uint8)
    transposed = VecTransposeImage(vec(*[partial(Sampling, image, spaces.Discrete(2))] * 2))
    assert transposed.reset().shape == (2, 3, 36, 40)
    assert transposed.step([0, 0])[0].shape == (2, 3, 36, 40)


@without_workers
def test_goals_are_rewarded_by_the_envs_own_method(vec):
    made = vec(partial(BitFlippingEnv, n_bits=3), partial(BitFlippingEnv, n_bits=3))
    observations = made.reset()
    achieved, desired = observations["achieved_goal"], observations["desired_goal"]
    (rewards,) = made.env_method("compute_reward", achieved, desired, {}, indices=[0])
    assert rewards.shape == (2,)


@without_workers
def test_ppo_learns_on_a_task_without_a_warning(vec_task):
    monitored = VecMonitor(vec_task(seed=1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = PPO("MlpPolicy", monitored, n_steps=16, batch_size=32, n_epochs=1, device="cpu")
        model.learn(64)
    assert model.num_timesteps == 64
