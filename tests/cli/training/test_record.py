"""`sc2pool record`: episodes of several games become a dataset that Minari reads."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from functools import partial

import minari
import pytest

from tests.support.installations import changed


@pytest.fixture
def record(in_process, standin_dir, tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    return partial(in_process, "record", f"--game={standin_dir}")


def test_a_scripted_player_then_more_of_it(record, standin_dir, tmp_path):
    code, said, _ = record("scripted", "--steps=300", "--n=2", "--seed=1")
    assert code == 0
    assert '\nto read it: minari.load_dataset("sc2pool/MoveToBeacon/scripted-v0")' in said
    dataset = minari.load_dataset("sc2pool/MoveToBeacon/scripted-v0")
    assert (dataset.total_episodes, dataset.total_steps) == (2, 480)
    assert all(episode.rewards.sum() > 15 for episode in dataset.iterate_episodes())
    assert all(episode.truncations[-1] for episode in dataset.iterate_episodes())
    first = dataset[0]
    assert first.observations.shape == (241, 5)
    assert all(seen in dataset.observation_space for seen in first.observations)
    assert all(action in dataset.action_space for action in first.actions)

    # Before a game is started: this one would fail.
    broken = changed(standin_dir, tmp_path / "broken", lambda _: "#!/bin/false\n")
    code, _, complaint = record("scripted", "--steps=300", f"--game={broken}")
    assert code == 2
    assert "already; resume it?" in complaint
    assert "expected an id such as" in record("scripted", "--dataset=x", f"--game={broken}")[2]
    assert record("scripted", "--steps=500", "--n=1", "--resume", "--seed=1")[0] == 0
    dataset = minari.load_dataset("sc2pool/MoveToBeacon/scripted-v0")
    assert dataset.total_episodes == 3
    begun = {one.observations[:9].tobytes() for one in dataset.iterate_episodes()}
    assert len(begun) == 3, "the seed of the first part begins the same episodes again"
    assert record("scripted", "--steps=500", "--n=1", "--resume")[0] == 0
    assert minari.load_dataset("sc2pool/MoveToBeacon/scripted-v0").total_episodes == 3, "enough"


def test_random_agents_of_a_team(record):
    """Each agent has its episodes, of actions that its masks allow, or the task would complain."""
    code, _, _ = record("random", "--task=3m", "--steps=60", "--n=1", "--dataset=three/random-v1")
    assert code == 0
    dataset = minari.load_dataset("three/random-v1")
    assert dataset.total_episodes % 3 == 0
    assert dataset.spec.env_spec is None


def test_ctrl_c_saves(standin_dir, tmp_path):
    program = [sys.executable, "-m", "sc2pool", "record", "random", "--n=1", "--game", standin_dir]
    process = subprocess.Popen(
        program,
        env={**os.environ, "MINARI_DATASETS_PATH": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if "/ 100,000 steps" in line:
            break
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=100)[0]
    assert process.returncode == 130
    (data,) = tmp_path.rglob("data")
    dataset = minari.MinariDataset(data)
    assert f"{dataset.total_steps:,} steps in {dataset.total_episodes} episodes" in said
    assert dataset.total_episodes > 0
