"""The xjump env: its picture, a played episode, a pool, and a training in the long tier."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing

import gymnasium
import numpy as np
import psutil
import pytest
from gymnasium.utils.env_checker import check_env

from examples.xjump import picture
from examples.xjump.env import ACTIONS, XJumpEnv
from examples.xjump.picture import SIZE, floor_of, is_over
from sc2pool import AsyncPPO, PauseCallback, SubprocSC2VecEnv
from sc2pool.errors import ConfigError, FaultKind, GameFault
from tests.tiers import is_long

STAND, LEFT, RIGHT = range(3)


def drawn(floor: str) -> np.ndarray:
    """The picture of a new game that shows this floor number."""
    seen = np.zeros((SIZE[1], SIZE[0], 3), np.uint8)
    seen[130:500:3, 30:500:2] = (174, 219, 231)
    bits = {str(digit): f"{number:054b}" for number, digit in picture._DIGITS.items()}
    for index, digit in enumerate(floor):
        pixels = np.array([bit == "1" for bit in bits[digit]]).reshape(9, 6)
        seen[77:86, 202 + 6 * index : 208 + 6 * index] = 255 * pixels[..., np.newaxis]
    return seen


@pytest.mark.parametrize("floor", ["0000000001", "0123456789", "9876543210"])
def test_the_floor_is_read(floor):
    assert floor_of(drawn(floor)) == int(floor)


def test_a_number_that_is_not_complete_is_not_read():
    seen = drawn("0000000012")
    seen[80:, 250:] = 0
    assert floor_of(seen) is None


def test_the_end_is_seen():
    seen = drawn("0000000001")
    seen[203, ::4] = 255
    assert not is_over(seen)
    seen[202:206, 200:270] = (0, 0, 130)  # the edge of the box
    assert is_over(seen)
    assert is_over(np.zeros_like(seen))  # after the end, a list of the best scores is shown


def test_a_missing_game_says_what_to_install(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(ConfigError, match=r"no program xjump; on Debian .*apt-get install xjump"):
        XJumpEnv()


HAS_GAME = all(shutil.which(name, path="/usr/bin:/usr/games") for name in ("xjump", "Xvfb"))
needs_xjump = pytest.mark.skipif(not HAS_GAME, reason="apt-get install xjump xvfb")


@pytest.fixture(scope="module")
def shared() -> Iterator[XJumpEnv]:
    with closing(XJumpEnv()) as env:
        yield env


@needs_xjump
def test_episodes(shared):
    for action in (STAND, LEFT):
        seen, info = shared.reset()
        assert seen in shared.observation_space
        assert info["floor"] == 1
        steps, total, terminated = 0, 0.0, False
        while not terminated and steps < 3000:
            after, reward, terminated, _, info = shared.step(np.int64(action))
            steps, total = steps + 1, total + reward
        assert terminated  # the sinking tower must end the episode
        assert total == info["floor"] - 1
    assert (after != seen).any()


@needs_xjump
def test_gymnasiums_env_checker_passes():
    with closing(gymnasium.make("examples.xjump:XJump-v0").unwrapped) as env:
        check_env(env, skip_render_check=True)


@needs_xjump
def test_the_end_of_the_game_is_a_fault():
    with closing(XJumpEnv()) as env:
        env.reset()
        psutil.Process(env.game_pid).kill()
        with pytest.raises(GameFault, match="it ended: signal SIGKILL") as raised:
            env.step(np.int64(STAND))
        assert raised.value.kind is FaultKind.GAME_EXITED


@needs_xjump
@pytest.mark.skipif(not is_long(), reason="a training is in the long tier")
@pytest.mark.parametrize(
    ("learner", "callback"), [("PPO", PauseCallback), ("AsyncPPO", lambda: None)]
)
def test_training(learner, callback):
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import VecMonitor

    with closing(SubprocSC2VecEnv([XJumpEnv])) as pool:
        kind = {"PPO": PPO, "AsyncPPO": AsyncPPO}[learner]
        model = kind("CnnPolicy", VecMonitor(pool), n_steps=64, batch_size=32, n_epochs=1)
        model.learn(256, callback=callback())
        assert model.num_timesteps >= 256
        assert pool.action_space.n == len(ACTIONS)
        assert not pool.stats().replacements
