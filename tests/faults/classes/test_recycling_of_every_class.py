"""A soft limit of `RecyclePolicy` is kept by every env class, however its episodes begin."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from every_class import LIBRARIES, MODES, OF_ONE_GAME
from tested import TESTED

PROGRAM = Path(__file__).with_name("recycled.py")


@pytest.mark.parametrize("name", TESTED)
def test_each_instance_is_replaced_after_two_episodes(
    name: str,
    python_with: Callable[[str], str],
    standin_dir: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SC2PATH", str(standin_dir))
    closed = tmp_path / "closed"
    closed.touch()
    monkeypatch.setenv("CLOSED", str(closed))
    python = python_with(LIBRARIES[name]) if LIBRARIES[name] else sys.executable
    done = subprocess.run(
        [python, PROGRAM, name],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    assert len(counts) == len(MODES[name]) + (name not in OF_ONE_GAME)
    for envs, found in counts.items():
        n = 2 if envs == "env_fns" else 1
        # After episode 2; then one that is cut short is the second of the next instance.
        assert (envs, found["recycles"]) == (envs, {"soft-episodes": n})
        assert (envs, found["cut"]) == (envs, {"soft-episodes": 2 * n})
    if "env_fns" in counts:
        assert len(set(closed.read_text().split())) == 3 * 2, "each closes by its own method"
