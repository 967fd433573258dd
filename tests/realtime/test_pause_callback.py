"""Games in real time are paused while Stable-Baselines3 updates the policy."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from realtime_pools import are_stopped, games
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import VecMonitor

from sc2pool import PauseCallback, SubprocSC2VecEnv
from sc2pool.errors import ConfigError

N_STEPS = 4
UPDATE_S = 0.5
"""11 game loops in real time."""


def stopped(env: SubprocSC2VecEnv) -> list[bool]:
    return are_stopped(games(env))


class SlowLearner(PPO):
    """PPO with slow updates; records before and after each whether the games are stopped."""

    seen: list[list[bool]]
    fails = False

    def train(self) -> None:
        games = self.env.unwrapped
        self.seen.append(stopped(games))
        time.sleep(UPDATE_S)
        super().train()
        self.seen.append(stopped(games))
        if self.fails:
            raise RuntimeError("out of memory")


def learner(env: Any) -> SlowLearner:
    model = SlowLearner(
        "MlpPolicy", VecMonitor(env), n_steps=N_STEPS, batch_size=8, n_epochs=1, device="cpu"
    )
    model.seen = []
    return model


class EndsAfter(BaseCallback):
    """Ends the training within a rollout."""

    def __init__(self, calls: int) -> None:
        super().__init__()
        self._last = calls

    def _on_step(self) -> bool:
        return self.n_calls < self._last


def test_no_loop_passes_in_two_updates(make_env, tmp_path):
    env = make_env()
    model = learner(env)
    model.set_logger(configure(str(tmp_path), ["json"]))
    model.learn(2 * N_STEPS * 2, callback=PauseCallback())
    assert model.seen == [[True, True]] * 4
    assert stopped(env) == [True, True]
    env.resume()
    assert stopped(env) == [False, False]
    pauses = env.stats().pauses
    assert pauses.count == 4
    assert pauses.paused_s >= 4 * UPDATE_S
    assert pauses.loops == 0
    log = [json.loads(line) for line in (tmp_path / "progress.json").read_text().splitlines()]
    assert [line["pause/loops_passed"] for line in log] == [0, 0]
    assert log[1]["pause/paused_s"] >= 2 * UPDATE_S
    assert env.stats().recycles == {}


@pytest.mark.parametrize("first", ["the pause", "the other"])
def test_a_rollout_that_ends_early(make_env, first):
    env = make_env()
    model = learner(env)
    callbacks = [PauseCallback(), EndsAfter(N_STEPS + 2)]
    if first == "the other":
        callbacks.reverse()
    model.learn(10 * N_STEPS * 2, callback=CallbackList(callbacks))
    assert model.num_timesteps == (N_STEPS + 2) * 2
    assert model.seen == [[True, True]] * 2
    assert stopped(env) == [True, True]
    # The same callback works in the next training, which resumes the paused games.
    model.learn(N_STEPS * 2, callback=callbacks[0 if first == "the pause" else 1])
    assert model.seen == [[True, True]] * 4
    env.resume()
    assert stopped(env) == [False, False]


def test_an_update_that_raises(make_env):
    env = make_env()
    model = learner(env)
    model.fails = True
    callback = PauseCallback()
    with pytest.raises(RuntimeError, match="out of memory"):
        model.learn(N_STEPS * 2, callback=callback)
    assert stopped(env) == [True, True]
    model.fails = False
    model.learn(N_STEPS * 2, callback=callback)
    assert model.seen == [[True, True]] * 4
    assert env.stats().pauses.loops == 0


def test_another_kind_of_env_is_a_config_error_before_the_first_step():
    model = PPO("MlpPolicy", make_vec_env("CartPole-v1"), n_steps=8, batch_size=8, device="cpu")
    with pytest.raises(ConfigError, match="needs a SubprocSC2VecEnv, got DummyVecEnv"):
        model.learn(8, callback=PauseCallback())
