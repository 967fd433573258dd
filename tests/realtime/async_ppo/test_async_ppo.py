"""`AsyncPPO` treats envs, callbacks and files as PPO does, and leaves no thread or process."""

from __future__ import annotations

import copy
import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import torch as th
from async_callbacks import RaisesInterrupt, Recording, interrupt_at_every_line
from async_models import (
    SMALL,
    Counting,
    CountingDict,
    FailingUpdates,
    Interrupting,
    SlowUpdates,
)
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback, CheckpointCallback, EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.logger import Logger, configure
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecMonitor, VecNormalize

from sc2pool import AsyncPPO
from sc2pool.errors import ConfigError, LearnerError
from sc2pool.pool import child_process
from sc2pool.realtime.async_ppo.update_process import UpdateProcess
from tests.support.programs import Trainer, assert_gone, by_the_kernel

pytestmark = pytest.mark.usefixtures("no_thread_is_left")

N = 2
N_STEPS = 8
ROLLOUT = N * N_STEPS


def counting(make: Any = Counting, fails_at: int | None = None) -> VecEnv:
    return VecMonitor(DummyVecEnv([lambda: make(fails_at)] * N))


def model_of(kind: Any = AsyncPPO, env: VecEnv | None = None, **options: Any) -> Any:
    env = env or counting()
    policy = "MultiInputPolicy" if isinstance(env.observation_space, spaces.Dict) else "MlpPolicy"
    defaults = {"n_steps": N_STEPS, "batch_size": ROLLOUT, "n_epochs": 1, "device": "cpu"}
    return kind(policy, env, policy_kwargs=SMALL, **(defaults | options))


@pytest.mark.parametrize("last_call", [None, N_STEPS + 3])
def test_callbacks_are_called_as_by_ppo(last_call):
    theirs, ours = Recording(last_call), Recording(last_call)
    expected = model_of(PPO)
    expected.learn(3 * ROLLOUT - 1, callback=theirs)
    model = model_of()
    model.learn(3 * ROLLOUT - 1, callback=ours)
    assert ours.calls == theirs.calls
    assert model.num_timesteps == expected.num_timesteps
    assert ours.threads == {threading.current_thread().name}
    for step in ours.steps:
        assert {"new_obs", "rewards", "dones", "infos", "actions", "n_steps"} <= step.keys()
    learned_from = ours.steps if last_call is None else ours.steps[:-1]
    episodes = sum("episode" in info for step in learned_from for info in step["infos"])
    assert len(model.ep_info_buffer) == episodes > 0


def test_callbacks_see_the_steps_that_the_env_played():
    recording = Recording()
    model_of().learn(4 * ROLLOUT, callback=recording)
    for step in recording.steps:
        for env in range(N):
            info = step["infos"][env]
            assert step["clipped_actions"][env] == info["played"]
            assert step["new_obs"][env] == info["at"]
    for begin in range(0, len(recording.steps), N_STEPS):
        seen = [step["infos"][0]["at"] for step in recording.steps[begin : begin + N_STEPS]]
        assert seen == list(range(seen[0], seen[0] + N_STEPS)), "a rollout has no holes"


class ChecksBuffer(BaseCallback):
    """A callback that checks the rollout buffer before each update."""

    checked = 0

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        buffer, policy = self.model.rollout_buffer, self.model.policy
        counts = buffer.observations[:, 0, 0]
        assert counts.tolist() == list(range(int(counts[0]), int(counts[0]) + N_STEPS))
        for row, count in enumerate(counts):
            assert buffer.episode_starts[row].tolist() == [count % 5 == 0] * N
            if (count + 1) % 5 == 0:  # truncated here
                last = th.full((1, 1), float(count + 1))
                expected = 1.0 + self.model.gamma * policy.predict_values(last).item()
            else:
                expected = 1.0
            assert buffer.rewards[row].tolist() == pytest.approx([expected] * N, abs=1e-5)
        self.checked += 1


def test_the_buffer_is_filled_like_ppos():
    callback = ChecksBuffer()
    model = model_of(gamma=0.9)
    model.learn(5 * ROLLOUT, callback=callback)
    assert callback.checked == 5


