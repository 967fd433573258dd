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

from sc2pool import DummySC2VecEnv, SC2GymEnv, SC2VectorEnv, SubprocSC2VecEnv
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


@pytest.fixture(params=[SubprocSC2VecEnv, SC2VectorEnv, SC2GymEnv])
def env_class(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(params=[SubprocSC2VecEnv, DummySC2VecEnv, SC2VectorEnv])
def class_of_many(request: pytest.FixtureRequest) -> Any:
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
def test_task(env_class: Any, standin_dir: Path, task: Any, said: list[str]) -> None:
    refused(lambda: env_class(task=task, game=standin_dir), *said)


def test_game_that_does_not_exist(env_class: Any, tmp_path: Path) -> None:
    missing = tmp_path / "StarCraft III"
    refused(
        lambda: env_class(task="MoveToBeacon", game=missing),
        f"game='{missing}' is no StarCraft II installation",
        "does not exist",
    )


def test_sc2path_that_is_no_installation(
    env_class: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SC2PATH", str(tmp_path))
    refused(
        lambda: env_class(task="MoveToBeacon"),
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


@pytest.mark.parametrize("n", [0, -1, 2.5, True, "8"])
def test_number_of_envs(class_of_many: Any, standin_dir: Path, n: Any) -> None:
    refused(
        lambda: class_of_many(n=n, task="MoveToBeacon", game=standin_dir),
        f"n must be a whole number of at least 1, got {n!r}",
    )


def test_num_envs_counts_the_rows_of_all_games(class_of_many: Any, standin_dir: Path) -> None:
    refused(
        lambda: class_of_many("MoveToBeacon", n=2, num_envs=3, game=standin_dir),
        "n=2 games have 2 envs, got num_envs=3",
    )
    refused(
        lambda: class_of_many("MoveToBeacon", num_envs=0, game=standin_dir),
        "num_envs must be a whole number of at least 1, got 0",
    )
    refused(
        lambda: class_of_many("MarineDuel", num_envs=3, game=standin_dir),
        "each game has 2 envs, so num_envs=3 is not possible",
    )
    refused(lambda: class_of_many([dict], num_envs=3), "n=3, but env_fns has 1 functions")


def test_both_env_fns_and_task(class_of_many: Any) -> None:
    refused(lambda: class_of_many([dict], task="MoveToBeacon"), "give either env_fns or task")
    refused(lambda: class_of_many("MoveToBeacon", task="MoveToBeacon"), "give either env_fns or ta")


def test_a_number_of_envs_in_the_place_of_another_argument() -> None:
    refused(
        lambda: SubprocSC2VecEnv("MoveToBeacon", 8),  # type: ignore[arg-type]
        "start_method must be None or a start method's name, got 8",
        "write n=8",
    )
    refused(
        lambda: SC2VectorEnv("MoveToBeacon", 8),
        "shared_memory must be True or False, got 8",
        "write n=8",
    )


@pytest.mark.parametrize(
    ("env_fns", "said"),
    [
        ([], "env_fns is empty; expected at least one function"),
        ([dict, "CartPole-v1"], "env_fns[1] must be a function that makes an env, got 'CartPole"),
        ([None], "env_fns[0] must be a function that makes an env, got None"),
    ],
)
def test_env_fns(class_of_many: Any, env_fns: Any, said: str) -> None:
    refused(lambda: class_of_many(env_fns), said)


def test_start_method() -> None:
    with pytest.raises(ValueError, match=re.escape("cannot find context for 'teleport'")):
        SubprocSC2VecEnv([dict], start_method="teleport")  # type: ignore[list-item]


def test_render_mode(env_class: Any, standin_dir: Path) -> None:
    refused(
        lambda: env_class(task="MoveToBeacon", game=standin_dir, render_mode="ansi"),
        "render_mode must be None or one of ['human', 'rgb_array'], got 'ansi'",
    )


@pytest.mark.parametrize(
    "keyword",
    [
        {"game": "real"},
        {"spares": 1},
        {"render_mode": "rgb_array"},
        {"realtime": True},
        {"step_mul": 4},
        {"max_loops": 100},
    ],
    ids=str,
)
def test_keywords_that_are_for_tasks_only(class_of_many: Any, keyword: dict[str, Any]) -> None:
    ((name, given),) = keyword.items()
    refused(
        lambda: class_of_many([dict], **keyword), f"{name} is for tasks", f"got {name}={given!r}"
    )


def test_replays_are_for_tasks_only(class_of_many: Any, tmp_path: Path) -> None:
    config = PoolConfig(replays=ReplayPolicy(tmp_path))
    refused(lambda: class_of_many([dict], config=config), "replays are of games")


@pytest.mark.parametrize("name", ["step_mul", "max_loops"])
@pytest.mark.parametrize("loops", [0, -8, 1.5, True, "8"])
def test_numbers_of_loops(env_class: Any, standin_dir: Path, name: str, loops: Any) -> None:
    refused(
        lambda: env_class(task="MoveToBeacon", game=standin_dir, **{name: loops}),
        f"{name} must be a whole number of at least 1, got {loops!r}",
    )


def test_other_keywords(env_class: Any, standin_dir: Path) -> None:
    refused(lambda: env_class(game=standin_dir, realtime="yes"), "realtime must be True or False")
    refused(lambda: env_class(game=standin_dir, config={}), "config must be a PoolConfig, got {}")


@pytest.mark.parametrize(
    "wrong", [{"autoreset_mode": "Never"}, {"n": 0}, {"worker": print}, {"seed": -1}], ids=str
)
def test_a_vector_env_that_was_not_made_can_be_closed(wrong: dict[str, Any]) -> None:
    """gymnasium before 1.3 calls `close` in `VectorEnv.__del__`."""
    made = []

    class Kept(SC2VectorEnv):
        def __new__(cls, *_: Any, **__: Any) -> Any:
            made.append(super().__new__(cls))
            return made[0]

    with pytest.raises(ValueError):
        Kept(**wrong)
    made[0].close()


def test_replay_policy(env_class: Any, standin_dir: Path, tmp_path: Path) -> None:
    def make(**fields: Any) -> Any:
        policy = ReplayPolicy(**({"dir": tmp_path} | fields))
        return lambda: env_class(
            task="MoveToBeacon", game=standin_dir, config=PoolConfig(replays=policy)
        )

    refused(make(every=0), "ReplayPolicy(every=…) must be a whole number of at least 1, got 0")
    refused(make(keep="all"), "ReplayPolicy(keep=…) must be a whole number", "got 'all'")
    (tmp_path / "file").touch()
    refused(make(dir=tmp_path / "file"), f"no folder for replays at {tmp_path / 'file'}")
