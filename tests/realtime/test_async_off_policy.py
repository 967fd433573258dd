"""`AsyncSAC`, `AsyncTD3` and `AsyncDQN` behave like SB3's classes, and lose no step."""

from __future__ import annotations

import json
import threading
from typing import Any

import numpy as np
import pytest
import torch as th
from async_callbacks import Raises, Recording, interrupt_at_every_line
from async_models import SMALL, Continuous, Counting, CountingDict, Interrupting
from gymnasium import spaces
from stable_baselines3 import DQN, SAC, TD3
from stable_baselines3.common.callbacks import CheckpointCallback
from stable_baselines3.common.logger import configure
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecMonitor, VecNormalize
from stable_baselines3.her.her_replay_buffer import HerReplayBuffer

from sc2pool import AsyncDQN, AsyncSAC, AsyncTD3
from sc2pool.errors import ConfigError
from sc2pool.realtime import async_off_policy

pytestmark = pytest.mark.usefixtures("no_thread_is_left")

N = 2
ROLLOUT = 4 * N
CLASSES = [(DQN, AsyncDQN), (SAC, AsyncSAC), (TD3, AsyncTD3)]


def env_for(kind: type[Any], make: Any = None, n: int = N, fails_at: int | None = None) -> VecEnv:
    make = make or (Counting if issubclass(kind, DQN) else Continuous)
    return VecMonitor(DummyVecEnv([lambda: make(fails_at)] * n))


def model_of(kind: Any, env: VecEnv | None = None, **options: Any) -> Any:
    env = env or env_for(kind)
    policy = "MultiInputPolicy" if isinstance(env.observation_space, spaces.Dict) else "MlpPolicy"
    defaults = {"train_freq": 4, "learning_starts": 2 * ROLLOUT, "batch_size": 8}
    defaults |= {"buffer_size": 1_000, "device": "cpu"}
    defaults["policy_kwargs"] = dict(SMALL)  # a copy, because SB3 changes the dict
    return kind(policy, env, **(defaults | options))


def played(env: VecEnv) -> int:
    return env.get_attr("_steps")[0]


@pytest.mark.parametrize("last_call", [None, 22])
@pytest.mark.parametrize(("theirs", "ours"), CLASSES)
def test_callbacks_and_updates_are_those_of_sb3(theirs, ours, last_call):
    their_calls, our_calls = Recording(last_call), Recording(last_call)
    expected = model_of(theirs)
    expected.learn(7 * ROLLOUT - 1, callback=their_calls)
    model = model_of(ours, game_waits=True)
    model.learn(7 * ROLLOUT - 1, callback=our_calls)
    assert our_calls.calls == their_calls.calls
    assert our_calls.threads == {threading.current_thread().name}
    assert our_calls.steps[0].keys() >= their_calls.steps[0].keys() - {"continue_training"}
    assert model._episode_num == expected._episode_num > 0
    assert len(model.ep_info_buffer) == len(expected.ep_info_buffer)
    for name in ("num_timesteps", "_n_updates", "exploration_rate", "_n_calls"):
        assert getattr(model, name, None) == getattr(expected, name, None), name


@pytest.mark.parametrize("game_waits", [False, True])
@pytest.mark.parametrize(
    ("train_freq", "gradient_steps"), [(1, 1), (4, 2), (3, -1), ((2, "episode"), -1), (4, 0)]
)
def test_updates_never_exceed_the_wanted_ratio(train_freq, gradient_steps, game_waits):
    settings = {"train_freq": train_freq, "gradient_steps": gradient_steps, "learning_starts": 10}
    expected = model_of(DQN, env_for(DQN, n=1), **settings)
    expected.learn(60)
    made: list[tuple[int, int]] = []

    class Noting(AsyncDQN):
        def train(self, gradient_steps: int, batch_size: int = 100) -> None:
            super().train(gradient_steps, batch_size)
            made.append((self.num_timesteps, self._n_updates))

    model = model_of(Noting, env_for(DQN, n=1), game_waits=game_waits, **settings)
    model.learn(60)
    if game_waits:
        assert model._n_updates == expected._n_updates
    assert model._n_updates <= expected._n_updates
    wanted = model._ratio.figures()["updates_per_step_wanted"]
    assert all(updates <= wanted * steps for steps, updates in made)


