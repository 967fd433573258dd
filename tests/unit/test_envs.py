"""Tests the env classes: their keywords, wrong calls, and the callback for snapshots."""

from __future__ import annotations

import logging
import pickle
import re
import shutil
import time
from collections.abc import Callable
from typing import Any, ClassVar

import gymnasium
import numpy as np
import psutil
import pytest
from gymnasium import spaces
from sc2.bot_ai import BotAI
from stable_baselines3 import PPO
from stable_baselines3.common.logger import KVWriter, Logger

from sc2pool import (
    DummySC2VecEnv,
    SC2GymEnv,
    SC2VectorEnv,
    SnapshotCallback,
    SnapshotStore,
    SubprocSC2VecEnv,
)
from sc2pool.config import Limits, PoolConfig, ReplayPolicy
from sc2pool.envs.callbacks import figures
from sc2pool.envs.shared_keywords import (
    good_envs_per_worker,
    make_players,
    task_spec,
    whole_number,
)
from sc2pool.errors import ConfigError
from sc2pool.platform import WINDOWS
from sc2pool.pool.statistics import Counters, PoolStats
from sc2pool.protocol.compiled import STEP_PATH
from sc2pool.tasks.minigames.defeat_roaches import DefeatRoaches
from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon
from sc2pool.tasks.opponents.results import read_scores
from sc2pool.tasks.opponents.snapshots import WIN_RATES_FILE
from tests.support.systems import EXECUTABLE

# ---- keywords, checked before a process starts ---------------------------------------------------


@pytest.mark.parametrize("task", ["MoveToBeacon", MoveToBeacon], ids=str)
def test_a_task_by_name_or_class(standin_dir, task):
    spec = task_spec(task, standin_dir, PoolConfig())
    assert spec.task is MoveToBeacon
    assert spec.map_path.name == "MoveToBeacon.SC2Map"
    assert spec.installation.root == standin_dir
    assert pickle.loads(pickle.dumps(spec)) == spec


@pytest.mark.parametrize("wrong", [-1, True, 2.0, "2", None, np.zeros(0, int)], ids=repr)
def test_a_whole_number(wrong):
    given = [whole_number("seed", number, 0) for number in (0, np.int64(4), 2**40)]
    assert given == [0, 4, 2**40]
    assert {type(number) for number in given} == {int}
    with pytest.raises(
        ConfigError, match=re.escape(f"seed must be a whole number of at least 0, got {wrong!r}")
    ):
        whole_number("seed", wrong, 0)
    with pytest.raises(ConfigError, match="n must be a whole number of at least 1, got 0"):
        whole_number("n", 0, 1)


def test_more_games_than_ports(standin_dir):
    with pytest.raises(ConfigError, match=f"n must be at most 65535, .* got {10**30}"):
        make_players(n=10**30, game=standin_dir)


@pytest.mark.parametrize(
    ("first", "keywords", "task", "n"),
    [
        (None, {}, MoveToBeacon, 8),
        (None, {"n": 2}, MoveToBeacon, 2),
        (3, {}, MoveToBeacon, 3),
        (3, {"task": "DefeatRoaches"}, DefeatRoaches, 3),
        ("DefeatRoaches", {}, DefeatRoaches, 8),
        (DefeatRoaches, {"n": np.int64(2)}, DefeatRoaches, 2),
    ],
    ids=str,
)
def test_the_first_argument_may_be_a_task_or_a_number_of_envs(
    standin_dir, first, keywords, task, n
):
    players = make_players(first, game=standin_dir, **keywords)
    assert [spec.task.task for spec in players.specs] == [task] * n
    assert players.is_task


def test_functions_may_come_in_any_iterable_and_n_may_be_their_number():
    for env_fns in ([int, str], (int, str), (env_fn for env_fn in (int, str))):
        players = make_players(env_fns, n=2)
        assert [spec.env_fn for spec in players.specs] == [int, str]
        assert (players.is_task, players.realtime, players.step_mul) == (False, False, None)


