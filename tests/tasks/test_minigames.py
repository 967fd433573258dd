"""The mini-game tasks: observations in their spaces; on the stand-in, scores where they belong."""

from __future__ import annotations

import numpy as np
import pytest

from sc2pool.tasks.minigames.defeat_roaches import FIRST_WALK
from sc2pool.tasks.minigames.scores import PUBLISHED
from sc2pool.tasks.minigames.scripted import SCRIPTED
from sc2pool.tasks.registry import resolve


@pytest.mark.standin("its rules are fitted to the published scores")
@pytest.mark.parametrize("task_name", SCRIPTED)
def test_scripted_player_scores_like_a_good_human(task_name, play):
    episodes = play(task_name, SCRIPTED[task_name], seeds=[0, 1, 2, 3, 4])
    scores = [sum(transition.reward for transition in episode) for episode in episodes]
    published = PUBLISHED[task_name]
    assert 0.85 * published.human <= np.mean(scores) <= 1.2 * published.grandmaster, scores


@pytest.mark.standin("its rules are fitted to the published scores")
@pytest.mark.parametrize("task_name", SCRIPTED)
def test_random_player_scores_no_more_than_published(task_name, play):
    actions = resolve(task_name).action_space
    actions.seed(0)
    episodes = play(task_name, lambda _: actions.sample(), seeds=[0, 1])
    scores = [sum(transition.reward for transition in episode) for episode in episodes]
    assert max(scores) <= PUBLISHED[task_name].random_max, scores


@pytest.mark.parametrize("task_name", [*SCRIPTED, "MoveToBeaconImage"])
def test_an_episode(task_name, play):
    task = resolve(task_name)
    task.action_space.seed(1)
    ((first, *rest),) = play(task_name, lambda _: task.action_space.sample(), seeds=[1])
    assert first.reward == 0
    assert all(task.observation_space.contains(t.observation) for t in (first, *rest))
    ends = [t.terminated or t.truncated for t in rest]
    assert ends.index(True) == len(ends) - 1
    assert len(rest) <= task.max_loops // task.step_mul
    if task_name != "DefeatRoaches":  # there the marines may all die before
        assert len(rest) == task.max_loops // task.step_mul


def test_masks_follow_the_battle(play):
    (episode,) = play("DefeatRoaches", SCRIPTED["DefeatRoaches"], seeds=[4])
    masks = np.array([transition.action_masks for transition in episode])
    both_sides = [(t.observation[:2] > 0).all() for t in episode]
    assert (masks[:, :FIRST_WALK] == np.array(both_sides)[:, None]).all()
    assert masks[:, FIRST_WALK:].all()
