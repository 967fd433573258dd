"""What a user can get wrong in the call: a typed error that says so, before anything is started."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import psutil
import pytest
from gymnasium import spaces

from sc2pool import SC2GymEnv, SubprocSC2VecEnv
from sc2pool.config import PoolConfig, ReplayPolicy
from sc2pool.errors import ConfigError
from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon

pytestmark = pytest.mark.timing

TOLD_WITHIN_S = 5.0


class OnAMissingMap(MoveToBeacon):
    map_name: ClassVar[str] = "MoveToBecon"


class WithoutSpaces(MoveToBeacon):
    observation_space: Any = None


class StandsStill(MoveToBeacon):
    step_mul: ClassVar[int] = 0


def refused(make: Callable[[], Any], *said: str) -> None:
    """It raises in time, naming all of `said`, and starts no process."""
    began_s = time.monotonic()
    with pytest.raises(ConfigError) as caught:
        make()
    assert time.monotonic() - began_s < TOLD_WITHIN_S
    for part in said:
        assert part in str(caught.value)
    assert psutil.Process().children(recursive=True) == []


@pytest.fixture(params=[SubprocSC2VecEnv, SC2GymEnv])
def face(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("MoveToBecon", ["unknown task 'MoveToBecon'", "did you mean 'MoveToBeacon'?"]),
        ("Chess", ["unknown task 'Chess'", "Built-in tasks: MoveToBeacon, "]),
        (42, ["a subclass of Task or RLBotAI, got 42"]),
        (MoveToBeacon(), ["a subclass of Task or RLBotAI, got <"]),
        (spaces.Space, ["a subclass of Task or RLBotAI, got <class"]),
        (WithoutSpaces, ["task WithoutSpaces", "'observation_space' must be a Space, got None"]),
        (StandsStill, ["task StandsStill", "step_mul must be a whole number of at least 1, got 0"]),
        (OnAMissingMap, ["no map 'MoveToBecon' in ", "similar: MoveToBeacon"]),
    ],
)
def test_task(face: Any, standin_dir: Path, task: Any, said: list[str]) -> None:
    refused(lambda: face(task=task, game=standin_dir), *said)


def test_game_that_does_not_exist(face: Any, tmp_path: Path) -> None:
    missing = tmp_path / "StarCraft III"
    refused(
        lambda: face(task="MoveToBeacon", game=missing),
        f"game='{missing}' is no StarCraft II installation",
        "does not exist",
    )


def test_sc2path_that_is_no_installation(
    face: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SC2PATH", str(tmp_path))
    refused(
        lambda: face(task="MoveToBeacon"),
        f"SC2PATH='{tmp_path}' is no StarCraft II installation",
        "has no folder Versions",
    )


def test_executable_that_is_no_program(standin_dir: Path, tmp_path: Path) -> None:
    folder = tmp_path / "Versions" / "Base75689"
    folder.mkdir(parents=True)
    (folder / "SC2_x64").write_bytes(b"\x7fELF, but not really")
    (folder / "SC2_x64").chmod(0o755)
    (tmp_path / "Maps").symlink_to(standin_dir / "Maps")
    refused(
        lambda: SubprocSC2VecEnv(n=2, task="MoveToBeacon", game=tmp_path),
        f"cannot start {folder / 'SC2_x64'}",
        "Exec format error",
    )


@pytest.mark.parametrize("n", [0, -1, 2.5, True, "8", None])
def test_number_of_envs(standin_dir: Path, n: Any) -> None:
    refused(
        lambda: SubprocSC2VecEnv(n=n, task="MoveToBeacon", game=standin_dir),
        f"n must be a whole number of at least 1, got {n!r}",
    )


def test_neither_or_both_of_env_fns_and_task() -> None:
    refused(SubprocSC2VecEnv, "give either env_fns or task")
    refused(
        lambda: SubprocSC2VecEnv([dict], task="MoveToBeacon"),  # type: ignore[list-item]
        "give either env_fns or task",
    )


@pytest.mark.parametrize(
    ("env_fns", "said"),
    [
        ([], "env_fns is empty; expected at least one function"),
        ([dict, "CartPole-v1"], "env_fns[1] must be a function that makes an env, got 'CartPole"),
        ([None], "env_fns[0] must be a function that makes an env, got None"),
    ],
)
def test_env_fns(env_fns: Any, said: str) -> None:
    refused(lambda: SubprocSC2VecEnv(env_fns), said)


def test_start_method() -> None:
    with pytest.raises(ValueError, match=re.escape("cannot find context for 'teleport'")):
        SubprocSC2VecEnv([dict], start_method="teleport")  # type: ignore[list-item]


def test_render_mode(face: Any, standin_dir: Path) -> None:
    refused(
        lambda: face(task="MoveToBeacon", game=standin_dir, render_mode="ansi"),
        "render_mode must be None or one of ['rgb_array'], got 'ansi'",
    )


def test_what_is_for_tasks_only(tmp_path: Path) -> None:
    refused(lambda: SubprocSC2VecEnv([dict], render_mode="rgb_array"), "render_mode is for tasks")
    config = PoolConfig(replays=ReplayPolicy(tmp_path))
    refused(lambda: SubprocSC2VecEnv([dict], config=config), "replays are of games")


def test_replay_policy(face: Any, standin_dir: Path, tmp_path: Path) -> None:
    def make(**fields: Any) -> Any:
        policy = ReplayPolicy(**({"dir": tmp_path} | fields))
        return lambda: face(
            task="MoveToBeacon", game=standin_dir, config=PoolConfig(replays=policy)
        )

    refused(make(every=0), "ReplayPolicy(every=…) must be a whole number of at least 1, got 0")
    refused(make(keep="all"), "ReplayPolicy(keep=…) must be a whole number", "got 'all'")
    (tmp_path / "file").touch()
    refused(make(dir=tmp_path / "file"), f"no folder for replays at {tmp_path / 'file'}")
