"""The SuperTux env: its parts; the game alone, with `PauseGate`, in a pool and in a training."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import psutil
import pytest
from gymnasium.utils.env_checker import check_env
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecEnvWrapper
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from examples.supertux.env import PERIOD_TICKS, SuperTuxEnv
from examples.supertux.game import State, find_game, parse_state
from examples.supertux.log import LogFile
from examples.supertux.timeliness import Timeliness
from sc2pool import AsyncPPO, PauseCallback, SubprocSC2VecEnv
from sc2pool.errors import ConfigError, FaultKind, GameFault
from sc2pool.optional import require
from sc2pool.platform import LINUX
from sc2pool.pool.machine import sweep
from sc2pool.realtime.gate import PauseGate
from sc2pool.realtime.screen.program import find_program


def test_a_state_is_parsed_and_other_lines_are_ignored():
    state = parse_state(b"[SCRIPTING] run 3 412 1 96.5 385.196 0 -700\n")
    assert state == State(3, 412, True, 96.5, 385.196, 0.0, -700.0)
    assert parse_state(b"[SCRIPTING] run away\n"[:11]) is None
    assert parse_state(b"[WARNING] level_parser.cpp:181 run 1 2\n") is None


def test_a_log_file_is_read_as_it_grows_and_left_as_it_was(tmp_path):
    path = tmp_path / "game" / "console.err"
    path.parent.mkdir()
    path.write_bytes(b"of an older run\n")
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    log = LogFile(path, lines.put)
    with path.open("ab", buffering=0) as game:
        game.write(b"one\ntwo, in")
        assert lines.get(timeout=60) == b"one\n"
        game.write(b" two parts\n")
        assert lines.get(timeout=60) == b"two, in two parts\n"
        game.write(b"last words\n")
    log.close()
    assert lines.get(timeout=60) == b"last words\n"
    assert path.read_bytes() == b"of an older run\n"


def test_a_missing_game_says_what_to_install(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    with pytest.raises(ConfigError, match=r"no program supertux2; .*apt-get install .*supertux"):
        SuperTuxEnv()


try:
    find_game()
    find_program("Xvfb", "install it")
    require("SuperTux", "mss")
    require("SuperTux", "Xlib")
    WHY_NOT = ""
except ConfigError as error:
    WHY_NOT = str(error)
needs_supertux = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)

ROOT = str(Path(__file__).parents[2])
STAND, RUN, JUMP, RUN_AND_JUMP = range(4)
DIES_WITHIN_S = 4.0
"""Time limit, in seconds, in which Tux dies if he stands still at the start."""
PAUSE_S = 2.0
UPDATE_S = 4.0


@pytest.fixture(scope="module")
def shared() -> Iterator[SuperTuxEnv]:
    """A game shared by all tests that do not end it."""
    env = SuperTuxEnv("rgb_array")
    yield env
    env.close()


@pytest.fixture
def env(shared: SuperTuxEnv) -> SuperTuxEnv:
    shared.reset()
    return shared


def play(env: SuperTuxEnv, action: int, steps: int) -> tuple[dict[str, Any], float]:
    """Repeat an action. Returns the last info, and the sum of the rewards."""
    total = 0.0
    for _ in range(steps):
        _, reward, terminated, truncated, info = env.step(np.int64(action))
        total += reward
        if terminated or truncated:
            break
    return info, total


@needs_supertux
def test_runs_to_the_right(env):
    began_s = time.monotonic()
    before, _ = env.reset()
    assert before in env.observation_space
    info, total = play(env, RUN, 6)
    assert time.monotonic() - began_s >= 6 * PERIOD_TICKS * 0.015 * 0.9
    assert info["x"] > 140
    assert total == pytest.approx((info["x"] - 96) / 640)
    after, *_ = env.step(np.int64(STAND))
    assert after in env.observation_space
    assert (after["frame"] != before["frame"]).mean() > 0.001
    assert before["state"][-4:].tolist() == after["state"][-4:].tolist() == [1, 0, 0, 0]


@needs_supertux
def test_jumps(env):
    heights = [env.step(np.int64(JUMP))[0]["state"][1] for _ in range(4)]
    assert min(heights) < heights[0]
    assert env.step(np.int64(STAND))[4]["x"] == 96


@needs_supertux
@pytest.mark.timing
def test_tux_dies_if_he_stands_still(env):
    for _ in range(2):  # a second episode must be like the first
        began_tick = env.reset()[1]["tick"]
        info, total = play(env, STAND, 100)
        assert (info["died"], info["goal"], total) == (True, False, 0.0)
        assert (info["tick"] - began_tick) * 0.015 < DIES_WITHIN_S
        # One more step is terminated as well, but the next episode is not.
        assert env.step(np.int64(RUN))[2]


@needs_supertux
def test_the_time_limit(env, monkeypatch):
    monkeypatch.setattr("examples.supertux.env.TIME_LIMIT_TICKS", 3 * PERIOD_TICKS)
    env.step(np.int64(STAND))
    env.step(np.int64(STAND))
    assert env.step(np.int64(STAND))[2:4] == (False, True)


@needs_supertux
def test_the_goal(env, monkeypatch):
    monkeypatch.setattr("examples.supertux.env.GOAL_PX", 100.0)
    info, _ = play(env, RUN, 10)
    assert info["goal"]
    assert not info["died"]


@needs_supertux
def test_a_late_action_is_counted(env):
    play(env, STAND, 2)
    time.sleep(3.5 * PERIOD_TICKS * 0.015)
    observation, _, _, _, info = env.step(np.int64(STAND))
    assert info["misses"] >= 3
    assert info["late_ticks"] >= 3 * PERIOD_TICKS
    assert observation["state"][5] == pytest.approx(min(5.0, info["late_ticks"] / PERIOD_TICKS))


@needs_supertux
def test_the_picture(env):
    picture = env.render()
    assert picture.shape == (240, 320, 3)
    sky, ground = picture[100, 160].astype(int), picture[230, 160].astype(int)
    assert sky[2] > sky[0]  # blue
    assert ground.sum() > 300


@needs_supertux
@pytest.mark.timing
def test_no_tick_passes_in_a_pause_gate(env):
    play(env, STAND, 2)
    with PauseGate(env.game_pid) as gate, gate.pausing():
        time.sleep(0.3)  # wait until all drawn frames are on the screen
        picture, tick = env.render(), env._supertux.state.tick
        time.sleep(PAUSE_S)
        assert env._supertux.state.tick == tick
        assert (env.render() == picture).all()
    misses_before = env._misses
    info, _ = play(env, STAND, 1)
    # The game must not catch up on the pause's ticks. A busy machine may add some ticks.
    assert info["tick"] - tick < PAUSE_S / 0.015 / 2
    assert info["misses"] - misses_before < PAUSE_S / (PERIOD_TICKS * 0.015) / 4


@needs_supertux
def test_tux_dies_without_a_gate(env):
    play(env, STAND, 2)
    env.wait_until(lambda: env._supertux.state.died, 20, "the death")
    info, _ = play(env, RUN, 1)
    assert info["died"]
    assert info["unattended"]


@needs_supertux
def test_gymnasiums_env_checker_passes():
    env = gymnasium.make("examples.supertux:SuperTux-v0").unwrapped
    check_env(env, skip_render_check=True)  # because the render check starts a game for each mode
    env.close()


@needs_supertux
def test_close_leaves_no_process_and_no_file(run_temp):
    older, folders = psutil.Process().children(recursive=True), game_folders(run_temp)
    env = SuperTuxEnv()
    env.reset()
    started = [p for p in psutil.Process().children(recursive=True) if p not in older]
    guard = set() if LINUX else {Path(sys.executable).name}
    assert {process.name() for process in started} == {"supertux2", "Xvfb"} | guard
    assert game_folders(run_temp) != folders
    display = env._window._screen.display.removeprefix(":")
    assert has_socket(display)
    env.close()
    env.close()
    assert not any(process.is_running() for process in started)
    assert game_folders(run_temp) == folders
    assert not has_socket(display)
    assert not Path(f"/tmp/.X{display}-lock").exists()
    assert not Path(f"/tmp/.X11-unix/X{display}").exists()


def game_folders(run_temp: Path) -> set[Path]:
    return set(run_temp.rglob("supertux-*"))


def has_socket(display: str) -> bool:
    return f"@/tmp/.X11-unix/X{display}" in Path("/proc/net/unix").read_text().split()


@needs_supertux
@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("supertux2", {FaultKind.GAME_EXITED}),
        ("Xvfb", {FaultKind.CONNECTION_LOST, FaultKind.GAME_EXITED}),  # without Xvfb, the game ends
    ],
)
def test_a_program_that_is_killed_is_a_fault(name, kinds):
    older = psutil.Process().children(recursive=True)
    with closing(SuperTuxEnv()) as env:
        env.reset()
        (victim,) = (
            process
            for process in psutil.Process().children(recursive=True)
            if process.name() == name and process not in older
        )
        victim.kill()
        with pytest.raises(GameFault, match=r"it ended: (signal SIGKILL|exit code)") as raised:
            play(env, STAND, 3)
        assert raised.value.kind in kinds
        with pytest.raises(GameFault):
            env.reset()
        with suppress(Exception):  # the env must lose its connection before `close`
            env._window.grey(60, 80)


@needs_supertux
def test_a_game_that_ends_at_its_start_is_started_again():
    older = psutil.Process().children(recursive=True)
    killed = []

    def kill_the_first() -> None:
        while not killed:
            for process in psutil.Process().children(recursive=True):
                with suppress(psutil.Error):
                    if process not in older and process.name() == "supertux2":
                        process.kill()
                        killed.append(process.pid)
                        return

    killer = threading.Thread(target=kill_the_first)
    killer.start()
    env = SuperTuxEnv()
    killer.join()
    assert killed != [env.game_pid]
    assert env.reset()[1]["x"] == 96
    env.close()


@needs_supertux
@pytest.mark.timing
def test_two_behind_the_pool():
    with closing(SubprocSC2VecEnv([SuperTuxEnv] * 2)) as pool:
        pool.reset()
        games = pool.get_attr("game_pid")
        for _ in range(5):
            _, _, _, infos = pool.step(np.array([STAND, RUN]))
        assert infos[0]["x"] == 96
        assert infos[1]["x"] > 110

        pool.pause()
        family = [psutil.Process(pid) for pid in games]
        family += [child for game in family for child in game.parent().children()]
        assert {process.status() for process in family} == {psutil.STATUS_STOPPED}
        time.sleep(PAUSE_S)
        before = [info["tick"] for info in infos]
        _, _, _, infos = pool.step(np.array([STAND, STAND]))
        passed = [info["tick"] - tick for info, tick in zip(infos, before, strict=True)]
        assert max(passed) < PAUSE_S / 0.015 / 2
        assert pool.stats().pauses.count == 2

        psutil.Process(games[0]).kill()
        done = [False, False]
        while not done[0]:
            _, rewards, done, infos = pool.step(np.array([STAND, STAND]))
        assert infos[0]["sc2pool.fault"]["kind"] == "game-exited"
        assert infos[0]["TimeLimit.truncated"]
        assert rewards[0] == 0
        new, other = pool.get_attr("game_pid")
        assert new != games[0]
        assert other == games[1]
        _, _, _, infos = pool.step(np.array([RUN, STAND]))
        assert "sc2pool.fault" not in infos[0]


class Still(VecEnvWrapper):
    """A wrapper that replaces every action, so that Tux stands still."""

    def reset(self) -> VecEnvObs:
        return self.venv.reset()

    def step_async(self, actions: np.ndarray) -> None:
        self.venv.step_async(np.full_like(actions, STAND))

    def step_wait(self) -> VecEnvStepReturn:
        return self.venv.step_wait()


class FirstUpdateIsSlow:
    """A learner whose first update takes so long that Tux dies in it if he stands still."""

    def train(self) -> None:
        if self._n_updates == 0:  # steps follow only the first update
            time.sleep(UPDATE_S)
        super().train()


class SlowPPO(FirstUpdateIsSlow, PPO):
    pass


class SlowAsyncPPO(FirstUpdateIsSlow, AsyncPPO):
    pass


@needs_supertux
@pytest.mark.timing
@pytest.mark.parametrize("gate", [True, False], ids=["gate", "no gate"])
def test_while_ppo_learns(gate):
    with closing(SubprocSC2VecEnv([SuperTuxEnv])) as pool:
        timeliness = Timeliness(pool)
        model = SlowPPO(
            "MultiInputPolicy", Still(timeliness), n_steps=4, batch_size=4, n_epochs=1, device="cpu"
        )
        model.learn(8, callback=PauseCallback() if gate else None)
        report = timeliness.report()
        if gate:
            assert report["deaths unattended"] == 0
            assert max(timeliness.late_ticks) * 0.015 < UPDATE_S / 2
            assert pool.stats().pauses.paused_s > UPDATE_S
        else:
            assert report["deaths unattended"] == 1
            assert report["periods missed"] * PERIOD_TICKS * 0.015 > DIES_WITHIN_S / 2


@needs_supertux
@pytest.mark.timing
def test_acting_while_learning():
    with closing(SubprocSC2VecEnv([SuperTuxEnv])) as pool:
        timeliness = Timeliness(pool)
        model = SlowAsyncPPO(
            "MultiInputPolicy", timeliness, n_steps=4, batch_size=4, n_epochs=1, device="cpu"
        )
        model.learn(8)
        report = timeliness.report()
        assert report["steps"] * PERIOD_TICKS * 0.015 > UPDATE_S / 2  # many steps were dropped
        assert report["deaths unattended"] == 0
        assert max(timeliness.late_ticks) * 0.015 < UPDATE_S / 4
        _, _, _, infos = pool.step(np.array([STAND]))
        assert "sc2pool.fault" not in infos[0]


@needs_supertux
@pytest.mark.parametrize("how", ["paused", "alone"])
def test_a_trainer_that_is_killed_leaves_no_process(how, run_temp):
    folders = game_folders(run_temp)
    program = Path(__file__).with_name("supertux_trainer.py")
    environment = {**os.environ, "PYTHONPATH": ROOT}
    trainer = subprocess.Popen(
        [sys.executable, program, how], stdout=subprocess.PIPE, env=environment
    )
    assert trainer.stdout is not None
    started = json.loads(trainer.stdout.readline())
    assert Counter(started.values())["supertux2"] == (1 if how == "alone" else 2)
    family = [psutil.Process(int(pid)) for pid in started]
    trainer.kill()
    trainer.communicate()
    _, left = psutil.wait_procs(family, timeout=300)
    assert [process for process in left if process.status() != psutil.STATUS_ZOMBIE] == []
    if how == "paused":
        sweep(run_temp)  # the next pool would call this function
        assert game_folders(run_temp) == folders
