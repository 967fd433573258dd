"""The mini-game tasks: observations in their spaces; on the stand-in, scores where they belong."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from sc2pool.tasks.minigames.scores import PUBLISHED
from sc2pool.tasks.minigames.scripted import SCRIPTED
from sc2pool.tasks.minigames.towns.build_marines import BuildMarines
from sc2pool.tasks.queue_pair import Transition
from sc2pool.tasks.registry import BUILT_IN, resolve

ALWAYS_THE_SAME = {"CollectMineralsAndGas", "BuildMarines"}
"""Tasks that are played with one seed: little on their maps is random, and they take long."""
GOOD_STEPS = {"CollectMineralsAndGas", "BuildMarines"}
"""Tasks whose random player is good, as each action is a whole step of a growing town."""
LONG = {"BuildMarines", "BuildMarinesImage", "MeleeImage"}
"""Tasks that are played for many steps."""
IMAGES = [name for name in BUILT_IN if name.endswith("Image")]
TOO_GOOD = {
    "DefeatZerglingsAndBanelings": "survivors join the next wave, so good targets pay more and more"
}
"""Tasks whose scripted player beats the grandmaster by more than a fifth, each with the reason."""


@pytest.mark.standin("its rules are fitted to the published scores")
@pytest.mark.parametrize("task_name", SCRIPTED)
def test_scripted_player_scores_like_a_good_human(task_name, play):
    seeds = [0] if task_name in ALWAYS_THE_SAME else [0, 1, 2]
    episodes = play(task_name, SCRIPTED[task_name], seeds=seeds)
    scores = [sum(transition.reward for transition in episode) for episode in episodes]
    published = PUBLISHED[task_name]
    assert 0.85 * published.human <= np.mean(scores), scores
    assert task_name in TOO_GOOD or np.mean(scores) <= 1.2 * published.grandmaster, scores


@pytest.fixture(scope="module")
def at_random(play) -> Callable[[str], list[list[Transition]]]:
    """Episodes of a task that random actions play."""

    @cache
    def episodes(task_name: str) -> list[list[Transition]]:
        actions = resolve(task_name).action_space
        actions.seed(0)
        seeds = [0] if task_name in IMAGES else [0, 1]
        return play(task_name, lambda _: actions.sample(), seeds=seeds)

    return episodes


@pytest.mark.standin("its rules are fitted to the published scores")
@pytest.mark.parametrize("task_name", [name for name in SCRIPTED if name not in GOOD_STEPS])
def test_random_player_scores_no_more_than_published(task_name, at_random):
    scores = [sum(one.reward for one in episode) for episode in at_random(task_name)]
    assert max(scores) <= PUBLISHED[task_name].random_max, scores


@pytest.mark.parametrize("task_name", [name for name in (*SCRIPTED, *IMAGES) if name not in LONG])
def test_episodes(task_name, at_random):
    task = resolve(task_name)
    for first, *rest in at_random(task_name):
        assert first.reward == 0
        assert all(task.observation_space.contains(t.observation) for t in (first, *rest))
        ends = [t.terminated or t.truncated for t in rest]
        assert ends.index(True) == len(ends) - 1
        assert len(rest) <= task.max_loops // task.step_mul
        if not {"Roaches", "Zerglings"} & set(re.findall("[A-Z][a-z]+", task_name)):
            # Where the marines do not fight, they cannot all die before.
            assert len(rest) == task.max_loops // task.step_mul


class RandomPossible(BuildMarines):
    """A town whose every action is a random one of those that the mask allows.

    In short steps it never waits for the price of a barracks by chance.
    """

    step_mul = 8
    max_loops = 4800

    def on_start(self):
        super().on_start()
        self.rng = np.random.default_rng(0)

    def act(self, action):
        return super().act(self.rng.choice(np.flatnonzero(self.action_masks())))


@pytest.mark.standin("how fast a town grows is calibrated")
def test_random_possible_actions_train_marines(play):
    (episode,) = play(RandomPossible, lambda _: 0, seeds=[0])
    assert sum(transition.reward for transition in episode) >= 10
