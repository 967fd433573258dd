"""Tests a pool's use of the machine: the folder of the run, free memory, and descriptors."""

from __future__ import annotations

import os
import shutil
from contextlib import closing
from functools import partial
from pathlib import Path

import gymnasium
import psutil
import pytest

from sc2pool import SubprocSC2VecEnv
from sc2pool.config import PoolConfig
from sc2pool.envs.shared_keywords import gym_specs
from sc2pool.errors import ConfigError
from sc2pool.platform import WINDOWS
from sc2pool.pool import machine
from sc2pool.pool.machine import (
    PER_INSTANCE,
    PER_POOL,
    PER_WORKER,
    RunDir,
    _system,
    available_and_total_bytes,
    available_bytes,
    living_runs,
    require_descriptors,
    shortage,
    sweep,
    trainer_of,
)
from sc2pool.pool.pool import Pool
from sc2pool.pool.report.live_files import request
from sc2pool.processes.tree import created_at_s
from tests.support.systems import KILLED, is_private

# ---- the folder of a run, and the sweep of folders without a trainer -----------------------------


DEAD_PID = 999_999_999
NAME = f"sc2pool-run-{_system()}-{{pid}}-{{created_s!r}}-0-left"
has_links = pytest.mark.skipif(
    WINDOWS, reason="nobody else may put a link among a user's temporary files"
)


