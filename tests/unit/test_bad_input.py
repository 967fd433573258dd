"""What a user can get wrong in the call: a typed error that says so, before anything is started."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from typing import Any, ClassVar

import psutil
import pytest
from gymnasium import spaces

from sc2pool import DummySC2VecEnv, SC2GymEnv, SC2VectorEnv, SubprocSC2VecEnv
from sc2pool.config import Limits, PoolConfig, ReplayPolicy
from sc2pool.errors import ConfigError
from sc2pool.platform import WINDOWS
from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon
from tests.support.systems import EXECUTABLE

pytestmark = pytest.mark.timing

TOLD_WITHIN_S = Limits().launch_s / 3
"""Whoever waits for a limit is told later."""


class OnAMissingMap(MoveToBeacon):
    map_name: ClassVar[str] = "MoveToBecon"


class WithoutSpaces(MoveToBeacon):
    observation_space: Any = None


ONE = (SC2GymEnv,)
MANY = (SubprocSC2VecEnv, DummySC2VecEnv, SC2VectorEnv)
LOOPS = "must be a whole number of at least 1"
OF_EVERY_CLASS: list[tuple[dict[str, Any], list[str]]] = [
    ({"task": "MoveToBecon"}, ["unknown task 'MoveToBecon'", "did you mean 'MoveToBeacon'?"]),
    ({"task": "movetobeacon"}, ["did you mean 'MoveToBeacon'"]),
    ({"task": "Chess"}, ["unknown task 'Chess'", "Built-in tasks: MoveToBeacon, "]),
    ({"task": ""}, ["unknown task ''"]),
    ({"task": 42}, ["must be a built-in name, module:Class, or a subclass of Task", "got 42"]),
    ({"task": MoveToBeacon()}, ["a subclass of Task or RLBotAI, got <"]),
    ({"task": spaces.Space}, ["a subclass of Task or RLBotAI, got <class"]),
    ({"task": WithoutSpaces}, ["task WithoutSpaces", "'observation_space' must be a Space, got N"]),
    ({"task": OnAMissingMap}, ["no map 'MoveToBecon' in ", "similar: MoveToBeacon"]),
    ({"game": "/no/such/place"}, ["game='/no/such/place' is no StarC", "does not exist"]),
    ({"game": None}, ["game must be 'auto', 'real', 'standin' or the path", "got None"]),
    ({"render_mode": "ansi"}, ["one of ['human', 'rgb_array'], got 'ansi'"]),
    ({"realtime": "yes"}, ["realtime must be True or False, got 'yes'"]),
    ({"config": {}}, ["config must be a PoolConfig, got {}"]),
    *(
        ({name: loops}, [f"{name} {LOOPS}, got {loops!r}"])
        for name in ("step_mul", "max_loops")
        for loops in (0, "8")
    ),
]
"""Keywords, besides the stand-in as the game, and the words of the error."""
OF_SEVERAL_ENVS: list[tuple[Any, dict[str, Any], list[str]]] = [
    *((None, {"n": n}, [f"n {LOOPS}, got {n!r}"]) for n in (0, "8")),
    (None, {"num_envs": 0}, [f"num_envs {LOOPS}, got 0"]),
    (None, {"n": 2, "num_envs": 3}, ["n=2 games have 2 envs, got num_envs=3"]),
    ("MarineDuel", {"num_envs": 3}, ["each game has 2 envs, so num_envs=3 is not possible"]),
    *(
        (first, {"seed": -1}, ["seed must be a whole number of at least 0, got -1"])
        for first in (None, [dict])
    ),
    (None, {"spares": -1}, ["spares must be a whole number of at least 0, got -1"]),
    (3, {"n": 4}, ["n is given twice: 3 and n=4"]),
    ("MoveToBeacon", {"task": "MoveToBeacon"}, ["give either env_fns or task, got 'MoveToBea"]),
    (True, {}, ["the first argument must be a list of functions", "got True"]),
    (2.0, {}, ["the first argument must be a list of functions", "got 2.0"]),
    (dict, {}, ["env_fns must be a list of functions; for <class 'dict'> write [it] * n"]),
    ([], {}, ["env_fns is empty; expected at least one function"]),
    ([dict, "CartPole-v1"], {}, ["env_fns[1] must be a function that makes an env, got 'CartPo"]),
    ([None], {}, ["env_fns[0] must be a function that makes an env, got None"]),
    ([dict], {"task": "MoveToBeacon"}, ["either env_fns or task, got [<class 'dict'>] and task"]),
    ([dict, dict], {"n": 8}, ["n=8, but env_fns has 2 functions"]),
    ([dict], {"num_envs": 3}, ["n=3, but env_fns has 1 functions"]),
    ([dict], {"n": 0}, [f"n {LOOPS}, got 0"]),
    ([dict], {"config": {}}, ["config must be a PoolConfig, got {}"]),
    (
        [dict],
        {"config": PoolConfig(envs_per_worker=2)},
        ["envs_per_worker is for tasks", "envs_per_worker=2"],
    ),
    *(
        ([dict], {name: value}, [f"{name} is for tasks", f"got {name}={value!r}"])
        for name, value in {
            "game": "real",
            "spares": 1,
            "render_mode": "rgb_array",
            "realtime": True,
            "step_mul": 4,
            "max_loops": 100,
        }.items()
    ),
]
"""The first argument, keywords, and the words of the error."""


def refused(make: Callable[[], Any], *said: str) -> None:
    """It raises in time, naming all of `said` in one line, and starts no process."""
    began_s = time.monotonic()
    with pytest.raises(ConfigError) as caught:
        make()
    assert time.monotonic() - began_s < TOLD_WITHIN_S
    for part in said:
        assert part in str(caught.value)
    assert "\n" not in str(caught.value)
    assert psutil.Process().children(recursive=True) == []


@pytest.mark.parametrize("env_class", ONE + MANY)
@pytest.mark.parametrize(
    ("keywords", "said"), OF_EVERY_CLASS, ids=[said[0] for *_, said in OF_EVERY_CLASS]
)
def test_every_class(env_class, standin_dir, keywords, said):
    refused(lambda: env_class(**{"game": standin_dir, **keywords}), *said)


@pytest.mark.parametrize("env_class", MANY)
@pytest.mark.parametrize(
    ("first", "keywords", "said"), OF_SEVERAL_ENVS, ids=[said[0] for *_, said in OF_SEVERAL_ENVS]
)
def test_classes_of_several_envs(env_class, standin_dir, first, keywords, said):
    game = {} if isinstance(first, list) else {"game": standin_dir}
    refused(lambda: env_class(first, **{**game, **keywords}), *said)


@pytest.mark.parametrize("env_class", ONE + MANY)
def test_sc2path_that_is_no_installation(env_class, tmp_path, monkeypatch):
    monkeypatch.setenv("SC2PATH", str(tmp_path))
    refused(
        lambda: env_class(task="MoveToBeacon"),
        f"SC2PATH={str(tmp_path)!r} is no StarCraft II installation",
        "has no folder Versions",
    )


def test_executable_that_is_no_program(standin_dir, tmp_path):
    executable = tmp_path / "Versions" / "Base75689" / EXECUTABLE
    executable.parent.mkdir(parents=True)
    executable.write_bytes(b"\x7fELF, but not really")
    executable.chmod(0o755)
    shutil.copytree(standin_dir / "Maps", tmp_path / "Maps")
    refused(
        lambda: SubprocSC2VecEnv(n=2, task="MoveToBeacon", game=tmp_path),
        f"cannot start {executable}",
        "WinError 193" if WINDOWS else "Exec format error",
    )


def test_a_number_of_envs_in_the_place_of_another_argument():
    refused(
        lambda: SubprocSC2VecEnv("MoveToBeacon", 8),
        "start_method must be None or a start method's name, got 8",
        "write n=8",
    )
    refused(
        lambda: SC2VectorEnv("MoveToBeacon", 8),
        "shared_memory must be True or False, got 8",
        "write n=8",
    )


@pytest.mark.parametrize("env_class", MANY)
def test_replays_are_for_tasks_only(env_class, tmp_path):
    config = PoolConfig(replays=ReplayPolicy(tmp_path))
    refused(lambda: env_class([dict], config=config), "replays are of games")


@pytest.mark.parametrize(
    "wrong", [{"autoreset_mode": "Never"}, {"n": 0}, {"worker": print}, {"seed": -1}], ids=str
)
def test_a_vector_env_that_was_not_made_can_be_closed(wrong):
    """gymnasium before 1.3 calls `close` in `VectorEnv.__del__`."""
    made = []

    class Kept(SC2VectorEnv):
        def __new__(cls, *_: Any, **__: Any) -> Any:
            made.append(super().__new__(cls))
            return made[0]

    with pytest.raises(ValueError):
        Kept(**wrong)
    made[0].close()


@pytest.mark.parametrize("env_class", ONE + MANY)
def test_a_folder_for_replays_that_is_a_file(env_class, standin_dir, tmp_path):
    file = tmp_path / "file"
    file.touch()
    config = PoolConfig(replays=ReplayPolicy(file))
    refused(
        lambda: env_class(task="MoveToBeacon", game=standin_dir, config=config),
        f"no folder for replays at {file}",
    )
