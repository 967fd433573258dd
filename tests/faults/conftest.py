"""Pools to do harm to, and what an undisturbed run looks like."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from sc2pool import SubprocSC2VecEnv
from sc2pool.config import Limits, PoolConfig

sys.path.insert(0, str(Path(__file__).parent))
from fault_tasks import STRIKE_FILE, Saboteur

MakeEnv = Callable[..., SubprocSC2VecEnv]

SEED = 7
IMPATIENT = PoolConfig(limits=Limits(launch_s=3.0, create_join_s=2.0, reset_s=2.0, step_s=1.0))
"""For games that never answer; a step that only is slow gets three times its limit."""


@pytest.fixture
def make_env(standin_dir: Path) -> Iterator[MakeEnv]:
    """Makes pools on the stand-in, and closes them."""
    envs: list[SubprocSC2VecEnv] = []

    def make(**options: Any) -> SubprocSC2VecEnv:
        defaults = {"n": 2, "task": Saboteur, "game": standin_dir, "seed": SEED}
        envs.append(SubprocSC2VecEnv(**(defaults | options)))
        return envs[-1]

    yield make
    for env in envs:
        env.close()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> PoolConfig:
    """Limits for what never answers; the trainer gives up on a silent worker soon after."""
    monkeypatch.setattr("sc2pool.pool.supervisor._BACKSTOP_S", 0.5)
    return IMPATIENT


@dataclass
class Recording:
    """A run in which every action is 0: what `reset` and then each step returned."""

    observations: list[Any]
    rewards: list[Any]
    dones: list[Any]


def record(env: SubprocSC2VecEnv, steps: int) -> Recording:
    recording = Recording([env.reset()], [], [])
    for _ in range(steps):
        observations, rewards, dones, _ = env.step(np.zeros(env.num_envs, np.int64))
        recording.observations.append(observations)
        recording.rewards.append(rewards)
        recording.dones.append(dones)
    return recording


@pytest.fixture(scope="session")
def undisturbed(standin_dir: Path) -> Recording:
    """Three envs under SEED for ten steps: env i plays ticket i, whatever n is."""
    env = SubprocSC2VecEnv(n=3, task=Saboteur, game=standin_dir, seed=SEED)
    try:
        return record(env, steps=10)
    finally:
        env.close()


@pytest.fixture
def arm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """`arm("game KILL")`: the next of the pool's processes that asks is struck, once."""
    armed = tmp_path / "strike.armed"
    monkeypatch.setenv(STRIKE_FILE, str(armed))

    def write(harm: str) -> None:
        whole = tmp_path / "strike.new"
        whole.write_text(harm)
        whole.rename(armed)

    return write


@pytest.fixture
def installation(standin_dir: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Makes an installation that starts with the lines of a shell script, then is the stand-in."""

    def make(script: str) -> Path:
        root = tmp_path / "installation"
        shutil.copytree(standin_dir, root)
        (executable,) = root.glob("Versions/Base*/SC2_x64")
        _, _, launcher = executable.read_text().partition("\n")
        executable.write_text(f"#!/bin/sh\n{script}\n{launcher}")
        return root

    return make


def processes_of(env: SubprocSC2VecEnv, index: int) -> dict[str, psutil.Process]:
    """Game and worker of one env."""
    game = psutil.Process(env.stats()["instances"][index]["pid"])
    return {"game": game, "worker": psutil.Process(game.ppid())}
