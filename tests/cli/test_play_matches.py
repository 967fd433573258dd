"""`sc2pool play --against`: two models play each other, with a replay and a picture."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv

from sc2pool.tasks.registry import resolve


def play(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sc2pool", "play", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    import gymnasium

    class Spaces(gymnasium.Env):
        observation_space = resolve("MarineDuel").observation_space
        action_space = resolve("MarineDuel").action_space

    path = tmp_path_factory.mktemp("models") / "model.zip"
    PPO("MlpPolicy", DummyVecEnv([Spaces]), n_steps=8, batch_size=8, device="cpu").save(path)
    return path


def test_two_models(model, standin_dir, tmp_path):
    replay, picture = tmp_path / "a.SC2Replay", tmp_path / "a.gif"
    done = play(
        model,
        "--task=MarineDuel",
        f"--against={model}",
        f"--game={standin_dir}",
        "--matches=2",
        "--seed=1",
        f"--replay={replay}",
        f"--picture={picture}",
    )
    assert done.returncode == 0, done.stderr
    assert f" of 2 matches against {model}, lost " in done.stdout
    assert replay.read_bytes()[:4] == b"MPQ\x1a"
    with Image.open(picture) as image:
        assert image.size == (640, 480)
        assert image.n_frames > 10
        first = np.asarray(image.convert("RGB")).copy()
        image.seek(image.n_frames - 1)
        assert (np.asarray(image.convert("RGB")) != first).any()


def test_against_the_scripted_player(model, standin_dir):
    done = play(
        model,
        "--task=MarineDuel",
        "--against=scripted",
        f"--game={standin_dir}",
        "--matches=1",
        "--seed=1",
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r" won \d of 1 matches against scripted, lost \d", done.stdout)


@pytest.mark.parametrize(
    ("task", "against", "message"),
    [
        ("MarineDuel", "none.zip", "none.zip: no such file"),
        ("MoveToBeacon", "scripted", "observes "),
        ("MarineDuel", __file__, "not a model that SB3 has saved"),
    ],
)
def test_bad_input(model, standin_dir, task, against, message):
    done = play(model, "--task", task, "--against", against, "--game", standin_dir)
    assert done.returncode == 2
    assert message in done.stderr
