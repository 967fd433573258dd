"""`RealTimeEnv` on a small live game: its time, pauses and faults, and programs that play it."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import psutil
import pytest
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from live_envs import RIGHT, STAY, Seconds, Ticks
from stable_baselines3 import PPO
from stable_baselines3.common.env_checker import check_env as check_env_of_sb3

from sc2pool import AsyncPPO, PauseCallback, SubprocSC2VecEnv
from sc2pool.errors import ActionError, ClosedError, ConfigError, FaultKind, GameFault, PauseError
from sc2pool.realtime.env import ActionInFlightObservation, RealTimeEnv, StepResult
from sc2pool.realtime.gate import PauseGate

PAUSE_S = 2.0
BOTH = pytest.mark.parametrize("env", [Seconds, Ticks], indirect=True)


@pytest.fixture
def env(request: pytest.FixtureRequest) -> Iterator[Seconds]:
    """A fixture: an env whose first episode has begun."""
    with closing(getattr(request, "param", Seconds)()) as env:
        env.reset()
        yield env


def step(env: gymnasium.Env[Any, Any], action: int = STAY) -> dict[str, Any]:
    """Play one step, and return its info."""
    return env.step(np.int64(action))[4]


def miss_four_periods(env: Seconds) -> None:
    """Let the game play 23 ticks, which take 0.23 s or longer."""
    until = env.state()[0] + 23
    env.wait_until(lambda: env.state()[0] >= until, 60, "the 23rd tick")


def step_until_fault(env: Seconds) -> GameFault:
    with pytest.raises(GameFault) as raised:
        while True:
            step(env)
    return raised.value


# ---- time ----------------------------------------------------------------------------------------


@BOTH
def test_an_action_acts_for_a_period(env):
    began_s, first = time.monotonic(), env.state()[0]
    seen, total, _, _, info = env.step(np.int64(RIGHT))
    for _ in range(9):
        seen, reward, _, _, info = env.step(np.int64(RIGHT))
        total += reward
    assert time.monotonic() - began_s >= 9 * env.period_s
    assert 0 < total == seen[0] <= info["tick"] - first
    assert info.keys() == {"tick", "sc2pool.gap_s", "sc2pool.lost_periods"}


@BOTH
def test_the_first_period_of_an_episode_is_whole(env):
    until = env.state()[0] + 3
    env.wait_until(lambda: env.state()[0] >= until, 60, "the third tick")
    began = env.state()[0]
    info = step(env)
    assert info["tick"] - began >= (5 if isinstance(env, Ticks) else 3)
    assert info["sc2pool.gap_s"] > 0.01


@BOTH
def test_a_late_action_is_counted(env):
    step(env)
    miss_four_periods(env)
    info = step(env)
    assert info["sc2pool.lost_periods"] >= 4
    assert info["sc2pool.gap_s"] >= 3.5 * env.period_s
    assert info["sc2pool.gap_s"] == pytest.approx(env.gap_s)


@pytest.mark.timing
def test_time_before_a_pause_is_counted(env):
    with PauseGate(env.game_pid) as gate:
        step(env)
        miss_four_periods(env)
        with gate.pausing():
            time.sleep(PAUSE_S)
        info = step(env)
    assert 3 <= info["sc2pool.lost_periods"] < PAUSE_S / env.period_s


def test_a_slow_act_is_counted_and_said_once(env, monkeypatch, caplog):
    monkeypatch.setattr(env, "act", lambda action: time.sleep(2.5 * env.period_s))
    with caplog.at_level(logging.WARNING, "sc2pool"):
        infos = [step(env) for _ in range(3)]
    assert env.slow_acts == 3
    assert sum("act took" in record.message for record in caplog.records) == 1
    assert all(info["sc2pool.lost_periods"] >= 1 for info in infos)


def test_the_clocks_thread_ends_with_the_game():
    env = Seconds()
    env.reset()
    (clock,) = (one for one in threading.enumerate() if "sc2pool-running" in one.name)
    env.game.kill()
    clock.join(60)
    assert not clock.is_alive()
    env.close()


# ---- faults --------------------------------------------------------------------------------------


@BOTH
def test_the_end_of_a_game_is_a_fault_with_its_exit_code(env):
    env.say("exit 3")
    fault = step_until_fault(env)
    assert fault.kind is FaultKind.GAME_EXITED
    assert fault.detail.endswith(f"(process {env.game_pid}): it ended: exit code 3")
    assert env.game.wait(60) == 3  # the game's owner can still read the exit code
    with pytest.raises(ResetNeeded):
        step(env)


def write_until_the_pipe_breaks(env: Seconds) -> None:
    env.game.kill()
    while True:
        env.say("begin")


@BOTH
def test_an_error_of_act_that_comes_from_the_games_end(env, monkeypatch):
    monkeypatch.setattr(env, "act", lambda action: write_until_the_pipe_breaks(env))
    with pytest.raises(GameFault, match="it ended: ") as raised:
        step(env)
    assert isinstance(raised.value.__cause__, OSError)
    with pytest.raises(ResetNeeded):
        step(env)
    monkeypatch.setattr(env, "begin", lambda options: write_until_the_pipe_breaks(env))
    with pytest.raises(GameFault, match="it ended: "):
        env.reset()


def test_an_error_of_act_while_the_game_runs(env, monkeypatch):
    monkeypatch.setattr(env, "act", lambda action: 1 // 0)
    for _ in range(2):  # a hook's error is raised unchanged, and the episode continues
        with pytest.raises(ZeroDivisionError):
            step(env)


def test_a_game_of_another_parent_ends_with_an_unknown_code(env):
    env.game.kill()
    env.game.wait()
    assert "it ended: exit code unknown" in step_until_fault(env).detail


@pytest.mark.parametrize("env", [Ticks], indirect=True)
def test_ticks_that_stand_still_are_a_fault(env):
    env.say("freeze")
    env.frozen_after_s = 0.3
    fault = step_until_fault(env)
    assert fault.kind is FaultKind.HUNG
    assert "it has played no tick for 0.3 s" in fault.detail


def test_an_observation_that_stays_the_same_is_a_fault(env):
    env.frozen_after_s = 0.3
    for _ in range(10):
        step(env, RIGHT)
    fault = step_until_fault(env)  # without a move, the position stays the same
    assert fault.kind is FaultKind.HUNG
    assert "has not changed for 0.3 s; if that may be, set frozen_after_s" in fault.detail


@BOTH
def test_a_game_that_is_stopped_during_a_step_is_a_fault(env):
    os.kill(env.game_pid, signal.SIGSTOP)
    env.frozen_after_s = 0.3
    fault = step_until_fault(env)
    assert fault.kind is FaultKind.STOPPED
    assert "it was suspended for 0.3 s during a step" in fault.detail


def test_an_event_that_does_not_come_is_a_fault(env):
    with pytest.raises(GameFault, match=r"the second level did not come within 0.1 s"):
        env.wait_until(lambda: False, 0.1, "the second level")


# ---- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attributes", "error"),
    [
        ({"period_s": 0}, r"Wrong.period_s is 0, expected a positive number of seconds"),
        ({"period_s": -0.1}, r"period_s is -0.1"),
        ({"period_s": float("nan")}, r"period_s is nan"),
        ({"period_s": "0.1"}, r"period_s is '0.1'"),
        ({"period_ticks": 0}, r"period_ticks is 0, expected a positive int or None"),
        ({"period_ticks": 1.5}, r"period_ticks is 1.5"),
        ({"frozen_after_s": 0}, r"frozen_after_s is 0, expected a positive number"),
        ({"action_space": 4}, r"has 4 as a space, expected a gymnasium.spaces.Space"),
    ],
)
def test_a_wrong_attribute_is_an_error_of_the_class(attributes, error):
    with pytest.raises(ConfigError, match=error):
        type("Wrong", (RealTimeEnv,), attributes)


@pytest.mark.parametrize("missing", ["observation_space", "action_space", "period_s"])
def test_a_missing_attribute_is_an_error(missing):
    given = {
        "observation_space": spaces.Discrete(2),
        "action_space": spaces.Discrete(2),
        "period_s": 0.1,
    }
    del given[missing]
    with pytest.raises(ConfigError, match=f"Wrong has no {missing}; set it in the class or"):
        type("Wrong", (RealTimeEnv,), given)().reset()


def test_a_missing_space_is_an_error_in_a_pool():
    class NoSpace(RealTimeEnv):
        observation_space = spaces.Discrete(2)

    with pytest.raises(ConfigError, match="NoSpace has no action_space"):
        SubprocSC2VecEnv([NoSpace])


def test_an_attribute_may_be_set_in_init_and_is_checked_by_reset(env):
    env.period_s = 0.0
    with pytest.raises(ConfigError, match=r"Seconds.period_s is 0.0"):
        env.reset()


def test_a_process_that_does_not_exist_is_a_fault(env):
    process = psutil.Popen(["true"])
    process.wait()
    env.game_pid, pid = process.pid, env.game_pid
    with pytest.raises(GameFault, match=f"the game is gone: there is no process {process.pid}"):
        env.reset()
    env.game_pid = pid


def test_an_action_outside_the_space_does_not_reach_the_game(env):
    with pytest.raises(ActionError, match=r"action 2 is not in Discrete\(2\)"):
        env.step(2)
    step(env)


def test_steps_need_a_reset_and_an_open_env():
    env = Seconds()
    with pytest.raises(ResetNeeded, match=r"Seconds: call reset\(\) before step\(\)"):
        step(env)
    env.close()
    with pytest.raises(ClosedError, match="Seconds is closed"):
        env.reset()


def test_no_optional_package_is_needed_to_import_the_base_class():
    blocked = ("mss", "Xlib", "stable_baselines3", "torch")
    program = f"""