@pytest.mark.parametrize(
    ("n", "n_cores", "each"), [(1, 2, 1), (8, 8, 1), (8, 2, 4), (9, 4, 3), (64, 4, 8)]
)
def test_envs_of_a_task_share_workers_where_cores_are_few(standin_dir, n, n_cores, each):
    for task in ("MoveToBeacon", "MoveToBeaconBot"):
        spec = task_spec(task, standin_dir, PoolConfig())
        expected = each if STEP_PATH == "compiled" else 1
        assert good_envs_per_worker(spec, n, n_cores) == expected
        spec = task_spec(task, standin_dir, PoolConfig(), realtime=True)
        assert good_envs_per_worker(spec, n, n_cores) == 1
    spec = task_spec("MarineDuel", standin_dir, PoolConfig(), opponent=Waiting)
    assert good_envs_per_worker(spec, n, n_cores) == 1, "the bot may keep things in its class"


class Waiting(BotAI):
    async def on_step(self, iteration: int) -> None:
        """Do nothing."""


def test_the_users_number_of_envs_per_worker_is_kept(standin_dir):
    config = PoolConfig(envs_per_worker=3)
    assert make_players(n=64, game=standin_dir, config=config).config == config


@pytest.mark.parametrize(
    ("task", "opponent", "rows"),
    [("MoveToBeacon", None, 1), ("MarineDuel", None, 2), ("MarineDuel", min, 1), ("8m", None, 8)],
)
def test_how_many_learners_a_game_has(standin_dir, task, opponent, rows):
    players = make_players(n=2, task=task, game=standin_dir, opponent=opponent)
    assert players.task.rows == players.specs[0].player().rows == rows


# ---- wrong calls, refused before anything is started ---------------------------------------------


TOLD_WITHIN_S = Limits().launch_s / 3
"""The time in which an error must come; an error after an expired limit would take longer."""


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
"""Keywords, and the words of the error; without the keyword `game`, the game is the stand-in."""
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
    """Check that a call starts no process, and raises in time, with all of `said` in one line."""
    began_s = time.monotonic()
    with pytest.raises(ConfigError) as caught:
        make()
    assert time.monotonic() - began_s < TOLD_WITHIN_S
    for part in said:
        assert part in str(caught.value)
    assert "\n" not in str(caught.value)
    assert psutil.Process().children(recursive=True) == []


@pytest.mark.timing
@pytest.mark.parametrize("env_class", ONE + MANY)
@pytest.mark.parametrize(
    ("keywords", "said"), OF_EVERY_CLASS, ids=[said[0] for *_, said in OF_EVERY_CLASS]
)
def test_every_class(env_class, standin_dir, keywords, said):
    refused(lambda: env_class(**{"game": standin_dir, **keywords}), *said)


@pytest.mark.timing
@pytest.mark.parametrize("env_class", MANY)
@pytest.mark.parametrize(
    ("first", "keywords", "said"), OF_SEVERAL_ENVS, ids=[said[0] for *_, said in OF_SEVERAL_ENVS]
)
def test_classes_of_several_envs(env_class, standin_dir, first, keywords, said):
    game = {} if isinstance(first, list) else {"game": standin_dir}
    refused(lambda: env_class(first, **{**game, **keywords}), *said)


@pytest.mark.timing
@pytest.mark.parametrize("env_class", ONE + MANY)
def test_sc2path_that_is_no_installation(env_class, tmp_path, monkeypatch):
    monkeypatch.setenv("SC2PATH", str(tmp_path))
    refused(
        lambda: env_class(task="MoveToBeacon"),
        f"SC2PATH={str(tmp_path)!r} is no StarCraft II installation",
        "has no folder Versions",
    )


@pytest.mark.timing
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


@pytest.mark.timing
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


@pytest.mark.timing
@pytest.mark.parametrize("env_class", MANY)
def test_replays_are_for_tasks_only(env_class, tmp_path):
    config = PoolConfig(replays=ReplayPolicy(tmp_path))
    refused(lambda: env_class([dict], config=config), "replays are of games")


@pytest.mark.timing
@pytest.mark.parametrize(
    "wrong", [{"autoreset_mode": "Never"}, {"n": 0}, {"worker": print}, {"seed": -1}], ids=str
)
def test_a_vector_env_that_was_not_made_can_be_closed(wrong):
    """gymnasium before 1.3 calls `close` in `VectorEnv.__del__`, also if no env was made."""
    made = []

    class Kept(SC2VectorEnv):
        def __new__(cls, *_: Any, **__: Any) -> Any:
            made.append(super().__new__(cls))
            return made[0]

    with pytest.raises(ValueError):
        Kept(**wrong)
    made[0].close()


