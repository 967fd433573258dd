"""The task `Melee`, played to an end."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium import spaces

from sc2pool import RLBotAI
from sc2pool.tasks.melee import Melee, play_melee
from sc2pool.tasks.registry import resolve


def outcome(result: str) -> dict[str, str]:
    """The info of an episode that ended so."""
    return {"sc2pool.result": result, "sc2pool.opponent": "computer-VeryEasy"}


@pytest.mark.standin("the real game's easiest computer was not tried")
def test_the_scripted_player_beats_the_easiest_computer(play):
    for episode in play("Melee", play_melee, seeds=[0, 1]):
        assert episode[-1].terminated
        assert episode[-1].info == outcome("win")
        assert episode[-1].reward > 0.9
        assert 1.0 < sum(transition.reward for transition in episode) < 1.5


@pytest.mark.standin("the real game's easiest computer was not tried")
def test_who_does_nothing_is_beaten(play):
    (episode,) = play("Melee", lambda _: 0, seeds=[0])
    assert episode[-1].terminated
    assert episode[-1].reward == -1
    assert episode[-1].info == outcome("loss")


@pytest.mark.parametrize("task_name", ["Melee", "MeleeImage"])
def test_a_random_player_stays_in_the_space(task_name, play):
    task = resolve(task_name)
    task.action_space.seed(1)
    (episode,) = play(task_name, lambda _: task.action_space.sample(), seeds=[1], max_loops=1600)
    assert all(task.observation_space.contains(one.observation) for one in episode)
    assert len(episode) == 101
    assert [one.info for one in episode] == [{}] * 100 + [outcome("undecided")]


def test_the_last_info_of_a_bot_tells_the_result_too(play):
    class Idle(RLBotAI):
        map_name = Melee.map_name
        opponents = Melee.opponents
        action_space = Melee.action_space
        observation_space = spaces.Box(0, 1, (1,), np.float32)
        max_loops = 64

        def act(self, action):
            pass

        def observe(self):
            return np.zeros(1, np.float32)

    (episode,) = play(Idle, lambda _: 0, seeds=[0])
    assert [one.info for one in episode] == [{}] * 8 + [outcome("undecided")]
