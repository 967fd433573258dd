"""The repair itself fails: there is no process, descriptor or folder for the new instance."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import psutil
import pytest
from fault_pools import MakeEnv, processes_of, step
from fault_tasks import Exhausts, refuse_thread

from sc2pool import SubprocSC2VecEnv
from sc2pool.config import PoolConfig, RestartPolicy
from sc2pool.errors import ClosedError, ConfigError, CrashLoopError
from tests.support.programs import assert_gone

Limited = Callable[[str, int], AbstractContextManager[None]]


def play_until(env: SubprocSC2VecEnv, kind: str) -> None:
    """Step until env 0 has been cut short by a fault of this kind; env 1 continues untouched."""
    for _ in range(200):
        _, _, dones, infos = step(env, 0, 0)
        assert "sc2pool.fault" not in infos[1]
        fault = infos[0].get("sc2pool.fault")
        if fault is not None:
            assert fault["kind"] == kind
            assert infos[0]["TimeLimit.truncated"] is True
            assert dones[0]
            return
    raise AssertionError("the fault was not marked")


def play_on(env: SubprocSC2VecEnv) -> None:
    for _ in range(3):
        _, _, _, infos = step(env, 0, 0)
        assert not any("sc2pool.fault" in info for info in infos)


@pytest.mark.parametrize("deleted", ["run", "temp"])
def test_the_folder_for_temporary_files_is_deleted(
    begun: MakeEnv, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deleted: str
) -> None:
    temp = tmp_path / "temp"
    temp.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temp))
    env = begun()
    shutil.rmtree(temp if deleted == "temp" else next(temp.iterdir()))
    processes_of(env, 0)["worker"].kill()
    play_until(env, "worker-exited")
    play_on(env)
    assert env.stats().recycles == {"worker-exited": 1}


def lowest_free_descriptor() -> int:
    """As a limit it means that this process may open no more files; those that are open stay."""
    descriptor = os.dup(0)
    os.close(descriptor)
    return descriptor


def test_descriptors_run_out_for_a_while(begun: MakeEnv, limited: Limited) -> None:
    """The env waits; once there are descriptors again it continues, on a new game."""
    env = begun()
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    over = threading.Event()

    def give_back_after_the_first_refusal() -> None:
        while not env.stats().recycles.get("spawn-failed") and not over.wait(0.01):
            pass
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)

    watching = threading.Thread(target=give_back_after_the_first_refusal)
    watching.start()
    processes_of(env, 0)["worker"].kill()
    with limited("NOFILE", lowest_free_descriptor()):
        play_until(env, "worker-exited")
        over.set()
        watching.join()
    play_on(env)
    recycles = env.stats().recycles
    assert recycles["worker-exited"] == 1
    assert recycles["spawn-failed"] >= 1


def test_descriptors_run_out_for_good(begun: MakeEnv, limited: Limited) -> None:
    """A typed error, and everything is ended."""
    env = begun(config=PoolConfig(restart=RestartPolicy(per_env=2)))
    children = psutil.Process().children(recursive=True)
    processes_of(env, 0)["worker"].kill()
    with (
        limited("NOFILE", lowest_free_descriptor()),
        pytest.raises(CrashLoopError, match=r"(?s)env 0: .*the worker cannot be started: .*24"),
    ):
        for _ in range(200):
            step(env, 0, 0)
    assert_gone(children)
    for call in (env.reset, lambda: step(env, 0, 0)):
        with pytest.raises(ClosedError, match="the pool has failed"):
            call()


def test_the_system_refuses_a_process_once(begun: MakeEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    env = begun()
    real = subprocess.Popen
    refusals = iter([True])

    def refused_once(*arguments: Any, **keywords: Any) -> Any:
        if next(refusals, False):
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return real(*arguments, **keywords)

    monkeypatch.setattr("sc2pool.processes.spawn.subprocess.Popen", refused_once)
    processes_of(env, 0)["worker"].kill()
    play_until(env, "worker-exited")
    play_on(env)
    assert env.stats().recycles == {"worker-exited": 1, "spawn-failed": 1}


@pytest.mark.parametrize("missing", [Exhausts.DESCRIPTORS, Exhausts.THREADS])
def test_a_worker_without_descriptors_or_threads_gets_no_other_game(
    begun: MakeEnv, missing: int
) -> None:
    env = begun(task=Exhausts, config=PoolConfig(envs_per_worker=2))
    worker = processes_of(env, 0)["worker"]
    assert processes_of(env, 1)["worker"] == worker
    step(env, missing, 0)
    processes_of(env, 0)["game"].kill()
    play_until(env, "game-exited")
    play_on(env)
    assert env.stats().recycles == {"game-exited": 1, "launch-failed": 1}
    assert processes_of(env, 0)["worker"] != worker
    assert processes_of(env, 1)["worker"] == worker


@pytest.mark.parametrize("refused", ["sc2pool-uninterrupted", "sc2pool-watchdog"])
def test_the_system_refuses_a_thread_of_the_pools(
    make_env: MakeEnv, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    start = threading.Thread.start

    def start_others(thread: threading.Thread) -> None:
        if thread.name == refused:
            refuse_thread(thread)
        start(thread)

    if refused.endswith("uninterrupted"):
        monkeypatch.setattr("sc2pool.processes.uninterrupted._thread", None)
    monkeypatch.setattr(threading.Thread, "start", start_others)
    with pytest.raises(ConfigError, match=r"the system refuses what a pool needs: .*no thread"):
        make_env()
