"""A team's definition is checked before any game is launched."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium import spaces

from sc2pool.errors import ConfigError
from sc2pool.tasks.duels.marine_duel import MarineDuel
from sc2pool.tasks.registry import resolve
from sc2pool.tasks.teams.team_task import TeamTask, agents_of, row_space


class Pair(TeamTask):
    map_name = "3m"
    agents = ("a", "b")
    observation_space = spaces.Box(0, 1, (2,), np.float32)
    action_space = spaces.Discrete(2)
    state_space = spaces.Box(0, 1, (3,), np.float32)

    def act(self, action):
        return []

    def observe(self):
        return np.zeros((2, 2), np.float32)


@pytest.mark.parametrize("sides", [1, 2])
def test_a_row_is_what_an_agent_sees_and_the_state_if_it_is_shared(sides):
    class Team(Pair):
        players = sides

    class Shared(Team):
        shares_state = True

    assert row_space(resolve(Team)) is Pair.observation_space
    assert set(row_space(resolve(Shared))) == {"observation", "state"}
    assert Team.game_setup().participants == sides


def test_a_row_of_a_task_without_agents_is_its_observation():
    assert (agents_of(Pair), agents_of(MarineDuel)) == (2, 1)
    assert row_space(MarineDuel) is MarineDuel.observation_space


@pytest.mark.parametrize("given", [(), ("a", "a"), ["a", "b"], ("a", 1), ("", "b")])
def test_wrong_agents(given):
    class Wrong(Pair):
        agents = given

    with pytest.raises(ConfigError, match="task Wrong: agents must be a tuple of at least one"):
        resolve(Wrong)


def test_a_state_space_is_a_space():
    class Wrong(Pair):
        state_space = 5

    with pytest.raises(ConfigError, match="task Wrong: state_space must be a Space or None, got 5"):
        resolve(Wrong)


def test_a_state_without_a_space_cannot_be_shared():
    class Wrong(Pair):
        state_space = None
        shares_state = True

    with pytest.raises(ConfigError, match="shares_state is True, but the task has no state_space"):
        resolve(Wrong)
    with pytest.raises(NotImplementedError, match="Wrong has no state"):
        Wrong().state()
