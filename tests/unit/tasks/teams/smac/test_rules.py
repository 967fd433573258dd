"""SMAC's options have SMAC's types."""

from __future__ import annotations

import re
from typing import ClassVar

import pytest

from sc2pool.errors import ConfigError
from sc2pool.tasks.teams.smac.battle_task import smac_task
from sc2pool.tasks.teams.smac.duel import smac_duel
from sc2pool.tasks.teams.smac.rules import Rules
from sc2pool.tasks.teams.smacv2.task import smacv2_task


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
