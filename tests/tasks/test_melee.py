"""The task `Melee`, played to an end."""

from __future__ import annotations

import pytest

from sc2pool.tasks.melee.scripted import play_melee
from sc2pool.tasks.registry import resolve


@pytest.mark.standin("the real game's easiest computer was not tried")
def test_the_scripted_player_beats_the_easiest_computer(play):
    for episode in play("Melee", play_melee, seeds=[0, 1]):
        assert episode[-1].terminated
        assert episode[-1].reward > 0.9
        assert 1.0 < sum(transition.reward for transition in episode) < 1.5


@pytest.mark.standin("the real game's easiest computer was not tried")
def test_who_does_nothing_is_beaten(play):
    (episode,) = play("Melee", lambda _: 0, seeds=[0])
    assert episode[-1].terminated
    assert episode[-1].reward == -1


@pytest.mark.parametrize("task_name", ["Melee", "MeleeImage"])
def test_a_random_player_stays_in_the_space(task_name, play):
    task = resolve(task_name)
    task.action_space.seed(1)
    (episode,) = play(task_name, lambda _: task.action_space.sample(), seeds=[1], max_loops=1600)
    assert all(task.observation_space.contains(one.observation) for one in episode)
    assert len(episode) == 101