def test_weights_reach_the_actor_and_the_learner():
    model = model_of(env=counting(CountingDict), learning_rate=1e-2)
    before = {name: value.clone() for name, value in model.policy.state_dict().items()}
    model.learn(3 * ROLLOUT)
    after = model.policy.state_dict()
    assert any(not th.equal(before[name], after[name]) for name in before)
    assert model._n_updates == 3
    assert model.policy.optimizer.state_dict()["state"][0]["step"] == 3
    assert model.logger.name_to_value["train/n_updates"] == 3


def test_save_and_load_during_and_after_learn(tmp_path):
    model = model_of(actor="thread", max_lag=1, weight_cap=3.0)
    model.learn(2 * ROLLOUT, callback=CheckpointCallback(N_STEPS, str(tmp_path)))
    checkpoint = AsyncPPO.load(tmp_path / f"rl_model_{ROLLOUT}_steps.zip")
    assert checkpoint.num_timesteps == ROLLOUT
    model.save(tmp_path / "model")
    loaded = AsyncPPO.load(tmp_path / "model", env=counting())
    assert (loaded.actor, loaded.max_lag, loaded.weight_cap) == ("thread", 1, 3.0)
    observation = np.array([3.0], np.float32)
    assert loaded.predict(observation, deterministic=True) == model.predict(
        observation, deterministic=True
    )
    loaded.learn(ROLLOUT, reset_num_timesteps=False)
    assert loaded.num_timesteps == 3 * ROLLOUT
    PPO.load(tmp_path / "model").predict(observation)


def test_a_model_saved_by_ppo_can_be_trained_further(tmp_path):
    model_of(PPO).save(tmp_path / "model")
    loaded = AsyncPPO.load(tmp_path / "model", env=counting())
    loaded.learn(ROLLOUT)
    assert loaded.num_timesteps == ROLLOUT


def test_env_and_model_continue_after_learn():
    env = counting()
    model = model_of(env=env)
    model.learn(ROLLOUT)
    steps = env.get_attr("_steps")[0]
    np.testing.assert_array_equal(model._last_obs[:, 0], [steps] * N)
    assert model.predict(model._last_obs)[0].shape == (N,)
    model.learn(ROLLOUT, reset_num_timesteps=False)
    assert model.num_timesteps == 2 * ROLLOUT
    steps = env.get_attr("_steps")[0]
    assert env.get_attr("resets")[0] == 1 + steps // 5, "no reset except at the end of an episode"
    env.step(np.zeros(N, int))


def test_learn_raises_the_exception_of_the_env():
    model = model_of(env=counting(fails_at=N_STEPS + 5))
    recording = Recording()
    with pytest.raises(ZeroDivisionError, match="the env has failed"):
        model.learn(100 * ROLLOUT, callback=recording)
    assert recording.steps[-1]["infos"][0]["at"] <= N_STEPS + 4


@pytest.mark.parametrize("kind", ["thread", "process"])
def test_learn_raises_the_exception_of_an_update(kind):
    model = model_of(FailingUpdates, actor=kind)
    with pytest.raises(FloatingPointError, match="the update has failed") as raised:
        model.learn(100 * ROLLOUT)
    assert model.num_timesteps == 2 * ROLLOUT
    if kind == "process":
        assert "in train" in str(raised.value.__cause__)


def test_ctrl_c(monkeypatch):
    monkeypatch.setattr(Interrupting, "pressed", False)
    model = model_of(env=counting(Interrupting))
    with pytest.raises(KeyboardInterrupt):
        model.learn(10**9)


@pytest.mark.parametrize("game_waits", [False, True])
def test_a_second_ctrl_c_at_any_line_leaves_nothing_that_acts(game_waits, wait_for):
    env = VecNormalize(counting(), norm_obs=False)
    model = model_of(env=env, game_waits=game_waits)
    interrupt_at_every_line(model, env, ROLLOUT, wait_for)


@by_the_kernel
def test_a_second_ctrl_c_leaves_no_update_process(monkeypatch):
    def interrupted(process: UpdateProcess) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(UpdateProcess, "close", interrupted)
        with pytest.raises(KeyboardInterrupt) as raised:
            model_of(actor="process").learn(ROLLOUT, callback=RaisesInterrupt())
    assert raised.value.__context__ is not None
    assert_gone(psutil.Process().children(), within_s=30.0)


