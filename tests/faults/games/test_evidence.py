"""What is kept of a fault cannot break the step: not its values, not its folder, not the disk."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import psutil
import pytest
from fault_pools import MakeEnv, step
from fault_tasks import (
    MutedError,
    RaisesOddly,
    Saboteur,
    Short,
    TwoPartError,
    UserBugError,
    harm_action,
)

from sc2pool.config import PoolConfig
from sc2pool.errors import ConfigError, UserCodeError
from sc2pool.game.program.process import log_left_in
from tests.support.audit.faulty import Faulty

KILL = harm_action("game KILL")
ROOM_BYTES = 1_000_000
"""Enough for the logs of two games and little else."""


ODD_ERRORS = {
    "text that is no text": (UserCodeError, UserBugError, "UserBugError: no file \udc80"),
    "no message": (UserCodeError, MutedError, "MutedError: <no message"),
    "no traceback": (UserCodeError, SyntaxError, "SyntaxError: bad"),
    "a subclass of ours": (ConfigError, TwoPartError, "env 0, stepping: map: too small"),
}


@pytest.mark.parametrize("kind", ODD_ERRORS)
def test_the_users_own_error_is_raised(make_env: MakeEnv, tmp_path: Path, kind: str) -> None:
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


def test_the_log_of_a_game_whose_worker_was_killed(begun: MakeEnv, tmp_path: Path) -> None:
    env = begun(task=Saboteur, config=PoolConfig(fault_report_dir=tmp_path))
    _, _, dones, infos = step(env, 0, harm_action("worker KILL"))
    assert dones.tolist() == [False, True]
    report = Path(infos[1]["sc2pool.fault"]["fault_report"])
    assert "Ready for commands" in (report / "game.log").read_text()


def test_a_trainer_that_uses_one_array_for_all_its_actions(begun: MakeEnv, tmp_path: Path) -> None:
    """Whether it names its envs or not."""
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


def test_a_game_that_floods_its_log(begun: MakeEnv, faulty: Faulty, run_temp: Path) -> None:
    """Its output takes no room, neither on the disk nor in the worker, and steps go on."""
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
    assert env.stats().recycles == {}
