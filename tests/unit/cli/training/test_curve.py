"""The learning curve: a readable picture from any number of episodes."""

import numpy as np
import pytest
from matplotlib.image import imread

from sc2pool.cli.training.curve import draw_curve, references_for, rolling_mean, spread
from sc2pool.cli.training.episodes import EpisodeRow
from sc2pool.tasks.registry import BUILT_IN, GROUPS, resolve


def episodes(count: int) -> list[EpisodeRow]:
    return [EpisodeRow(240 * (k + 1), float(k % 30), 240, 0.1 * k) for k in range(count)]


def test_pictures_of_sensible_size_that_show_the_episodes(tmp_path):
    path = tmp_path / "curve.png"
    pictures = []
    for count, task in ((0, "Melee"), (1, "MoveToBeacon"), (250, "MoveToBeacon")):
        draw_curve(path, episodes(count), "a title", "a game", references_for(resolve(task)))
        pictures.append(imread(path))
        height, width = pictures[-1].shape[:2]
        assert width >= 800
        assert height >= 500
    assert not np.array_equal(*pictures[1:])
    assert [file.name for file in tmp_path.iterdir()] == ["curve.png"]


def test_published_scores_are_only_shown_for_the_task_that_they_are_of():
    """A user's task on that map may have a reward of its own, also under the task's name."""
    names = [task for task in BUILT_IN if references_for(resolve(task))]
    assert names == list(GROUPS["mini-games"])
    own = type("MoveToBeacon", (resolve("MoveToBeacon"),), {"reward": lambda _: -1.0})
    assert references_for(own) == []


def test_the_mean_begins_with_what_there_is():
    values = np.array([1.0, 3.0, 5.0, 7.0])
    assert rolling_mean(values, 2).tolist() == [1.0, 2.0, 4.0, 6.0]
    assert rolling_mean(values[:0], 2).tolist() == []


@pytest.mark.parametrize("heights", [[], [0.5], [0.5, 0.5, 0.51], [0.1, 0.13, 0.16, 0.9, 0.92]])
def test_labels_keep_their_distance_and_order(heights):
    places = spread(heights, gap=0.05)
    assert len(places) == len(heights)
    assert all(np.diff(places) > 0.05 - 1e-9)
    assert sum(places) == pytest.approx(sum(heights))


def test_labels_far_apart_stay_where_they_are():
    assert spread([0.1, 0.5, 0.9], gap=0.05) == [0.1, 0.5, 0.9]
