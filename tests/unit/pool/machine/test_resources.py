"""Memory and descriptors that are free: on the machine, and in a container that has a limit."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from pathlib import Path

import gymnasium
import psutil
import pytest

from sc2pool import SubprocSC2VecEnv
from sc2pool.errors import ConfigError
from sc2pool.pool.machine import resources
from sc2pool.pool.machine.resources import (
    PER_INSTANCE,
    PER_POOL,
    PER_WORKER,
    available_and_total_bytes,
    available_bytes,
    require_descriptors,
    shortage,
)

MB = 1_000_000


@pytest.fixture
def cgroup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(resources, "_CGROUP", tmp_path)
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


MAKE_ENV = partial(gymnasium.make, "CartPole-v1")
"""Not a function of this module, which a worker would have to import, and torch with it."""
ALONE = PER_INSTANCE + PER_WORKER


def open_files_with(more: int) -> int:
    return psutil.Process().num_fds() + more


def test_shortage_names_both_numbers():
    enough = 6 + PER_POOL + 10 * ALONE
    assert shortage(10, 1, 6, enough) is None
    told = shortage(10, 1, 6, enough - 1)
    assert "10 envs and spares need about 92 open files, and this process may have 91" in told
    assert "ulimit -n 92" in told


def test_workers_with_several_envs_need_fewer():
    enough = 6 + PER_POOL + 10 * PER_INSTANCE + 3 * PER_WORKER
    assert shortage(10, 4, 6, enough) is None
    assert shortage(10, 4, 6, enough - 1) is not None


def test_more_than_one_wait_takes_on_windows(monkeypatch):
    monkeypatch.setattr(resources, "WINDOWS", True)
    require_descriptors(252, 1)
    with pytest.raises(ConfigError, match=r"253 envs and spares need 514 sockets .* allows 512"):
        require_descriptors(253, 1)


def test_too_few(limited):
    refused = pytest.raises(ConfigError, match="2 envs and spares need about")
    with limited("NOFILE", open_files_with(PER_POOL + 2 * ALONE - 1)), refused:
        SubprocSC2VecEnv([MAKE_ENV] * 2)


def test_just_enough_is_enough(limited):
    enough = limited("NOFILE", open_files_with(PER_POOL + 2 * ALONE))
    with enough, closing(SubprocSC2VecEnv([MAKE_ENV] * 2)) as env:
        env.reset()
        assert not env.step([0, 0])[2].any()
        instance = env.stats().instances[0]
        psutil.Process(instance.worker_pid).kill()
        assert env.step([0, 0])[2].tolist() == [True, False]
