"""Seeded runs of two packages are compared, and a difference is found."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from bench.equality import all_runs, differing

import sc2pool

RUN = ("gym", "MoveToBeacon")


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A folder with a copy of the package."""
    package = Path(sc2pool.__file__).parent
    shutil.copytree(package, tmp_path / "sc2pool", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def test_a_copy_is_equal(other: Path) -> None:
    assert list(differing(other, [RUN])) == [(RUN, "")]


def test_another_reward_is_found(other: Path) -> None:
    adapter = other / "sc2pool/envs/gym.py"
    adapter.write_text(adapter.read_text().replace("reward, terminated", "reward + 1, terminated"))
    ((run, difference),) = differing(other, [RUN])
    assert run == RUN
    assert difference.startswith("step 1: ")


def test_a_run_that_cannot_be_played_is_no_equality(other: Path) -> None:
    run = ("gym", "3m")
    ((_, difference),) = differing(other, [run])
    assert difference.startswith("both raise ConfigError: SC2GymEnv has one learner")


def test_every_task_is_played() -> None:
    assert {task for _, task in all_runs()} >= {*sc2pool.tasks.registry.available(), "3m", "MMM"}
