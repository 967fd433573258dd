"""SMAC's tasks: their classes, their scenarios, and their options."""

from __future__ import annotations

import pickle
import re
from collections import Counter
from pathlib import Path
from typing import ClassVar

import pytest

import sc2standin
from sc2pool.errors import ConfigError
from sc2pool.tasks.registry import SMAC, resolve_task
from sc2pool.tasks.task import row_space
from sc2pool.tasks.teams.battle_task import SmacTask, smac_task
from sc2pool.tasks.teams.duel import smac_duel
from sc2pool.tasks.teams.scenarios import SCENARIOS, Rules
from sc2pool.tasks.teams.smacv2 import smacv2_task
from sc2standin.map_reader.real_map import read_scenario

# ---- a class with a scenario ---------------------------------------------------------------------


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
    task = resolve_task("2s3z")
    assert pickle.loads(pickle.dumps(task)) is task


def test_no_such_scenario():
    with pytest.raises(ConfigError, match="no scenario '4m'; SMAC has 3m, 8m"):
        smac_task("4m")
    with pytest.raises(ConfigError, match=r"unknown task '4m'; did you mean '\w+'\?"):
        resolve_task("4m")


def test_a_class_without_a_scenario_is_no_task_yet():
    class Base(SmacTask):
        pass

    with pytest.raises(ConfigError, match="class attribute 'map_name' must be a str"):
        resolve_task(Base)


# ---- scenarios -----------------------------------------------------------------------------------


MAPS = Path(sc2standin.__file__).parent / "maps" / "smac"


def test_every_scenario_has_a_name_in_the_registry():
    assert set(SMAC) == set(SCENARIOS) == {path.stem for path in MAPS.iterdir()}
    assert resolve_task("3m").scenario is SCENARIOS["3m"]


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_maps_have_its_units(name):
    scenario = SCENARIOS[name]
    counts = Counter()
    ids = {}
    for group in read_scenario((MAPS / f"{name}.SC2Map").read_bytes()).units:
        kind = re.sub("_(RL|Liberty)$", "", group.type.name).lower()
        counts[group.owner, kind] += group.count
        if group.owner == 1:
            ids[kind] = group.type.id
    expected = {
        (owner, kind.name.replace("_", "")): count
        for owner, groups in ((1, scenario.allies), (2, scenario.enemies))
        for kind, count in groups
    }
    assert counts == expected
    own = [ids[kind.name] for kind, _ in scenario.allies]
    assert own == list(range(own[0], own[0] + len(own)))


def test_agents_are_named_by_type():
    agents = SCENARIOS["2s3z"].agents
    assert agents == ("stalker_0", "stalker_1", "zealot_0", "zealot_1", "zealot_2")


# ---- SMAC's options ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("obs_last_action", 1, "obs_last_action must be of type bool, got 1"),
        ("move_amount", 2.5, r"move_amount must be of type int, got 2\.5"),
        ("reward_win", "200", "reward_win must be of type float, got '200'"),
        ("move_amount", 0, "move_amount must be above 0, got 0"),
        ("reward_scale_rate", -1, "reward_scale_rate must be above 0, got -1"),
    ],
)
def test_wrong_values(name, value, message):
    with pytest.raises(ConfigError, match=message):
        Rules(**{name: value})


@pytest.mark.parametrize("rules", [{}, {"reward_sparse": True}, "sparse", 3])
@pytest.mark.parametrize(
    ("make", "name"), [(smac_task, "3m"), (smac_duel, "3m"), (smacv2_task, "terran_5_vs_5")]
)
def test_what_is_no_rules(make, name, rules):
    with pytest.raises(ConfigError, match=re.escape(f"type Rules, got {rules!r}")):
        make(name, rules=rules)


def test_a_class_with_what_is_no_rules():
    with pytest.raises(ConfigError, match=r"rules must be of type Rules, got \{\}"):

        class _(smac_task("3m")):
            rules: ClassVar = {}


def test_all_health_shows_the_own():
    assert Rules(obs_own_health=False).sees_own_health
    assert not Rules(obs_own_health=False, obs_all_health=False).sees_own_health
