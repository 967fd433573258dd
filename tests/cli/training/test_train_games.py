"""`sc2pool train` as a user runs it: two games, learning, metrics, Ctrl-C, going on."""

import json
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import imageio_ffmpeg
import numpy as np
import psutil
from sb3_contrib import MaskablePPO
from stable_baselines3 import PPO, SAC

from sc2pool.cli.training.episodes import read_episodes
from sc2pool.cli.training.evaluation import read_evaluations
from sc2pool.cli.training.run_folder import reserved
from sc2pool.protocol.compiled import STEP_PATH
from tests.support.programs import run

TRAIN: list[Any] = [sys.executable, "-m", "sc2pool", "train"]


def said_by(*command: object, **options: Any) -> str:
    """What a command prints that ends well."""
    done = run(*command, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def pool_at(page: str) -> dict[str, Any]:
    """The pool that a page shows; empty until the pool has answered."""
    with urllib.request.urlopen(f"{page}state", timeout=300) as answer:
        return json.load(answer)["pool"] or {}


def test_train_stop_and_go_on(
    standin_dir: Path, tmp_path: Path, wait_for: Callable[..., None]
) -> None:
    out = tmp_path / "run"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    command = [*TRAIN, "--n", "2", "--seed", "1", "--game", str(standin_dir), "--out", str(out)]
    command += ["--metrics-port", str(port), "--watch"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as trainer:
        assert trainer.stdout is not None
        lines = []
        for line in trainer.stdout:
            lines.append(line)
            if "steps/s" in line:
                break
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=300) as answer:
            metrics = answer.read().decode()
        assert trainer.stderr is not None
        (page,) = re.findall(r"shown at (http:\S+)", trainer.stderr.readline())
        wait_for(lambda: pool_at(page))
        shown = pool_at(page)
        children = psutil.Process(trainer.pid).children(recursive=True)
        trainer.send_signal(signal.SIGINT)
        rest, _ = trainer.communicate()
    assert trainer.returncode == 130
    assert (shown["trainer_pid"], shown["task"]) == (trainer.pid, "MoveToBeacon")
    assert "not StarCraft II" in "".join(lines)
    assert f"metrics http://127.0.0.1:{port}/metrics\n" in lines
    assert "\nsc2pool_env_steps_total " in metrics
    assert f"--resume {out}" in rest
    assert len(children) >= 2
    _, alive = psutil.wait_procs(children, timeout=5)
    assert not alive

    steps = PPO.load(out / "model.zip", device="cpu").num_timesteps
    with reserved(out):
        refused = run(*TRAIN, "--resume", out, "--steps", steps + 500)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "another training writes into this folder" in refused.stderr
    assert refused.stdout == f"plays the game at {standin_dir}, as its config.json says\n"
    assert f"from {steps:,}" in said_by(*TRAIN, "--resume", out, "--steps", steps + 500)
    assert PPO.load(out / "model.zip", device="cpu").num_timesteps > steps
    assert "pool/launches" in (out / "progress.csv").read_text()
    ends = [episode.total_steps for episode in read_episodes(out / "episodes.csv")]
    assert ends
    assert ends == sorted(ends)


def test_masks_evaluations_and_videos(standin_dir: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    command = [*TRAIN, "--task", "DefeatRoaches", "--algo", "maskable-ppo", "--n", "1"]
    command += ["--game", standin_dir, "--out", out, "--steps", "400", "--spares", "1"]
    said = said_by(*command, "--eval-every", "300", "--eval-episodes", "1", "--video")
    assert f"\nsteps   {STEP_PATH}\n" in said
    assert said.count("evaluation at ") == 2
    assert f"{out / 'best_model.zip'}, mean return " in said
    model = MaskablePPO.load(out / "model.zip", device="cpu")
    assert f"over the last {len(read_episodes(out / 'episodes.csv'))} episodes\n" in said
    rows = read_evaluations(out / "evaluations.csv")
    assert rows[-1].total_steps == model.num_timesteps
    assert "eval/mean_reward" in (out / "progress.csv").read_text().partition("\n")[0]
    videos = [out / "videos" / f"step-{row.total_steps}.mp4" for row in rows]
    assert sorted(videos) == sorted((out / "videos").iterdir())
    frames = imageio_ffmpeg.read_frames(videos[0])
    assert next(frames)["size"] == (640, 480)
    pictures = [np.frombuffer(frame, np.uint8) for frame in frames]
    assert len(pictures) > 10
    assert (pictures[0] != pictures[-1]).any()


OWN_TASK = """
import numpy as np
from gymnasium import spaces
from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon


class Walk(MoveToBeacon):
    action_space = spaces.Box(-1, 1, (1,), np.float32)

    def act(self, action):
        return super().act(int((action[0] + 1) * 3.99))
"""
OWN_HYPERPARAMETERS = """
default:
  n_envs: 1
  n_timesteps: 300
  learning_starts: 100
  batch_size: 32
  buffer_size: 1000
  policy_kwargs: {net_arch: [16], activation_fn: tanh}
"""


def test_a_task_and_hyperparameters_of_the_users_own(standin_dir: Path, tmp_path: Path) -> None:
    """The script `sc2pool` finds the task in the folder that it is called in."""
    (tmp_path / "my_tasks.py").write_text(OWN_TASK)
    (tmp_path / "sac.yml").write_text(OWN_HYPERPARAMETERS)
    command = [Path(sys.executable).with_name("sc2pool"), "train", "--task", "my_tasks:Walk"]
    command += ["--algo", "sac", "--hyperparameters", "sac.yml"]
    command += ["--game", standin_dir, "--out", "run"]
    first = said_by(*command, cwd=tmp_path)
    assert "my_tasks:Walk, 1 game, to 300 steps" in first
    assert "learns  sac on cpu" in first
    command[2:] = ["--resume", "run", "--steps", "420"]
    assert "from 300" in said_by(*command, cwd=tmp_path)
    model = SAC.load(tmp_path / "run" / "model.zip", device="cpu")
    assert (model.num_timesteps, model.policy_kwargs["net_arch"]) == (420, [16])
    assert model.learning_starts == 400
