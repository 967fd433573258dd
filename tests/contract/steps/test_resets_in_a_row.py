"""Resets that come before the last one's episodes, or the spares', are ready."""

from __future__ import annotations

import hashlib
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from sc2pool import SubprocSC2VecEnv

EPISODE = 10
LOOPS = 8 * EPISODE


def run(standin_dir: Path, *, spares: int, resets: int) -> str:
    """A digest of all that a seeded run shows after so many resets in a row."""
    with closing(
        SubprocSC2VecEnv(n=2, task="MoveToBeacon", game=standin_dir, spares=spares, max_loops=LOOPS)
    ) as env:
        digest = hashlib.sha256()
        for _ in range(resets):
            env.seed(5)
            shown = env.reset()
        digest.update(np.ascontiguousarray(shown))
        rng = np.random.default_rng(0)
        for step in range(3 * EPISODE):  # into later episodes, before another reset and after it
            observations, rewards, dones, _ = env.step(rng.integers(0, 8, 2))
            digest.update(observations.tobytes() + rewards.tobytes() + dones.tobytes())
            if step == EPISODE + 3:
                digest.update(np.ascontiguousarray(env.reset()))
        return digest.hexdigest()


@pytest.fixture(scope="module")
def once(standin_dir: Path) -> str:
    """The run without spares after one reset."""
    return run(standin_dir, spares=0, resets=1)


@pytest.mark.parametrize("spares", [0, 2])
def test_only_the_last_reset_counts(standin_dir: Path, once: str, spares: int) -> None:
    assert run(standin_dir, spares=spares, resets=4) == once
