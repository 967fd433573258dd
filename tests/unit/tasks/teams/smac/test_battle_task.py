"""What a class with a scenario gets, and what it keeps of its own."""

from __future__ import annotations

import pickle

import pytest

from sc2pool.errors import ConfigError
from sc2pool.tasks.registry import resolve
from sc2pool.tasks.teams.smac.battle_task import SmacTask, smac_task
from sc2pool.tasks.teams.smac.rules import Rules
from sc2pool.tasks.teams.team_task import row_space


def test_a_scenarios_task():
    task = smac_task("MMM")
    assert task.__name__ == task.map_name == "MMM"
    assert task.observation_space.shape == (160,)
    assert task.state_space.shape == (290,)
    assert task.action_space.n == 16
    assert task.max_loops == 150 * 8
    assert [one.race for one in task.opponents] == [1]
    assert len(task.agents) == 10


def test_other_options_make_other_spaces():
    class Told(smac_task("3m")):
        rules = Rules(obs_last_action=True)
        step_mul = 4

    assert Told.observation_space.shape == (48,)
    assert Told.max_loops == 60 * 4
    assert Told.map_name == "3m"
    assert smac_task("3m", Rules(obs_last_action=True)).observation_space.shape == (48,)


def test_a_subclass_keeps_what_its_parent_defines():
    class Short(smac_task("3m")):
        max_loops = 80
        map_name = "Other"

    class Shared(Short):
        shares_state = True

    assert (Shared.max_loops, Shared.map_name) == (80, "Other")
    assert row_space(Shared)["state"] is Shared.state_space


def test_the_tasks_of_scenarios_are_pickled_by_name():
    task = resolve("2s3z")
    assert pickle.loads(pickle.dumps(task)) is task


def test_no_such_scenario():
    with pytest.raises(ConfigError, match="no scenario '4m'; SMAC has 3m, 8m"):
        smac_task("4m")
    with pytest.raises(ConfigError, match=r"unknown task '4m'; did you mean '\w+'\?"):
        resolve("4m")


def test_a_class_without_a_scenario_is_no_task_yet():
    class Base(SmacTask):
        pass

    with pytest.raises(ConfigError, match="class attribute 'map_name' must be a str"):
        resolve(Base)