@pytest.mark.timing
@pytest.mark.parametrize("env_class", ONE + MANY)
def test_a_folder_for_replays_that_is_a_file(env_class, standin_dir, tmp_path):
    file = tmp_path / "file"
    file.touch()
    config = PoolConfig(replays=ReplayPolicy(file))
    refused(
        lambda: env_class(task="MoveToBeacon", game=standin_dir, config=config),
        f"no folder for replays at {file}",
    )


# ---- the callback for snapshots ------------------------------------------------------------------


class Won(gymnasium.Env):
    """Wins each match after ten steps; the opponent is step-0 or an unknown opponent in turn."""

    observation_space = spaces.Box(-1, 1, (2,), np.float32)
    action_space = spaces.Discrete(2)
    matches = 0

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        self.matches += 1
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.steps += 1
        over = self.steps == 10
        name = "step-0" if self.matches % 2 else "step-7"
        info = {"sc2pool.opponent": name, "sc2pool.result": "win"} if over else {}
        return np.zeros(2, np.float32), 0.0, over, False, info


class Kept(KVWriter):
    """A writer of SB3's logger that keeps the newest figures."""

    def write(self, key_values, key_excluded, step=0):
        self.figures = dict(key_values)

    def close(self):
        pass


@pytest.fixture
def model():
    return PPO("MlpPolicy", Won(), n_steps=64, batch_size=64, device="cpu")


def test_snapshots_and_win_rates(model, tmp_path):
    store = SnapshotStore(tmp_path / "store")
    store.add(model, 0)
    kept = Kept()
    model.set_logger(Logger(None, [kept]))
    model.learn(128, callback=SnapshotCallback(store, every=50))
    assert [one.name for one in store.snapshots()] == ["step-0", "step-50", "step-100"]
    scores = read_scores(store.folder / WIN_RATES_FILE)
    assert scores.keys() == {"step-0"}  # the unknown opponent is not a snapshot
    assert scores["step-0"].played >= 3
    assert kept.figures["self_play/win_rate/step-0"] == 1.0


def test_matches_are_figures():
    counters = Counters()
    assert not any("/" in name for name in figures(stats_of(counters)))
    for result in ("win", "loss", "undecided", "win"):
        counters.count_match("step-0", result)
    found = figures(stats_of(counters))
    assert (found["matches/step-0"], found["win_rate/step-0"]) == (4, 0.5)


def stats_of(counters: Counters) -> PoolStats:
    return counters.snapshot([], steps_per_s=None, watchdog_cpu_s=0.0)


def test_a_later_training_goes_on(model, tmp_path):
    store = SnapshotStore(tmp_path / "store")
    store.add(model, 0)
    callback = SnapshotCallback(store, every=100)
    model.learn(128, callback=callback)
    model.learn(128, callback=callback, reset_num_timesteps=False)
    assert [one.name for one in store.snapshots()] == ["step-0", "step-100", "step-228"]


def test_a_disk_that_refuses_ends_no_training(model, tmp_path, caplog):
    store = SnapshotStore(tmp_path / "store")
    callback = SnapshotCallback(store, every=50)
    (store.folder / "step-50.zip").mkdir()  # this folder has the name of the snapshot's file
    (store.folder / WIN_RATES_FILE).mkdir()
    store.add(model, 0)
    with caplog.at_level(logging.WARNING, "sc2pool"):
        model.learn(64, callback=callback)
    assert model.num_timesteps == 64
    said = [record.getMessage() for record in caplog.records]
    assert any(line.startswith("no snapshot at 50 steps: ") for line in said)
    assert any(line.startswith("the win rates cannot be written: ") for line in said)


def test_win_rates_outlive_a_folder_that_cannot_be_listed_for_a_while(model, tmp_path, monkeypatch):
    store = SnapshotStore(tmp_path / "store")
    store.add(model, 0)
    callback = SnapshotCallback(store, every=1000)
    model.learn(64, callback=callback)
    played = read_scores(store.folder / WIN_RATES_FILE)["step-0"].played
    monkeypatch.setattr(SnapshotStore, "snapshots", lambda _: [])
    model.learn(64, callback=callback, reset_num_timesteps=False)
    assert read_scores(store.folder / WIN_RATES_FILE)["step-0"].played > played


@pytest.mark.parametrize("every", [0, -1, 2.5, "10"])
def test_every_must_be_a_number_of_steps(tmp_path, every):
    with pytest.raises(ConfigError, match="every must be a whole number of at least 1"):
        SnapshotCallback(SnapshotStore(tmp_path), every)
