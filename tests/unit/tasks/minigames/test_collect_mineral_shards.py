"""What CollectMineralShards shows of the shards, and whom its actions move."""

from __future__ import annotations

import numpy as np
import pytest

from sc2pool.tasks.minigames.collect_mineral_shards import (
    MINERAL_SHARDS,
    OWN_MARINES,
    CollectMineralShards,
    preferences,
)
from sc2pool.tasks.minigames.geometry import nearest_direction
from sc2pool.tasks.minigames.scripted import collect_mineral_shards


def test_preferences_leave_the_other_its_own():
    marines = np.array([[0.0, 0.0], [4.0, 0.0]])
    shards = np.array([[3.0, 0.0], [-5.0, 0.0], [-6.0, 0.0], [1.0, 0.0]])
    # Shard 0 is nearer to the first marine than two of its own, and still comes after them.
    assert preferences(marines, shards).tolist() == [[3, 1, 2, 0], [0, 3, 1, 2]]


def test_preferences_of_one_marine_go_by_distance():
    shards = np.array([[9.0, 0.0], [4.0, 0.0], [1.0, 0.0]])
    assert preferences(np.zeros((1, 2)), shards).tolist() == [[2, 1, 0]]


def test_vector(unit, begin):
    task = begin(
        CollectMineralShards,
        unit(OWN_MARINES, 10, 30, tag=1),
        unit(OWN_MARINES, 34, 30, tag=2),
        unit(MINERAL_SHARDS, 10, 36, tag=3),
        unit(MINERAL_SHARDS, 31, 26, tag=4),
    )
    first, second = task.observe().reshape(2, 11)
    assert first[:5] == pytest.approx([-1, 0, 0, 1, 6 / 24]), "its own shard first"
    assert first[7] == pytest.approx(np.hypot(21, 4) / 24), "then the other's"
    assert first[8:].tolist() == [0, 0, 1], "no third one"
    assert second[:5] == pytest.approx([1, 0, -0.6, -0.8, 5 / 24])


def test_vector_of_a_missing_marine(unit, begin):
    task = begin(CollectMineralShards, unit(OWN_MARINES, 10, 30), unit(MINERAL_SHARDS, 10, 31))
    first, second = task.observe().reshape(2, 11)
    assert first[4] < 1
    assert second.tolist() == [0, 0] + [0, 0, 1] * 3


def test_actions_move_one_marine_each(unit, begin):
    task = begin(
        CollectMineralShards, unit(OWN_MARINES, 20, 30, tag=9), unit(OWN_MARINES, 24, 30, tag=5)
    )
    task.observe()
    orders = list(task.act(np.array([2, 4])))
    assert [list(order.unit_tags) for order in orders] == [[5], [9]]
    places = [(24, 30), (20, 30)]
    targets = [order.target_world_space_pos for order in orders]
    assert [
        nearest_direction(target.x - x, target.y - y)
        for target, (x, y) in zip(targets, places, strict=True)
    ] == [2, 4]


def test_script_sends_each_to_its_own(unit, begin):
    task = begin(
        CollectMineralShards,
        unit(OWN_MARINES, 12, 30, tag=1),
        unit(OWN_MARINES, 32, 30, tag=2),
        unit(MINERAL_SHARDS, 12, 22, tag=3),
        unit(MINERAL_SHARDS, 28, 30, tag=4),
    )
    assert collect_mineral_shards(task.observe()).tolist() == [6, 4]