import sys
sys.modules |= dict.fromkeys({blocked})
import sc2pool.realtime.env, sc2pool.realtime.screen.window
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)


# ---- programs that play --------------------------------------------------------------------------


def test_the_checkers_of_gymnasium_and_sb3_pass():
    if "Seconds-v0" not in gymnasium.registry:
        gymnasium.register("Seconds-v0", Seconds, nondeterministic=True)
    with closing(gymnasium.make("Seconds-v0").unwrapped) as env:
        check_env(env, skip_render_check=True)
        check_env_of_sb3(env)


def test_the_action_in_flight():
    with closing(ActionInFlightObservation(Seconds())) as env:
        seen, _ = env.reset()
        assert seen in env.observation_space
        assert (seen["last_action"], seen["delay_periods"]) == (2, 0)
        time.sleep(3 * 0.05)
        seen, *_ = env.step(np.int64(RIGHT))
        assert seen in env.observation_space
        assert seen["last_action"] == RIGHT
        assert seen["delay_periods"] >= 2
        check_env_of_sb3(env)


def test_the_action_in_flight_is_for_games_in_real_time():
    with (
        closing(gymnasium.make("CartPole-v1")) as env,
        pytest.raises(ConfigError, match="for a RealTimeEnv, got CartPoleEnv"),
    ):
        ActionInFlightObservation(env)


