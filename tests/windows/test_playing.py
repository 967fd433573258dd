"""A duel, a team, a paused game and a training, played by a Windows Python."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from sc2pool import SC2VectorEnv, StarCraft2Env, SubprocSC2VecEnv
from sc2pool.realtime.gate import PauseGate

PAUSED_S = 0.5
COUNTS = """
import sys
with open(sys.argv[1], "ab", buffering=0) as file:
    while True:
        file.write(b"1")
"""


@pytest.fixture(autouse=True)
def plays_the_stand_in(standin_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SC2PATH", str(standin_dir))


def test_a_duel() -> None:
    env = SubprocSC2VecEnv(n=1, task="MarineDuel")
    env.reset()
    for _ in range(20):
        _, rewards, _, _ = env.step(np.array([env.action_space.sample() for _ in range(2)]))
    assert rewards.shape == (2,)
    assert env.stats().faults == 0
    env.close()


def test_a_team() -> None:
    env = StarCraft2Env("3m", seed=1)
    env.reset()
    for _ in range(20):
        actions = [int(np.flatnonzero(mask)[-1]) for mask in env.get_avail_actions()]
        _, over, _ = env.step(actions)
        if over:
            env.reset()
    env.close()


def test_a_paused_process_stands_still(tmp_path: Path) -> None:
    counted = tmp_path / "counted"
    program = (
        "import sys\nfile = open(sys.argv[1], 'ab', buffering=0)\nwhile True: file.write(b'1')"
    )
    counting = subprocess.Popen([sys.executable, "-c", program, counted])
    try:
        with PauseGate(counting.pid) as gate:
            for _ in range(3):
                before = _size_once_it_grows(counted)
                gate.pause()
                paused = counted.stat().st_size
                time.sleep(PAUSED_S)
                assert counted.stat().st_size == paused >= before
                gate.resume()
            _size_once_it_grows(counted)
    finally:
        counting.kill()
        counting.wait()


def _size_once_it_grows(file: Path) -> int:
    deadline_s = time.monotonic() + 20.0
    first = file.stat().st_size if file.exists() else 0
    while time.monotonic() < deadline_s:
        if file.exists() and file.stat().st_size > first:
            return file.stat().st_size
        time.sleep(0.01)
    raise AssertionError("it does not count")


def test_spares_and_calls() -> None:
    env = SC2VectorEnv("MoveToBeacon", n=2, spares=1)
    env.reset(seed=1)
    env.set_attr("bonus", [1, 2])
    assert env.get_attr("bonus") == (1, 2)
    env.step(env.action_space.sample())
    env.close()


def test_envs_of_the_user() -> None:
    env = SubprocSC2VecEnv([lambda: gymnasium.make("CartPole-v1")] * 2)
    env.seed(3)
    assert env.reset().shape == (2, 4)
    assert env.step([0, 1])[1].tolist() == [1.0, 1.0]
    env.close()


def test_a_training_to_its_end(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sc2pool", "train", "--steps", "500", "--n", "2", "--out", "out"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert {"model.zip", "learning_curve.png", "episodes.csv"} <= {
        file.name for file in (tmp_path / "out").iterdir()
    }
