"""How many games are launched at one time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from fault_pools import MakeEnv

from sc2pool.config import Limits, PoolConfig
from sc2pool.pool.instances.fleet import launches_at_once


@pytest.mark.parametrize(
    ("cores", "first_launch_s", "expected"),
    [(16, None, 2), (16, 0.5, 16), (16, 20.0, 2), (1, 0.5, 2), (1, None, 2)],
)
def test_launches_follow_the_cores_once_one_was_quick(cores, first_launch_s, expected):
    assert launches_at_once(cores, first_launch_s) == expected


@pytest.mark.parametrize("allowed", [1, 3])
def test_no_more_than_allowed(
    make_env: MakeEnv,
    installation: Callable[[str], Path],
    wait_for: Callable[..., None],
    tmp_path: Path,
    allowed: int,
) -> None:
    """Each game notes that it started, and then waits for a file; who watches opens the gate."""
    begun, gate = tmp_path / "begun", tmp_path / "gate"
    root = installation(f'echo >>"{begun}"; while [ ! -e "{gate}" ]; do sleep 0.02; done')
    counts = []

    def count() -> int:
        return begun.read_text().count("\n") if begun.exists() else 0

    def watch() -> None:
        try:
            wait_for(lambda: count() >= allowed)
            threading.Event().wait(0.5)  # time for one too many
            counts.append(count())
        finally:
            gate.touch()

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        limits = Limits(concurrent_launches=allowed)
        env = make_env(n=4, game=root, config=PoolConfig(limits=limits))
        env.reset()
    finally:
        watcher.join()
    assert counts == [allowed]
    assert count() == 4
