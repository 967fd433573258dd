"""The keywords of all env classes are checked and become players before a process starts."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sc2.bot_ai import BotAI

from sc2pool.config import PoolConfig
from sc2pool.envs.specs import (
    good_envs_per_worker,
    make_players,
    task_spec,
    whole_number,
)
from sc2pool.errors import ConfigError
from sc2pool.protocol.compiled import STEP_PATH
from sc2pool.tasks.minigames.defeat_roaches import DefeatRoaches
from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon


@pytest.mark.parametrize("task", ["MoveToBeacon", MoveToBeacon], ids=str)
def test_a_task_by_name_or_class(standin_dir, task):
    spec = task_spec(task, standin_dir, PoolConfig())
    assert spec.task is MoveToBeacon
    assert spec.map_path.name == "MoveToBeacon.SC2Map"
    assert spec.installation.root == standin_dir
    assert pickle.loads(pickle.dumps(spec)) == spec


@pytest.mark.parametrize("wrong", [-1, True, 2.0, "2", None], ids=repr)
def test_a_whole_number(wrong):
    given = [whole_number("seed", number, 0) for number in (0, np.int64(4), 2**40)]
    assert given == [0, 4, 2**40]
    assert {type(number) for number in given} == {int}
    with pytest.raises(
        ConfigError, match=f"seed must be a whole number of at least 0, got {wrong!r}"
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
        """It waits."""


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
    if rows == 1:
        players.require_one_row("SC2GymEnv")
    else:
        words = f"SC2GymEnv has one learner in each game, but {task} has {rows}: SubprocSC2VecEnv"
        with pytest.raises(ConfigError, match=words):
            players.require_one_row("SC2GymEnv")
    make_players([min]).require_one_row("SC2GymEnv")
