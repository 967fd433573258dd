"""`sc2pool train --self-play` as a user runs it: both modes, going on, and bad input."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sb3_contrib import MaskablePPO
from stable_baselines3 import PPO

from sc2pool.cli.training import self_play
from sc2pool.cli.training.self_play import read_results

SHORT = ["--n", "1", "--eval-episodes", "1", "--eval-every", "1000", "--seed", "3"]
Train = Callable[..., str]


@pytest.fixture
def train(standin_dir: Path, tmp_path: Path, in_process: Callable[..., Any]) -> Train:
    """Trains in this process, into `tmp_path / "run"`; what is said, on stdout, or why not."""

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
    """Matches are counted, not the rows of their agents."""
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
