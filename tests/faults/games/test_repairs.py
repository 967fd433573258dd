"""Tests launches, repairs and fault reports: taken ports, lacking resources, repeated failures.

No value in a fault report, and no problem with the report's folder or disk, may break a step.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import NoneType

import numpy as np
import psutil
import pytest
from fault_pools import assert_fault, assert_same_bytes, processes_of, step
from fault_tasks import (
    N_WALKS,
    Blocks,
    CrashesEachEpisode,
    Exhausts,
    InterruptingError,
    MutedError,
    RaisesOddly,
    Saboteur,
    Short,
    TwoPartError,
    UserBugError,
    harm_action,
    refuse_thread,
)

from sc2pool import SubprocSC2VecEnv
from sc2pool.config import Limits, PoolConfig, RestartPolicy
from sc2pool.errors import ClosedError, ConfigError, CrashLoopError, UserCodeError
from sc2pool.game.program.process import log_left_in
from sc2pool.pool.instances.fleet import launches_at_once
from tests.support.programs import assert_gone


@pytest.mark.parametrize(
    ("cores", "first_launch_s", "expected"),
    [(16, None, 2), (16, 0.5, 16), (16, 20.0, 2), (1, 0.5, 2), (1, None, 2)],
)
def test_launches_follow_the_cores_once_one_was_quick(cores, first_launch_s, expected):
    assert launches_at_once(cores, first_launch_s) == expected


@pytest.mark.parametrize("allowed", [1, 3])
def test_no_more_than_allowed(make_env, installation, wait_for, tmp_path, allowed):
    """Each game writes a line when it starts, and then waits until the test creates a file."""
    begun, gate = tmp_path / "begun", tmp_path / "gate"
    root = installation(f'echo >>"{begun}"; while [ ! -e "{gate}" ]; do sleep 0.02; done')
    counts = []

    def count() -> int:
        return begun.read_text().count("\n") if begun.exists() else 0

    def watch() -> None:
        try:
            wait_for(lambda: count() >= allowed)
            threading.Event().wait(0.5)  # long enough for a surplus game to start
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


@pytest.fixture
def report(tmp_path: Path) -> Iterator[Path]:
    """An impostor on a game's port writes its pid and the number of received bytes to this file."""
    path = tmp_path / "impostor"
    yield path
    pid, _ = path.read_text().splitlines()[0].split()
    os.kill(int(pid), signal.SIGKILL)


@pytest.mark.parametrize("harm", ["port taken", "port stolen"])
def test_the_game_gets_another_port_and_the_impostor_not_a_byte(
    make_env, faulty, report, undisturbed, harm
):
    """If the impostor has stolen the port, the game does not answer, and only the impostor does."""
    faulty.order(harm, "start", report=str(report))
    env = make_env(game=faulty.installation)
    assert_same_bytes(env.reset(), undisturbed.observations[0][:2])
    assert_same_bytes(step(env, 0, 0)[0], undisturbed.observations[1][:2])
    assert faulty.done
    (_, port), *visits = (line.split() for line in report.read_text().splitlines())
    assert visits == [["0"]] * len(visits), "not even a websocket's upgrade"
    if harm == "port stolen":
        assert visits
    stats = env.stats()
    assert int(port) not in [instance.port for instance in stats.instances]
    assert stats.replacements == {}


def play_until(env: SubprocSC2VecEnv, kind: str) -> None:
    """Step until a fault of this kind ends env 0's episode; env 1 is not affected."""
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
def test_the_folder_for_temporary_files_is_deleted(begun, tmp_path, monkeypatch, deleted):
    temp = tmp_path / "temp"
    temp.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temp))
    env = begun()
    shutil.rmtree(temp if deleted == "temp" else next(temp.iterdir()))
    processes_of(env, 0)["worker"].kill()
    play_until(env, "worker-exited")
    play_on(env)
    assert env.stats().replacements == {"worker-exited": 1}


def lowest_free_descriptor() -> int:
    """The lowest free descriptor; if it is the limit, the process cannot open another file."""
    descriptor = os.dup(0)
    os.close(descriptor)
    return descriptor


def test_descriptors_run_out_for_a_while(begun, limited):
    """The env must wait, and must continue with a new game when there are free descriptors."""
    env = begun()
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    over = threading.Event()

    def give_back_after_the_first_refusal() -> None:
        while not env.stats().replacements.get("spawn-failed") and not over.wait(0.01):
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
    replacements = env.stats().replacements
    assert replacements["worker-exited"] == 1
    assert replacements["spawn-failed"] >= 1