def test_an_update_in_the_child_process_has_the_same_result():
    options = {"learning_rate": lambda progress: 0.01 * progress, "n_epochs": 3, "gamma": 0.5}
    env = counting(CountingDict)
    model = model_of(env=env, **options)
    _, callback = model._setup_learn(ROLLOUT)
    with closing(UpdateProcess(model)) as process:
        for progress in (1.0, 0.5):
            PPO.collect_rollouts(model, env, callback, model.rollout_buffer, N_STEPS)
            model._current_progress_remaining = progress
            here = model_of(env=env, **options)
            here.set_logger(Logger(folder=None, output_formats=[]))
            here._current_progress_remaining = progress
            here._n_updates = model._n_updates
            here.set_parameters(copy.deepcopy(model.get_parameters()))
            here.rollout_buffer = copy.deepcopy(model.rollout_buffer)
            here.train()
            process.update(model)
            for name, value in here.policy.state_dict().items():
                th.testing.assert_close(model.policy.state_dict()[name], value)
            assert model._n_updates == here._n_updates
            ours, theirs = (one.policy.optimizer.state_dict()["state"] for one in (model, here))
            th.testing.assert_close(ours, theirs)
            there = model.logger.name_to_value
            for name, value in here.logger.name_to_value.items():
                assert there[name] == pytest.approx(value, rel=1e-3, abs=1e-5), name


