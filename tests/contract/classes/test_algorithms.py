"""SB3's algorithms, wrappers and callbacks, and sb3-contrib's MaskablePPO, on pools of games."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import torch
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.callbacks import MaskableEvalCallback
from sb3_contrib.common.maskable.evaluation import evaluate_policy
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3 import A2C, DQN, PPO, SAC
from stable_baselines3.common.callbacks import BaseCallback, CheckpointCallback, EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecEnv, VecFrameStack, VecMonitor, VecNormalize

from sc2pool import SubprocSC2VecEnv
from tests.contract.tasks import Advised, OneAllowed, Resting, SometimesMasked, Walk

N = 4
STEPS = 256
"""Env steps that are enough for a whole episode of each env, and some updates."""


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Limits torch to one thread, because the games need the cores more than small networks do."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module", autouse=True)
def nothing_is_left() -> Iterator[None]:
    """Looks for remaining processes only after the last test, because two pools outlive a test."""
    yield
    assert psutil.Process().children(recursive=True) == []


@pytest.fixture(scope="module")
def beacons(nothing_is_left: None, standin_dir: Path) -> Iterator[SubprocSC2VecEnv]:
    """Four games with discrete actions and masks."""
    env = SubprocSC2VecEnv(n=N, task=Advised, game=standin_dir)
    yield env
    env.close()


@pytest.fixture(scope="module")
def walks(nothing_is_left: None, standin_dir: Path) -> Iterator[SubprocSC2VecEnv]:
    """Four games with Box actions."""
    env = SubprocSC2VecEnv(n=N, task=Walk, game=standin_dir)
    yield env
    env.close()


def all_of_it(env: VecEnv) -> VecEnv:
    return VecFrameStack(VecNormalize(VecMonitor(env)), n_stack=2)


WRAPPED = {
    "monitor": VecMonitor,
    "normalize": lambda env: VecNormalize(VecMonitor(env)),
    "stack": lambda env: VecFrameStack(VecMonitor(env), n_stack=3),
    "all": all_of_it,
}
PPO_LIKE = {"n_steps": 32, "batch_size": 64, "n_epochs": 2}
OFF_POLICY = {"learning_starts": 64, "train_freq": 16, "batch_size": 32, "buffer_size": 4000}


def parameters(model: Any) -> list[np.ndarray]:
    return [parameter.detach().numpy().copy() for parameter in model.policy.parameters()]


@pytest.mark.parametrize(
    ("games", "algorithm", "wrapped", "settings"),
    [
        ("beacons", PPO, "normalize", PPO_LIKE),
        ("beacons", A2C, "stack", {"n_steps": 32}),
        ("beacons", DQN, "monitor", OFF_POLICY),
        ("beacons", MaskablePPO, "all", PPO_LIKE),
        ("walks", SAC, "normalize", OFF_POLICY),
        ("walks", PPO, "all", PPO_LIKE),
    ],
)
def test_trains(request, games, algorithm, wrapped, settings):
    """A training changes the network, and plays episodes to their end."""
    env = WRAPPED[wrapped](request.getfixturevalue(games))
    model = algorithm("MlpPolicy", env, device="cpu", seed=1, **settings)
    before = parameters(model)
    model.learn(STEPS)
    after = parameters(model)
    assert model.num_timesteps >= STEPS
    assert all(np.isfinite(value).all() for value in after)
    changed = [not np.array_equal(a, b) for a, b in zip(before, after, strict=True)]
    assert 2 * sum(changed) >= len(changed)  # a target network may still be unchanged
    assert len(model.ep_info_buffer) >= N
    assert model.get_env().unwrapped.stats().replacements == {}


def test_trains_on_the_env_of_make_vec_env(pools, standin_dir, caplog):
    env = make_vec_env(
        "sc2pool/MoveToBeacon-v0",
        n_envs=2,
        seed=3,
        vec_env_cls=SubprocSC2VecEnv,
        env_kwargs={"game": str(standin_dir), "max_loops": 240},
    )
    pools.callback(env.close)
    assert "each of these 2 envs is an SC2GymEnv, with a pool of its own" in caplog.text
    model = PPO("MlpPolicy", env, n_steps=64, batch_size=64, n_epochs=1, device="cpu")
    model.learn(128)
    # The Monitor wrapper that `make_vec_env` puts around each env saw whole episodes.
    assert [episode["l"] for episode in model.ep_info_buffer] == [30] * 4


def test_evaluates_and_saves_while_it_trains(walks, vec_task, tmp_path):
    env = VecNormalize(VecMonitor(walks))
    other = VecNormalize(VecMonitor(vec_task(Walk, n=2)), training=False)
    evaluation = EvalCallback(
        other,
        n_eval_episodes=2,
        eval_freq=64,
        log_path=str(tmp_path),
        best_model_save_path=str(tmp_path),
        verbose=0,
    )
    checkpoints = CheckpointCallback(64, str(tmp_path), "walk", save_vecnormalize=True)
    model = PPO("MlpPolicy", env, device="cpu", **PPO_LIKE)
    model.learn(512, callback=[evaluation, checkpoints])
    lengths = np.load(tmp_path / "evaluations.npz")["ep_lengths"]
    assert lengths.tolist() == [[30, 30]] * 2
    np.testing.assert_array_equal(other.obs_rms.mean, env.obs_rms.mean)
    assert (tmp_path / "best_model.zip").exists()
    assert (tmp_path / "walk_vecnormalize_256_steps.pkl").exists()
    resumed = PPO.load(tmp_path / "walk_256_steps", env=env, device="cpu")
    assert resumed.num_timesteps == 256
    resumed.learn(128, reset_num_timesteps=False)
    assert resumed.num_timesteps == 384


# ---- masks -------------------------------------------------------------------------------------


class KillsOneGame(BaseCallback):
    """A callback that kills the game of one env after `after` calls."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.after = after

    def _on_step(self) -> bool:
        if self.n_calls == self.after:
            env = self.training_env.unwrapped
            psutil.Process(env.stats().instances[1].pid).kill()
        return True