def test_a_plain_observation_will_do():
    class Plain(Seconds):
        def observe(self) -> np.ndarray:
            result = super().observe()
            assert isinstance(result, StepResult)
            return result.observation

    with closing(Plain()) as env:
        env.reset()
        assert env.step(np.int64(RIGHT))[1:4] == (0.0, False, False)


@pytest.mark.timing
@pytest.mark.parametrize("kind", [Seconds, Ticks])
def test_two_behind_a_pool(kind):
    with closing(SubprocSC2VecEnv([kind] * 2)) as pool:
        pool.reset()
        for _ in range(3):
            seen, _, _, _ = pool.step(np.array([STAY, RIGHT]))
        assert seen[0] == 0 < seen[1]
        games = pool.get_attr("game_pid")
        pool.pause()
        time.sleep(PAUSE_S)
        _, _, _, infos = pool.step(np.array([STAY, STAY]))
        gaps_s = [info["sc2pool.gap_s"] for info in infos]
        assert max(gaps_s) < PAUSE_S / 2
        lateness = pool.stats().realtime
        assert lateness.gap_s.max >= max(gaps_s)
        assert {env: late.gap_s is not None for env, late in lateness.envs.items()} == {
            "env 0": True,
            "env 1": True,
        }

        pool.pause()
        psutil.Process(games[0]).kill()  # one game dies while it is paused
        _, _, dones, infos = pool.step(np.array([STAY, STAY]))
        assert infos[0]["sc2pool.fault"]["kind"] == "game-exited"
        assert "signal SIGKILL" in infos[0]["sc2pool.fault"]["detail"]
        assert dones.tolist() == [True, False]
        new, other = pool.get_attr("game_pid")
        assert new != games[0]
        assert other == games[1]


class Attached(RealTimeEnv):
    """An env whose game another program has started."""

    observation_space = spaces.Box(0, 1e6, (1,), np.float32)
    action_space = spaces.Discrete(2)
    period_s = 0.05
    frozen_after_s = None

    def __init__(self, pid: int) -> None:
        self.game_pid = pid

    def begin(self, options: dict[str, Any]) -> None:
        pass

    def act(self, action: np.int64) -> None:
        pass

    def observe(self) -> np.ndarray:
        return np.zeros(1, np.float32)


def test_a_pool_says_that_it_cannot_pause_a_game_that_it_has_not_started(env):
    with closing(SubprocSC2VecEnv([partial(Attached, env.game_pid)])) as pool:
        pool.reset()
        with pytest.raises(PauseError, match=rf"of Attached \(process {env.game_pid}\) runs on"):
            pool.pause()
        pool.step(np.array([STAY]))


@pytest.mark.parametrize(
    ("learner", "callback"), [(PPO, PauseCallback), (AsyncPPO, lambda: None)], ids=["gate", "async"]
)
def test_learners(learner, callback):
    with closing(SubprocSC2VecEnv([Ticks])) as pool:
        model = learner("MlpPolicy", pool, n_steps=8, batch_size=8, n_epochs=1, device="cpu")
        model.learn(16, callback=callback())
        assert model.num_timesteps >= 16