@pytest.fixture
def temp(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_it_is_private_and_goes_with_the_run(temp):
    run = RunDir()
    folder = run.instance_dir(0)
    (folder / "file").touch()
    for path in (run.path, folder):
        assert is_private(path)
    run.close()
    run.close()
    assert list(temp.iterdir()) == []


def test_living_runs_and_foreign_files_are_left_alone(temp, sleeper):
    run = RunDir()
    others = [
        "other",
        "sc2pool-run-x1y2z3",
        "sc2pool-run-a-b-c-d-e",
        "sc2pool-run-00000000-1-1.0-0-xyz",
        NAME.format(pid=sleeper.pid, created_s=created_at_s(sleeper.pid)),
    ]
    for name in others:
        (temp / name).mkdir()
    sweep(temp)
    assert {path.name for path in temp.iterdir()} == {run.path.name, *others}
    run.close()


def test_a_living_run_that_a_cleaner_has_emptied_is_left_alone_and_goes_on(temp):
    run = RunDir()
    run.instance_dir(0)
    for path in run.path.iterdir():
        shutil.rmtree(path, ignore_errors=True)
        path.unlink(missing_ok=True)
    sweep(temp)
    assert run.path.exists()
    run.path.rmdir()
    folder = run.instance_dir(1)
    for path in (run.path, folder):
        assert is_private(path)
    request(run.path)
    run.close()


def test_the_folder_of_all_temporary_files_may_be_deleted(temp):
    run = RunDir()
    shutil.rmtree(temp)
    assert run.instance_dir(1).is_dir()
    run.close()


@has_links
def test_link_in_the_place_of_the_folder_is_not_followed(temp):
    """A link is not followed: another user may make one in a folder that all users may write to."""
    run = RunDir()
    shutil.rmtree(run.path)
    elsewhere = temp / "elsewhere"
    run.path.symlink_to(elsewhere)  # the link's target does not exist
    with pytest.raises(FileExistsError):
        run.instance_dir(1)
    assert not elsewhere.exists()


@has_links
def test_a_sweep_follows_no_link(temp, left_behind, sleeper):
    run = left_behind(f"{sleeper.pid} {created_at_s(sleeper.pid)!r}\n")
    kept = temp / "kept"
    run.rename(kept)
    run.symlink_to(kept)
    sweep(temp)
    assert (kept / "0" / "processes").exists()
    run.unlink()
    run.mkdir()
    (run / "0").symlink_to(kept / "0")
    sweep(temp)
    assert (kept / "0" / "processes").exists()
    assert not run.exists()
    assert sleeper.poll() is None


def test_no_place_for_it_is_a_config_error(temp, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(temp / "missing"))
    with pytest.raises(ConfigError, match="cannot make a folder for temporary files"):
        RunDir()


@pytest.fixture
def left_behind(temp):
    """Makes the folder of a run whose trainer has ended; the folder lists the given processes."""

    def make(*notes: str):
        run = temp / NAME.format(pid=DEAD_PID, created_s=1.0)
        for number, note in enumerate(notes):
            (run / str(number)).mkdir(parents=True)
            (run / str(number) / "processes").write_text(note)
        return run

    return make


def test_orphans_are_ended_before_their_folder_goes(temp, left_behind, sleeper):
    run = left_behind("", f"garbage\n999999999 1.0\n{sleeper.pid} {created_at_s(sleeper.pid)!r}\n")
    sweep(temp)
    assert sleeper.wait(5) in KILLED
    assert not run.exists()


def test_another_process_under_an_old_pid_lives_on(temp, left_behind, sleeper):
    run = left_behind(f"{sleeper.pid} {created_at_s(sleeper.pid) - 100.0!r}\n{sleeper.pid} ")
    sweep(temp)
    assert not run.exists()
    assert sleeper.poll() is None


def test_a_run_notes_its_processes_where_they_go_with_the_instance(temp, sleeper):
    run = RunDir()
    folder = run.instance_dir(3)
    run.note_process(3, sleeper.pid)
    run.note_process(3, 999_999_999)
    run.note_process(4, sleeper.pid)  # an instance that has ended
    assert (folder / "processes").read_text() == f"{sleeper.pid} {created_at_s(sleeper.pid)!r}\n"
    sweep(temp)
    assert sleeper.poll() is None, "the run lives"
    run.close()


@pytest.mark.skipif(WINDOWS or os.getuid() != 0, reason="only root may give files away")
def test_another_users_run_is_left_alone(temp, left_behind):
    run = left_behind("")
    os.chown(run, 12345, 12345)
    sweep(temp)
    assert run.exists()


def test_a_folder_that_goes_meanwhile_stops_no_sweep(temp, left_behind, monkeypatch):
    """Two trainers that start at the same time both clean up ("sweep") the same folders."""
    run = left_behind("")

    def other_is_faster(path):
        shutil.rmtree(path)
        return True

    monkeypatch.setattr("sc2pool.pool.machine.is_own", other_is_faster)
    sweep(temp)
    assert not run.exists()


def test_who_the_trainer_is(temp, left_behind):
    run = RunDir()
    assert trainer_of(run.path) == os.getpid()
    assert living_runs(temp) == {run.path: os.getpid()}
    assert trainer_of(left_behind("")) is None
    created_s = created_at_s(os.getpid())
    for pid, other_s in ((os.getpid(), 1.0), (DEAD_PID, created_s)):
        other = temp / NAME.format(pid=pid, created_s=other_s)
        other.mkdir()
        assert trainer_of(other) is None
    assert trainer_of(temp / "nothing") is None
    run.close()
    assert trainer_of(run.path) is None


def test_no_descriptor_is_free(temp, limited):
    """A run folder that does not name its trainer must not stay, because no sweep would find it."""
    refused = pytest.raises(ConfigError, match=r"cannot make a folder .* Too many open files")
    with limited("NOFILE", 0), refused:
        RunDir()
    assert list(temp.iterdir()) == []


# ---- free memory and descriptors -----------------------------------------------------------------


MB = 1_000_000


@pytest.fixture
def cgroup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(machine, "_CGROUP", tmp_path)
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
"""A function of a library, because a function of this module would make workers import torch."""
ALONE = PER_INSTANCE + PER_WORKER


def open_files_with(more: int) -> int:
    return psutil.Process().num_fds() + more


def test_shortage_names_both_numbers():
    enough = 6 + PER_POOL + 10 * ALONE
    assert shortage(10, 1, 6, enough) is None
    told = shortage(10, 1, 6, enough - 1)
    assert "10 envs and spares need about 92 open files, and this process may have 91" in told
    assert "ulimit -n 92" in told
    # If a worker has several envs, fewer descriptors are needed.
    enough = 6 + PER_POOL + 10 * PER_INSTANCE + 3 * PER_WORKER
    assert shortage(10, 4, 6, enough) is None
    assert shortage(10, 4, 6, enough - 1) is not None


def test_more_than_one_wait_takes_on_windows(monkeypatch):
    monkeypatch.setattr(machine, "WINDOWS", True)
    require_descriptors(252, 1)
    with pytest.raises(ConfigError, match=r"253 envs and spares need 514 sockets .* allows 512"):
        require_descriptors(253, 1)


@pytest.mark.parametrize(("envs", "spares"), [(2, 0), (1, 1)])
def test_too_few(limited, envs, spares):
    specs = gym_specs([MAKE_ENV] * envs)
    refused = pytest.raises(ConfigError, match="2 envs and spares need about")
    with limited("NOFILE", open_files_with(PER_POOL + 2 * ALONE - 1)), refused:
        Pool(specs, one_book=False, config=PoolConfig(), spares=spares)


def test_just_enough_is_enough(limited):
    enough = limited("NOFILE", open_files_with(PER_POOL + 2 * ALONE))
    with enough, closing(SubprocSC2VecEnv([MAKE_ENV] * 2)) as env:
        env.reset()
        assert not env.step([0, 0])[2].any()
        instance = env.stats().instances[0]
        psutil.Process(instance.worker_pid).kill()
        assert env.step([0, 0])[2].tolist() == [True, False]
