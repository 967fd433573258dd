"""A Windows Python plays a duel, a team, a paused game and a training."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from urllib.request import urlopen

import gymnasium
import numpy as np
import pytest

from sc2pool import AsyncPPO, SC2VectorEnv, SubprocSC2VecEnv
from sc2pool.pool.machine import RunDir
from sc2pool.pool.report.pages import WatchPage
from sc2pool.realtime.gate import PauseGate
from sc2pool.smac import StarCraft2Env

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


def test_a_paused_process_stands_still(tmp_path: Path, wait_for: Callable[..., None]) -> None:
    counted = tmp_path / "counted"
    counted.touch()
    counting = subprocess.Popen([sys.executable, "-c", COUNTS, counted])
    try:
        with PauseGate(counting.pid) as gate:
            paused = 0
            for _ in range(3):
                wait_for(lambda before=paused: counted.stat().st_size > before)
                gate.pause()
                paused = counted.stat().st_size
                time.sleep(PAUSED_S)  # the paused game must not continue
                assert counted.stat().st_size == paused
                gate.resume()
            wait_for(lambda: counted.stat().st_size > paused)
    finally:
        counting.kill()
        counting.wait()


def test_the_page_of_a_pool() -> None:
    """The page's server process gets a copy of a socket that already listens."""
    run = RunDir()
    window = WatchPage(run.path)
    with urlopen(window.address, timeout=60) as page:
        assert b"<title>" in page.read()
    window.close()
    run.close()


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


def test_updates_in_a_process_of_their_own() -> None:
    with closing(SubprocSC2VecEnv(n=1, task="MoveToBeacon", realtime=True)) as env:
        model = AsyncPPO("MlpPolicy", env, n_steps=8, batch_size=8, n_epochs=1, actor="process")
        model.learn(16)
    assert (model.num_timesteps, model._n_updates) == (16, 2)


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
