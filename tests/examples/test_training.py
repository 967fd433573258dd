"""The examples that train, each run as a program of its own."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch
from sb3_contrib import MaskablePPO

from tests.support.programs import run

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_maskable_ppo_trains(standin_dir, tmp_path):
    options = ["--steps", "512", "--n", "2", "--game", str(standin_dir), "--out", str(tmp_path)]
    done = run(sys.executable, EXAMPLES / "maskable_ppo.py", *options)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("2 games of standin")
    assert "over 2 episodes" in done.stdout.splitlines()[-1]
    assert MaskablePPO.load(tmp_path / "model.zip", device="cpu").num_timesteps == 512


def test_behaviour_cloning_learns_from_a_dataset(standin_dir, tmp_path):
    environment = {
        **os.environ,
        "SC2PATH": str(standin_dir),
        "MINARI_DATASETS_PATH": str(tmp_path),
    }

    def output_of(*command: object) -> str:
        done = run(sys.executable, *command, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    output_of("-m", "sc2pool", "record", "scripted", "--steps", 3000, "--n", 2, "--seed", 1)
    said = output_of(EXAMPLES / "behaviour_cloning.py", "sc2pool/MoveToBeacon/scripted-v0")
    assert said.startswith("14 episodes, 3360 steps\n")
    assert float(said.split()[-1]) > 10, "at random it is 0.6"


def test_ppo_make_vec_learns(standin_dir, tmp_path):
    """The example, PPO in one file, must learn. With NEXT_STEP, each reset takes a step of its own.

    With this seed PPO learns within 4,900 steps. Most seeds need several times as many steps.
    """
    options = ["--steps", "4900", "--n", "2", "--seed", "6"]
    options += ["--game", str(standin_dir), "--out", str(tmp_path)]
    done = run(sys.executable, EXAMPLES / "ppo_make_vec.py", *options)
    assert done.returncode == 0, done.stderr
    games, *updates = done.stdout.splitlines()
    assert games.startswith("2 games of standin")
    assert len(updates) == 4900 // (2 * 128)
    steps, _, episodes, _, _, _, mean_return = updates[-1].replace(",", "").split()
    assert int(steps) == 19 * 2 * 128
    assert int(episodes) == 2 * (19 * 128 // 241)
    assert float(mean_return) > 2.5, "at random it is 0.5"
    agent = torch.load(tmp_path / "agent.pt")
    assert all(value.isfinite().all() for value in agent.values())
