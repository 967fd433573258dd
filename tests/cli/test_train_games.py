"""`sc2pool train` on games: learning, metrics, Ctrl-C, `--resume` and `--self-play`."""

from __future__ import annotations

import json
import re
import signal
import socket
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import imageio_ffmpeg
import numpy as np
import psutil
import pytest
from sb3_contrib import MaskablePPO
from stable_baselines3 import PPO, SAC

from sc2pool.cli.training import self_play
from sc2pool.cli.training.evaluation import EvaluationRow
from sc2pool.cli.training.run_folder import EpisodeRow, read_rows, reserved
from sc2pool.cli.training.self_play import read_results
from sc2pool.protocol.compiled import STEP_PATH
from tests.support.programs import assert_gone, run, start

TRAIN: list[Any] = [sys.executable, "-m", "sc2pool", "train"]


def said_by(*command: object, **options: Any) -> str:
    """The output of a command, which must succeed."""
    done = run(*command, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def pool_at(page: str) -> dict[str, Any]:
    """The state of a pool on its page; empty until the pool has answered."""
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
    with start(*command) as trainer:
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
    assert_gone(children, within_s=5)

    steps = PPO.load(out / "model.zip", device="cpu").num_timesteps
    with reserved(out):
        refused = run(*TRAIN, "--resume", out, "--steps", steps + 500)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "another training writes into this folder" in refused.stderr
    assert refused.stdout == f"plays the game at {standin_dir}, as its config.json says\n"
    assert f"from {steps:,}" in said_by(*TRAIN, "--resume", out, "--steps", steps + 500)
    assert PPO.load(out / "model.zip", device="cpu").num_timesteps > steps
    assert "pool/launches" in (out / "progress.csv").read_text()
    ends = [episode.total_steps for episode in read_rows(out / "episodes.csv", EpisodeRow)]
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
    assert f"over the last {len(read_rows(out / 'episodes.csv', EpisodeRow))} episodes\n" in said
    rows = read_rows(out / "evaluations.csv", EvaluationRow)
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
    """The script `sc2pool` finds the task's module in the working directory."""
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


SHORT = ["--n", "1", "--eval-episodes", "1", "--eval-every", "1000", "--seed", "3"]
Train = Callable[..., str]


@pytest.fixture
def train(standin_dir: Path, tmp_path: Path, in_process: Callable[..., Any]) -> Train:
    """Trains in this process, into `tmp_path / "run"`; returns its stdout, or its error."""

    def run(*arguments: object, task: str = "MarineDuel", code: int = 0) -> str:
        out = () if "--out" in arguments else ("--out", tmp_path / "run")
        ended, said, complaints = in_process(
            "train", "--task", task, "--game", standin_dir, *out, *arguments
        )
        assert ended == code
        return complaints if code else said

    return run


def snapshots(run: Path) -> set[str]:
    return {path.name for path in (run / "snapshots").glob("step-*.zip")}


def test_one_policy_on_both_sides_then_against_its_snapshots(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    said = train("--self-play", *SHORT, "--steps", 256, "--snapshot-every", 100)
    assert "task    MarineDuel, 1 match, to 256 steps\n" in said
    assert "learns  ppo on cpu, both sides of each match\n" in said
    assert "tests   4 matches every 1,000 steps, 12 at the end\n" in said
    assert "evaluation at 0 steps: won " in said
    assert " of 6 against first, won " in said
    assert snapshots(out) == {"step-0.zip", "step-100.zip", "step-200.zip"}
    rows = read_results(out / "win_rates.csv")
    assert [(row.total_steps, row.opponent, row.games) for row in rows] == [
        (0, "first", 2),
        (0, "scripted", 2),
        (256, "first", 6),
        (256, "scripted", 6),
    ]
    assert (out / "best_model.zip").exists()
    assert PPO.load(out / "model.zip", device="cpu").num_timesteps == 256
    assert "self_play/win_rate/first" in (out / "progress.csv").read_text()

    monkeypatch.setattr(self_play, "MORE_AT_THE_END", 1)
    other = tmp_path / "other"
    said = train("--resume", out, "--out", other, "--self-play", "prioritised", "--steps", 512)
    assert "against its own snapshots, prioritised\n" in said
    assert snapshots(out) < snapshots(other)
    rows = read_results(other / "win_rates.csv")
    assert [row.total_steps for row in rows] == [0, 0, 256, 256, 512, 512]


def test_teams_of_agents_with_masks(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The output counts each match once, not once for each agent."""
    monkeypatch.setattr(self_play, "MORE_AT_THE_END", 1)
    out = tmp_path / "run"
    asked = [*SHORT, "--algo", "maskable-ppo", "--self-play", "uniform"]
    train(*asked, "--steps", 384, "--snapshot-every", 150, task="3m_duel")
    assert snapshots(out) == {"step-0.zip", "step-150.zip", "step-300.zip"}
    assert MaskablePPO.load(out / "model.zip", device="cpu").num_timesteps == 384
    rows = read_results(out / "win_rates.csv")
    assert [(row.opponent, row.games) for row in rows] == [("first", 2), ("scripted", 2)] * 2


@pytest.mark.parametrize(
    ("task", "arguments", "message"),
    [
        ("MoveToBeacon", ["--self-play"], "--self-play shared: it needs a task of two"),
        ("MoveToBeacon", ["--snapshot-every", "5"], "--snapshot-every is for tasks of tw"),
        (
            "MarineDuel",
            ["--self-play", "--ray", "auto"],
            "--self-play is for games on this machine, not --ray",
        ),
    ],
)
def test_bad_input(
    train: Train, tmp_path: Path, task: str, arguments: list[str], message: str
) -> None:
    assert message in train(*arguments, task=task, code=2)
    assert not (tmp_path / "run").exists()
