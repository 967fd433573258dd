"""SMAC's options have SMAC's types."""

from __future__ import annotations

import pytest

from sc2pool.errors import ConfigError
from sc2pool.tasks.teams.smac.rules import Rules


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


def test_all_health_shows_the_own():
    assert Rules(obs_own_health=False).sees_own_health
    assert not Rules(obs_own_health=False, obs_all_health=False).sees_own_health