def test_descriptors_run_out_for_good(begun, limited):
    """The pool must raise an error of a documented type, and all processes must end."""
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


@pytest.mark.parametrize("missing", [Exhausts.DESCRIPTORS, Exhausts.THREADS])
def test_a_worker_without_descriptors_or_threads_gets_no_other_game(begun, missing):
    env = begun(task=Exhausts, config=PoolConfig(envs_per_worker=2))
    worker = processes_of(env, 0)["worker"]
    assert processes_of(env, 1)["worker"] == worker
    step(env, missing, 0)
    processes_of(env, 0)["game"].kill()
    play_until(env, "game-exited")
    play_on(env)
    assert env.stats().replacements == {"game-exited": 1, "launch-failed": 1}
    assert processes_of(env, 0)["worker"] != worker
    assert processes_of(env, 1)["worker"] == worker


@pytest.mark.parametrize("refused", ["sc2pool-uninterrupted", "sc2pool-watchdog"])
def test_the_system_refuses_a_thread_of_the_pools(make_env, monkeypatch, refused):
    start = threading.Thread.start

    def start_others(thread: threading.Thread) -> None:
        if thread.name == refused:
            refuse_thread(thread)
        start(thread)

    if refused.endswith("uninterrupted"):
        monkeypatch.setattr("sc2pool.processes.spawn._thread", None)
    monkeypatch.setattr(threading.Thread, "start", start_others)
    with pytest.raises(ConfigError, match=r"the system refuses what a pool needs: .*no thread"):
        make_env()


def test_a_game_that_crashes_each_episode(begun, tempered):
    config = PoolConfig(restart=RestartPolicy(per_env=2))
    env = begun(n=1, task=CrashesEachEpisode, config=config, game=tempered("default"))
    for _ in range(2):
        _, _, dones, infos = step(env, 0)
        assert dones.all()
        assert infos[0]["sc2pool.fault"]["kind"] == "game-exited"
    with pytest.raises(CrashLoopError, match="env 0: 3 failures of one env in 60 s") as caught:
        step(env, 0)
    assert str(caught.value).count("game-exited while stepping") == 3
    assert "SIGSEGV" in str(caught.value)
    assert_gone(psutil.Process().children(recursive=True))
    with pytest.raises(ClosedError, match="the pool has failed"):
        step(env, 0)


@pytest.mark.timing
def test_an_executable_that_exits_at_once(make_env, installation):
    """Two early exits of the same kind show a broken installation, so there is no third try."""
    root = installation('echo "cannot open shared object file" >&2; exit 1')
    began_s = time.monotonic()
    with pytest.raises(CrashLoopError, match="the game does not start") as caught:
        make_env(game=root)
    assert time.monotonic() - began_s < 8.0
    assert "launch-failed while launching" in str(caught.value)
    assert "exit code 1" in str(caught.value)
    assert "cannot open shared object file" in str(caught.value)
    assert_gone(psutil.Process().children(recursive=True))


def test_an_executable_that_never_listens(make_env, installation):
    config = PoolConfig(limits=Limits(launch_s=0.5), restart=RestartPolicy(per_env=1))
    with pytest.raises(CrashLoopError) as caught:
        make_env(game=installation('echo "loading"; exec sleep 60'), config=config)
    assert str(caught.value).count("deadline while launching") == 2
    assert "loading" in str(caught.value)
    assert_gone(psutil.Process().children(recursive=True))


def test_games_killed_while_they_launch_are_tried_again(begun, installation, tmp_path):
    """A lack of memory may cause SIGKILL, so two SIGKILLs do not prove a broken installation."""
    (tmp_path / "lives").write_text("..")
    script = f'[ -s "{tmp_path}/lives" ] && truncate -s -1 "{tmp_path}/lives" && kill -KILL $$'
    env = begun(n=1, game=installation(script))
    assert env.stats().replacements == {"game-exited": 2}


def test_a_hook_that_blocks_its_worker_counts_once_and_is_named(begun):
    config = PoolConfig(
        limits=Limits(step_s=2.0, worker_grace_s=0.5),
        restart=RestartPolicy(per_pool_per_env=1),
        envs_per_worker=2,
    )
    env = begun(task=Blocks, config=config)
    for _ in range(2):
        _, _, dones, infos = step(env, 0, N_WALKS)
        assert dones.all()
        for info in infos:
            assert "env 1: act() of Blocks has not returned for" in info["sc2pool.fault"]["detail"]
            assert "fault_tasks.py, line" in info["sc2pool.fault"]["detail"]
    (report,) = {Path(infos[1]["sc2pool.fault"]["fault_report"])}
    assert "time.sleep(600)" in (report / "traceback.txt").read_text()
    with pytest.raises(CrashLoopError, match="env 1: 3 failures of the pool"):
        step(env, 0, N_WALKS)


