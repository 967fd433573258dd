"""A pool that would run out of descriptors, or cannot pass them on, is not begun."""

from __future__ import annotations

from contextlib import closing
from functools import partial

import gymnasium
import psutil
import pytest

from sc2pool import SubprocSC2VecEnv
from sc2pool.errors import ConfigError
from sc2pool.pool.ipc import descriptors
from sc2pool.pool.ipc.descriptors import (
    PER_INSTANCE,
    PER_POOL,
    PER_WORKER,
    require_descriptors,
    shortage,
)

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
    monkeypatch.setattr(descriptors, "WINDOWS", True)
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