def test_masks_are_found_through_the_wrappers(beacons):
    for wrap in WRAPPED.values():
        env = wrap(beacons)
        assert is_masking_supported(env)
        env.reset()
        masks = get_action_masks(env)
        assert (masks.shape, masks.dtype) == ((N, 8), np.bool_)
        np.testing.assert_array_equal(masks, beacons.env_method("action_masks"))


def test_a_task_without_masks_says_so(walks):
    assert not is_masking_supported(VecMonitor(walks))
    with pytest.raises(ValueError, match="does not support action masking"):
        evaluate_policy(None, walks)


@pytest.mark.parametrize(("task", "others"), [(OneAllowed, False), (Resting, True)])
def test_one_game_has_masks_too_or_returns_none(gym_env, task, others):
    env = gym_env(task)
    assert is_masking_supported(env)
    env.reset()
    assert get_action_masks(env).tolist() == [True] + [others] * 7


def test_an_algorithm_learns_where_the_task_returns_no_masks(vec_task):
    """A mask of None allows all actions. One env gives None every second step; later, both do."""
    made = vec_task(SometimesMasked)
    made.set_attr("rests", True, indices=0)
    model = MaskablePPO("MlpPolicy", made, n_steps=8, batch_size=16, n_epochs=1)
    model.learn(16)
    made.set_attr("rests", True)
    model.learn(16)


@pytest.mark.parametrize("spares", [0, 2])
def test_no_masked_action_is_ever_taken(vec_task, spares):
    """The task raises at a masked action: training and evaluation never take one, even after
    faults."""
    pool = vec_task(OneAllowed, n=2, spares=spares)
    env = all_of_it(pool)
    evaluation = MaskableEvalCallback(
        all_of_it(vec_task(OneAllowed, n=1)), n_eval_episodes=3, eval_freq=32, verbose=0
    )
    model = MaskablePPO("MlpPolicy", env, device="cpu", **PPO_LIKE)
    model.learn(128, callback=[KillsOneGame(after=20), evaluation])
    assert sum(pool.stats().replacements.values()) == 1
    assert evaluation.last_mean_reward > -np.inf, "it has evaluated"
    evaluate_policy(model, env, n_eval_episodes=2)


def test_without_its_masks_the_task_would_have_complained(vec_task):
    """Without masks, the task raises, so `test_no_masked_action_is_ever_taken` would fail."""
    model = MaskablePPO("MlpPolicy", vec_task(OneAllowed, n=1), device="cpu", **PPO_LIKE)
    with pytest.raises(Exception, match="is masked"):
        model.learn(64, use_masking=False)
