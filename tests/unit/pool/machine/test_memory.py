"""Free memory, on the machine and in a container that has a limit."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from sc2pool.pool.machine import memory
from sc2pool.pool.machine.memory import available_and_total_bytes, available_bytes

MB = 1_000_000


@pytest.fixture
def cgroup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(memory, "_CGROUP", tmp_path)
    (tmp_path / "memory.current").write_text(f"{60 * MB}\n")
    (tmp_path / "memory.stat").write_text(f"anon {30 * MB}\ninactive_file {20 * MB}\n")
    return tmp_path


def test_a_containers_limit_counts_without_what_is_only_cached(cgroup: Path) -> None:
    (cgroup / "memory.max").write_text(f"{100 * MB}\n")
    assert available_and_total_bytes() == (60 * MB, 100 * MB)
    assert available_bytes() == 60 * MB
    (cgroup / "memory.max").write_text(f"{30 * MB}\n")
    assert available_and_total_bytes() == (0, 30 * MB)


@pytest.mark.parametrize("limit", ["max\n", None])
def test_without_a_limit_it_is_the_machines(cgroup: Path, limit: str | None) -> None:
    if limit is not None:
        (cgroup / "memory.max").write_text(limit)
    available, total = available_and_total_bytes()
    assert total == psutil.virtual_memory().total
    assert 0 < available <= total