@pytest.mark.parametrize("game_waits", [False, True])
@pytest.mark.parametrize(
    ("kind", "make", "options"),
    [
        (AsyncDQN, Counting, {}),
        (AsyncDQN, CountingDict, {}),
        (AsyncSAC, Continuous, {}),
        (AsyncSAC, Continuous, {"use_sde": True, "sde_sample_freq": 3}),
        (AsyncTD3, Continuous, {"action_noise": NormalActionNoise(np.zeros(1), np.ones(1))}),
        (
            AsyncDQN,
            Counting,
            {
                "optimize_memory_usage": True,
                "replay_buffer_kwargs": {"handle_timeout_termination": False},
            },
        ),
    ],
)
def test_every_step_is_stored_once_and_in_order(kind, make, options, game_waits):
    env = env_for(kind, make)
    model = model_of(kind, env, game_waits=game_waits, **options)
    recording = Recording()
    model.learn(8 * ROLLOUT, callback=recording)
    first = model.replay_buffer.pos
    assert first == played(env) >= 8 * ROLLOUT // N
    model.learn(2 * ROLLOUT, reset_num_timesteps=False)
    assert model.replay_buffer.pos == played(env) > first
    check_buffer(model, model.replay_buffer.pos)
    for number, step in enumerate(recording.steps):
        for row in range(N):
            assert step["infos"][row]["at"] == number + 1
            assert np.all(step["actions"][row] == step["infos"][row]["played"])


def check_buffer(model: Any, size: int) -> None:
    """Check that the buffer has the transitions of `Counting`'s steps from 0 to `size`."""
    buffer = model.replay_buffer
    counts = np.arange(size, dtype=np.float32)
    ends = (counts + 1) % 5 == 0
    for row in range(N):
        np.testing.assert_array_equal(of_count(buffer.observations)[:size, row, 0], counts)
        if not buffer.optimize_memory_usage:
            following = of_count(buffer.next_observations)[:size, row, 0]
            np.testing.assert_array_equal(following, counts + 1)
        np.testing.assert_array_equal(buffer.rewards[:size, row], 1.0)
        np.testing.assert_array_equal(buffer.dones[:size, row], ends)
        if buffer.handle_timeout_termination:
            np.testing.assert_array_equal(buffer.timeouts[:size, row], ends)


def of_count(observations: Any) -> Any:
    return observations["count"] if isinstance(observations, dict) else observations


@pytest.mark.parametrize("kind", [AsyncDQN, AsyncSAC])
def test_the_buffer_has_values_from_before_vec_normalize(kind, tmp_path):
    env = VecNormalize(env_for(kind), clip_obs=1e6)
    model = model_of(kind, env)
    model.learn(8 * ROLLOUT, callback=CheckpointCallback(9, str(tmp_path), save_vecnormalize=True))
    size = model.replay_buffer.pos
    counts = np.arange(size, dtype=np.float32)
    np.testing.assert_array_equal(model.replay_buffer.observations[:size, 0, 0], counts)
    # An episode's last observation has rounding errors, because its normalisation was undone.
    following = model.replay_buffer.next_observations[:size, 0, 0]
    np.testing.assert_allclose(following, counts + 1, rtol=1e-4)
    np.testing.assert_array_equal(model.replay_buffer.rewards[:size], 1.0)
    assert type(env.obs_rms) is type(env.ret_rms) is RunningMeanStd
    assert model._last_original_obs[0, 0] == size
    loaded = VecNormalize.load(str(tmp_path / "rl_model_vecnormalize_18_steps.pkl"), env_for(kind))
    assert type(loaded.obs_rms) is RunningMeanStd


