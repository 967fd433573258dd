"""A team's transition as the rows of its env."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from sc2pool.errors import ObservationError
from sc2pool.players.rows import as_taken, rows_of
from sc2pool.tasks.duels.marine_duel import MarineDuel
from sc2pool.tasks.queue_pair import Transition
from sc2pool.tasks.teams.team_task import TeamTask


class Two(TeamTask):
    map_name = "3m"
    agents = ("a", "b")
    observation_space = spaces.Box(0, 9, (1,), np.float32)
    action_space = spaces.Discrete(2)
    state_space = spaces.Box(0, 9, (1,), np.float32)
    shares_state = True

    def act(self, action):
        return []

    def observe(self):
        return []

    async def state(self):
        return np.array([7.0], np.float32)


def split(transition: Transition, **how: Any) -> list[Transition]:
    return asyncio.run(rows_of(Two(), transition, **{"with_state": True} | how))


TEAM = Transition(np.array([[1.0], [2.0]]), 3.0, True, False, {"k": 1}, np.eye(2, dtype=bool))


def test_each_agent_gets_its_own_and_the_teams():
    for own, row in zip((1.0, 2.0), split(TEAM), strict=True):
        assert row.observation == {"observation": [own], "state": [7.0]}
        assert row[1:5] == (3.0, True, False, {"k": 1})
    assert [row.action_masks.tolist() for row in split(TEAM)] == [[True, False], [False, True]]


def test_without_the_state():
    assert [row.observation.tolist() for row in split(TEAM, with_state=False)] == [[1.0], [2.0]]


def test_without_masks():
    assert [row.action_masks for row in split(TEAM._replace(action_masks=None))] == [None, None]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"observation": np.zeros((3, 1))}, r"observe\(\) .* each of its 2 agents, got 3"),
        ({"observation": None}, r"observe\(\) .* each of its 2 agents, got None"),
        ({"observation": {"a": 1, "b": 2}}, r"each of its 2 agents, got \{'a': 1, 'b': 2\}"),
        ({"observation": np.array(1.0)}, r"each of its 2 agents, got array\(1\.\)"),
        ({"action_masks": [np.ones(2)]}, r"action_masks\(\) .* each of its 2 agents, got 1"),
    ],
)
def test_not_one_for_each(changes, message):
    with pytest.raises(ObservationError, match=message):
        split(TEAM._replace(**changes))


def test_other_tasks_have_one_row():
    task = MarineDuel()
    assert asyncio.run(rows_of(task, TEAM, with_state=True)) == [TEAM]
    assert as_taken(task, [3]) == 3
    assert as_taken(Two(), [3, 4]) == [3, 4]
