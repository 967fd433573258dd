"""What is kept of a fault cannot break the step: not its values, not its folder, not the disk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fault_pools import MakeEnv, step
from fault_tasks import MutedError, RaisesOddly, Saboteur, TwoPartError, UserBugError, harm_action

from sc2pool.config import PoolConfig
from sc2pool.errors import ConfigError, UserCodeError

KILL = harm_action("game KILL")


def test_options_that_json_cannot_hold(make_env: MakeEnv, tmp_path: Path) -> None:
    env = make_env(task=Saboteur, config=PoolConfig(fault_report_dir=tmp_path))
    env.set_options({("a", 1): float("nan"), "b": 2})
    env.reset()
    _, _, dones, infos = step(env, 0, KILL)
    assert dones.tolist() == [False, True]
    report = Path(infos[1]["sc2pool.fault"]["fault_report"])
    about = json.loads((report / "fault.json").read_text())
    assert about["episode"]["options"] == {"('a', 1)": "nan", "b": 2}


ODD_ERRORS = {
    "text that is no text": (UserCodeError, UserBugError, "UserBugError: no file \udc80"),
    "no message": (UserCodeError, MutedError, "MutedError: <no message"),
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


def test_a_folder_that_cannot_be_made(make_env: MakeEnv, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    env = make_env(task=Saboteur, config=PoolConfig(fault_report_dir=tmp_path / "file" / "faults"))
    env.reset()
    _, _, dones, infos = step(env, 0, KILL)
    assert dones.tolist() == [False, True]
    fault = infos[1]["sc2pool.fault"]
    assert (fault["kind"], fault["fault_report"]) == ("game-exited", None)
    assert step(env, 0, 0)[2].tolist() == [False, False]
