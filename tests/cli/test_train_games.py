"""`sc2pool train` as a user runs it: two games, learning, metrics, Ctrl-C, going on."""

import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import psutil
import pytest
from stable_baselines3 import PPO

from sc2pool.cli.training.episodes import read_episodes

TRAIN = [sys.executable, "-m", "sc2pool", "train"]


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installation of the stand-in."""
    folder: Path = tmp_path_factory.mktemp("standin") / "StarCraftII"
    command = [sys.executable, "-m", "sc2pool", "standin", "install", str(folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return folder


def test_train_stop_and_go_on(stand_in: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    command = [*TRAIN, "--n", "2", "--seed", "1", "--game", str(stand_in), "--out", str(out)]
    command += ["--metrics-port", str(port)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as trainer:
        assert trainer.stdout is not None
        lines = []
        for line in trainer.stdout:
            lines.append(line)
            if "steps/s" in line:
                break
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            metrics = answer.read().decode()
        children = psutil.Process(trainer.pid).children(recursive=True)
        trainer.send_signal(signal.SIGINT)
        rest, _ = trainer.communicate()
    assert trainer.returncode == 130
    assert "not StarCraft II" in "".join(lines)
    assert f"metrics http://127.0.0.1:{port}/metrics\n" in lines
    assert "\nsc2pool_env_steps_total " in metrics
    assert f"--resume {out}" in rest
    assert len(children) >= 2
    _, alive = psutil.wait_procs(children, timeout=5)
    assert not alive

    steps = PPO.load(out / "model.zip", device="cpu").num_timesteps
    resumed = subprocess.run(
        [*TRAIN, "--resume", str(out), "--steps", str(steps + 500)],
        check=True,
        capture_output=True,
        text=True,
    )
    assert f"from {steps:,}" in resumed.stdout
    assert PPO.load(out / "model.zip", device="cpu").num_timesteps > steps
    assert "pool/launches" in (out / "progress.csv").read_text()
    ends = [episode.total_steps for episode in read_episodes(out / "episodes.csv")]
    assert ends
    assert ends == sorted(ends)
