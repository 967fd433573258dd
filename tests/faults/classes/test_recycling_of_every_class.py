"""A soft limit of `RecyclePolicy` is kept by every env class, however its episodes begin."""

from __future__ import annotations

import json

import pytest
from every_class import MODES, OF_ONE_GAME
from tested import TESTED


@pytest.mark.parametrize("name", TESTED)
def test_each_instance_is_replaced_after_two_episodes(
    name, run_with, standin_dir, tmp_path, monkeypatch
):
    monkeypatch.setenv("SC2PATH", str(standin_dir))
    closed = tmp_path / "closed"
    closed.touch()
    monkeypatch.setenv("CLOSED", str(closed))
    done = run_with("recycled.py", name)
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