class Killed(AsyncPPO):
    def train(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class Stopped(AsyncPPO):
    def train(self) -> None:
        os.kill(os.getpid(), signal.SIGSTOP)


@pytest.mark.parametrize(
    ("kind", "told"),
    [(Killed, "has ended: signal SIGKILL"), (Stopped, "has used no CPU time for 3 s")],
)
def test_an_update_process_that_does_not_answer_is_a_learner_error(kind, told, monkeypatch):
    monkeypatch.setattr(child_process, "_SILENT_S", 3.0)
    with pytest.raises(LearnerError, match=told):
        model_of(kind, actor="process").learn(ROLLOUT)
    assert psutil.Process().children() == []


def test_an_update_process_that_does_not_read_is_a_learner_error(monkeypatch):
    monkeypatch.setattr(child_process, "_READS_WITHIN_S", 0.5)
    monkeypatch.setattr(child_process, "_EXITS_WITHIN_S", 0.1)
    model = model_of()
    # More bytes than a socket holds. The dict is copied, because all models share it.
    model.policy_kwargs = {**model.policy_kwargs, "cargo": bytes(10_000_000)}
    with pytest.raises(LearnerError, match="does not answer"), started_stopped(monkeypatch):
        UpdateProcess(model)
    assert psutil.Process().children() == []


@contextmanager
def started_stopped(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """In the block, stop each update process as soon as it has started."""
    start = child_process._start

    def started(*arguments: Any) -> Any:
        child = start(*arguments)
        child.process.send_signal(signal.SIGSTOP)
        return child

    with monkeypatch.context() as patch:
        patch.setattr(child_process, "_start", started)
        yield


def test_the_update_process_ends_with_the_trainer():
    program = Path(__file__).parents[1] / "programs" / "async_trainer.py"
    with Trainer(program) as trainer:
        trainer.wait_for_stage("training")
        assert len(trainer.children) == 1
    assert_gone(trainer.children, within_s=300.0)


@by_the_kernel
def test_an_update_process_that_is_still_starting_ends_with_the_trainer():
    program = Path(__file__).parents[1] / "programs" / "async_trainer.py"
    with Trainer(program, "stopped") as trainer:
        trainer.wait_for_stage("started")
    assert_gone(trainer.children, within_s=30.0)


class Changing(BaseCallback):
    """A callback that changes the model between two updates."""

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        self.model.n_epochs = 5
        with th.no_grad():
            for parameter in self.model.policy.parameters():
                parameter.zero_()
        for group in self.model.policy.optimizer.param_groups:
            group["lr"] = 0.0
        self.model.lr_schedule = lambda progress: 0.0


def test_changes_by_a_callback_reach_the_update_process():
    model = model_of(actor="process")
    model.learn(ROLLOUT, callback=Changing())
    assert model._n_updates == 5
    assert all((value == 0).all() for value in model.policy.state_dict().values())


@pytest.mark.parametrize("options", [{"use_sde": True, "sde_sample_freq": 3}, {}])
def test_continuous_actions_are_clipped_to_their_bounds(options):
    model = model_of(env=make_vec_env("Pendulum-v1", n_envs=N), **options)
    with th.no_grad():
        model.policy.log_std.fill_(1.0)  # so that many actions are beyond the bound, 2
    recording = Recording()
    model.learn(2 * ROLLOUT, callback=recording)
    chosen = np.array([step["actions"] for step in recording.steps])
    played = np.array([step["clipped_actions"] for step in recording.steps])
    assert len(np.unique(chosen)) == chosen.size
    assert np.abs(chosen).max() > 2.0
    np.testing.assert_array_equal(played, np.clip(chosen, -2.0, 2.0))


def test_normalised_observations(tmp_path):
    env = VecNormalize(counting())
    model = model_of(env=env)
    evaluated = EvalCallback(VecNormalize(counting(), training=False), eval_freq=5, verbose=0)
    saved = CheckpointCallback(N_STEPS, str(tmp_path), save_vecnormalize=True)
    model.learn(3 * ROLLOUT, callback=[evaluated, saved])
    assert type(env.obs_rms) is type(env.ret_rms) is RunningMeanStd
    assert env.training
    assert env.obs_rms.count > 3 * ROLLOUT
    loaded = VecNormalize.load(
        str(tmp_path / f"rl_model_vecnormalize_{ROLLOUT}_steps.pkl"), counting()
    )
    assert type(loaded.obs_rms) is RunningMeanStd
    assert loaded.training
    assert evaluated.last_mean_reward == 5.0


def logged(model: AsyncPPO, folder: Path) -> list[dict[str, Any]]:
    """Learn from three rollouts. Returns the log's line after each rollout."""
    model.set_logger(configure(str(folder), ["json"]))
    model.learn(3 * ROLLOUT)
    return [json.loads(line) for line in (folder / "progress.json").read_text().splitlines()]


@pytest.mark.timing
def test_a_slow_learner_does_not_stall_the_actor_and_dropped_steps_are_counted(tmp_path):
    env = counting()
    log = logged(model_of(SlowUpdates, env=env), tmp_path)
    played = env.get_attr("_steps")[0] * N
    assert played > 3 * ROLLOUT + log[-1]["async/dropped_steps"]
    assert log[-1]["async/dropped_steps"] > ROLLOUT
    assert log[-1]["async/stale_steps"] == 0
    assert [line["async/lag_max"] for line in log] == [0, 1, 1]
    assert log[-1]["async/update_gap_s_max"] < SlowUpdates.update_s
    assert 0 < log[-1]["async/gap_s_p50"] <= log[-1]["async/gap_s_p99"]
    assert log[-1]["async/weight_mean"] == pytest.approx(1.0, abs=0.1)


def test_with_game_waits_every_step_is_learned_from(tmp_path):
    env = counting()
    log = logged(model_of(SlowUpdates, env=env, game_waits=True), tmp_path)
    assert [line["async/dropped_steps"] for line in log] == [0, 0, 0]
    assert [line["async/lag_max"] for line in log] == [0, 1, 1]
    played = env.get_attr("_steps")[0] * N
    assert 3 * ROLLOUT <= played <= 4 * ROLLOUT


def test_steps_older_than_max_lag_are_discarded(tmp_path):
    log = logged(model_of(SlowUpdates, max_lag=0), tmp_path)
    assert [line["async/lag_max"] for line in log] == [0, 0, 0]
    assert log[-1]["async/stale_steps"] > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"actor": "fork"}, "'fork'"),
        ({"max_lag": -1}, "got -1"),
        ({"weight_cap": 0.5}, "got 0.5"),
    ],
)
def test_invalid_arguments_are_config_errors(options, message):
    with pytest.raises(ConfigError, match=message):
        model_of(**options)