def test_actions_are_random_until_learning_starts_then_of_the_newest_weights():
    class PrefersTwo(AsyncDQN):
        def train(self, gradient_steps: int, batch_size: int = 100) -> None:
            super().train(gradient_steps, batch_size)
            with th.no_grad():
                self.q_net.q_net[-1].bias[2] = 1e6

    recording = Recording()
    options = {"exploration_initial_eps": 0.0, "exploration_final_eps": 0.0}
    model = model_of(PrefersTwo, game_waits=True, learning_starts=20 * N, **options)
    model.learn(40 * N, callback=recording)
    actions = np.array([step["actions"] for step in recording.steps])
    assert len(np.unique(actions[:20])) == 3
    assert np.all(actions[20 + 4 + 4 :] == 2), "one rollout is played during the first update"


def test_the_noise_of_an_env_begins_again_with_its_episode():
    class Noting(NormalActionNoise):
        resets = 0

        def reset(self) -> None:
            Noting.resets += 1

    class Begins(Recording):
        def _on_training_start(self) -> None:
            Noting.resets = 0

    env = env_for(AsyncTD3)
    model = model_of(AsyncTD3, env, action_noise=Noting(np.zeros(1), np.ones(1)))
    model.learn(4 * ROLLOUT, callback=Begins())
    assert Noting.resets == played(env) // 5 * N


def test_a_shared_features_extractor():
    kwargs = {**SMALL, "share_features_extractor": True}
    model = model_of(AsyncSAC, game_waits=True, policy_kwargs=kwargs)
    model.learn(4 * ROLLOUT)
    assert model._n_updates > 0


@pytest.mark.parametrize(("theirs", "ours"), CLASSES)
def test_models_and_buffers_are_sb3s(theirs, ours, tmp_path):
    original = model_of(theirs)
    original.learn(3 * ROLLOUT)
    original.save(tmp_path / "theirs")
    original.save_replay_buffer(tmp_path / "buffer")
    model = ours.load(tmp_path / "theirs", env=env_for(ours))
    model.load_replay_buffer(tmp_path / "buffer")
    model.learn(3 * ROLLOUT, callback=CheckpointCallback(5, str(tmp_path)))
    assert model.replay_buffer.pos >= 6 * ROLLOUT // N
    model.late_after_s, model.on_late, model.game_waits = 2.0, lambda chosen, n: chosen, True
    model.save(tmp_path / "ours")
    loaded = ours.load(tmp_path / "ours", env=env_for(ours))
    assert (loaded.late_after_s, loaded.game_waits) == (2.0, True)
    loaded.learn(ROLLOUT, reset_num_timesteps=False)
    observation = np.array([3.0], np.float32)
    again = theirs.load(tmp_path / "ours", env=env_for(theirs))
    for one in (again, ours.load(tmp_path / "rl_model_10_steps")):
        assert one.predict(observation)[0].shape == model.predict(observation)[0].shape
    again.learn(ROLLOUT)


def test_another_env_can_be_set():
    model = model_of(AsyncDQN)
    model.learn(2 * ROLLOUT)
    env = env_for(AsyncDQN)
    model.set_env(env)
    model.learn(2 * ROLLOUT, reset_num_timesteps=False)
    assert played(env) >= 2 * ROLLOUT // N


class Behind(AsyncDQN):
    """A DQN that waits in each update until its actor has made ten steps."""

    has_begun = threading.Event()
    """An event that the first update sets."""

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        assert self._actor is not None
        self.has_begun.set()
        enough = self._actor._num_timesteps + 10 * N
        while self._actor._num_timesteps < enough and self._actor._thread.is_alive():
            pass_time()
        super().train(gradient_steps, batch_size)


class WaitsForBehind(Counting):
    """An env that waits for the first update, before which a busy machine might play all steps."""

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if self._steps == 5:
            assert Behind.has_begun.wait(60.0)
        return super().step(action)


def pass_time() -> None:
    threading.Event().wait(0.001)