KILL = harm_action("game KILL")
ROOM_BYTES = 1_000_000
"""Disk space for the logs of two games, and for little else."""


ODD_ERRORS = {
    "text that is no text": (UserCodeError, UserBugError, "UserBugError: no file \udc80"),
    "no message": (UserCodeError, MutedError, "MutedError: <no message"),
    "an interrupt": (UserCodeError, InterruptingError, "InterruptingError: <no message"),
    "no traceback": (UserCodeError, SyntaxError, "SyntaxError: bad"),
    "a subclass of ours": (ConfigError, TwoPartError, "env 0, stepping: map: too small"),
    "no attribute": (UserCodeError, Exception, "UnreadableError: <no message: its attributes"),
    "another class": (UserCodeError, Exception, "LyingError: <no message: its class"),
    "no cause": (UserCodeError, Exception, "CauselessError: <no message: its attributes"),
    "a cause without attributes": (UserCodeError, UserBugError, "UserBugError: top"),
    "an end in its pickling": (UserCodeError, NoneType, "LeavingError"),
    "no number": (UserCodeError, Exception, "NumberlessError: <no message: it raises UserBugError"),
}
"""For each error of a user: type, cause and message of the error that the trainer gets."""


@pytest.mark.parametrize("kind", ODD_ERRORS)
def test_the_users_own_error_is_raised(make_env, tmp_path, kind):
    raised, cause, message = ODD_ERRORS[kind]
    env = make_env(n=1, task=RaisesOddly, config=PoolConfig(fault_report_dir=tmp_path))
    env.set_options({"error": kind})
    env.reset()
    with pytest.raises(raised) as caught:
        step(env, 0)
    assert message in str(caught.value)
    assert isinstance(caught.value.__cause__, cause)
    (report,) = tmp_path.iterdir()
    trace = (report / "traceback.txt").read_text()
    assert "raise ODD_ERRORS" in trace


def test_a_users_fault_that_lacks_what_ours_have(make_env, tmp_path):
    env = make_env(n=1, task=RaisesOddly, config=PoolConfig(fault_report_dir=tmp_path))
    env.set_options({"error": "a bare fault"})
    env.reset()
    _, _, dones, infos = step(env, 0)
    assert dones.tolist() == [True]
    assert_fault(infos[0], {"game-exited"}, "stepping", 0)
    assert infos[0]["sc2pool.fault"]["detail"] == "the window is gone"


def test_the_log_of_a_game_whose_worker_was_killed(begun, tmp_path):
    env = begun(task=Saboteur, config=PoolConfig(fault_report_dir=tmp_path))
    _, _, dones, infos = step(env, 0, harm_action("worker KILL"))
    assert dones.tolist() == [False, True]
    report = Path(infos[1]["sc2pool.fault"]["fault_report"])
    assert "Ready for commands" in (report / "game.log").read_text()


def test_a_trainer_that_uses_one_array_for_all_its_actions(begun, tmp_path):
    """The report shows the sent actions, whether the argument `envs` is given or not."""
    env = begun(task=Saboteur, config=PoolConfig(fault_report_dir=tmp_path))
    actions = np.zeros(2, np.int64)
    for envs in (None, [0, 1]):
        for action in (1, 2, KILL):
            actions[:] = action, 0
            env.pool.send(actions, envs)
            actions[:] = -1
            batch = env.pool.recv()
        report = Path(batch.infos[0]["sc2pool.fault"]["fault_report"])
        assert json.loads((report / "fault.json").read_text())["last_actions"] == [1, 2, KILL]


def test_a_game_that_floods_its_log(begun, faulty, run_temp):
    """A flood of a game's output must fill neither disk nor memory, and steps must continue."""
    env = begun(task=Short, game=faulty.installation)
    (run,) = run_temp.glob("sc2pool-run-*")
    faulty.order("flood the log", "step", seconds=600.0)
    logs = [run / str(row.instance) for row in env.stats().instances]
    worker = psutil.Process(env.stats().instances[0].worker_pid)
    before_bytes = worker.memory_info().rss
    flooded_for = 0
    while flooded_for < 50:
        step(env, 0, 0)
        flooded_for += any("flood flood" in log_left_in(log) for log in logs)
        used_bytes = sum(file.stat().st_size for file in run.rglob("*") if file.is_file())
        assert used_bytes < ROOM_BYTES
    assert worker.memory_info().rss < before_bytes + ROOM_BYTES
    assert env.stats().replacements == {}