def test_a_learner_that_is_too_slow_loses_updates_not_steps(tmp_path):
    env = env_for(Behind, WaitsForBehind)
    model = model_of(Behind, env, train_freq=1, learning_starts=0)
    model.set_logger(configure(str(tmp_path), ["json"]))
    recording = Recording()
    model.learn(100 * N, callback=recording, log_interval=1)
    check_buffer(model, played(env))
    assert len(recording.steps) >= 100
    log = [json.loads(line) for line in (tmp_path / "progress.json").read_text().splitlines()]
    assert log[-1]["async/updates_per_step_wanted"] == 1 / N
    assert log[-1]["async/updates_per_step"] <= 1 / 10 / N + 1 / 100
    assert log[-1]["async/full_queue_steps"] == log[-1]["async/late_steps"] == 0
    # Both envs end episodes in the same step. The first of the two log lines has the figures.
    assert max(line["async/lag_max"] for line in log[::2]) >= 1
    assert any(line.get("async/gap_s_max", 0) >= line.get("async/gap_s_p50", 1) for line in log)
    assert any("async/update_gap_s_max" in line for line in log)


def test_the_actor_waits_if_the_queue_is_full(monkeypatch):
    monkeypatch.setattr(async_off_policy, "_MAX_QUEUED", 5)

    class Stands(AsyncDQN):
        def train(self, gradient_steps: int, batch_size: int = 100) -> None:
            assert self._actor is not None
            steps = self._actor.steps
            full = steps.full
            while steps.full == full:
                pass_time()
            assert len(steps) == 5

    env = env_for(Stands)
    model = model_of(Stands, env, learning_starts=0)
    model.learn(40 * N)
    check_buffer(model, played(env))


def test_learn_raises_the_exception_of_the_env():
    env = env_for(AsyncDQN, fails_at=33)
    model = model_of(AsyncDQN, env)
    with pytest.raises(ZeroDivisionError, match="the env has failed"):
        model.learn(10**6)
    assert model.num_timesteps == 32 * N
    check_buffer(model, 32)


@pytest.mark.parametrize("of", ["callback", "update"])
def test_after_an_exception_no_step_is_missing(of):
    class Fails(AsyncDQN):
        def train(self, gradient_steps: int, batch_size: int = 100) -> None:
            raise LookupError("the update has failed")

    env = env_for(Fails)
    model = model_of(Fails, env)
    with pytest.raises(LookupError, match=f"the {of} has failed"):
        model.learn(10**6, callback=Raises() if of == "callback" else None)
    check_buffer(model, played(env))


def test_ctrl_c(monkeypatch):
    monkeypatch.setattr(Interrupting, "pressed", False)
    model = model_of(AsyncDQN, env_for(AsyncDQN, Interrupting))
    with pytest.raises(KeyboardInterrupt):
        model.learn(10**9)


@pytest.mark.parametrize("game_waits", [False, True])
def test_a_second_ctrl_c_at_any_line_leaves_nothing_that_acts(game_waits, wait_for):
    env = VecNormalize(env_for(AsyncDQN), norm_obs=False)
    model = model_of(AsyncDQN, env, game_waits=game_waits)
    interrupt_at_every_line(model, env, ROLLOUT, wait_for)
    stored = model.replay_buffer.observations[: model.replay_buffer.pos, 0, 0]
    assert np.all(np.diff(stored) > 0), "no step is stored twice"


class Goals(Counting):
    observation_space = spaces.Dict(
        {
            name: spaces.Box(0, np.inf, (1,), np.float32)
            for name in ("observation", "achieved_goal", "desired_goal")
        }
    )

    def observe(self) -> Any:
        return dict.fromkeys(self.observation_space, super().observe())


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (Goals, {"replay_buffer_class": HerReplayBuffer}, "HerReplayBuffer"),
        (Counting, {"train_freq": (1, "episode")}, "there are 2"),
        (Counting, {"train_freq": 0}, "got 0"),
    ],
)
def test_what_cannot_work_is_a_config_error_before_any_step(make, options, message, recwarn):
    env = env_for(AsyncDQN, make)
    model = model_of(AsyncDQN, env, **options)
    with pytest.raises(ConfigError, match=message):
        model.learn(ROLLOUT)
    assert env.get_attr("resets") == [0] * N
