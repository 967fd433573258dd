"""What a searching group remembers: what was seen, how long ago, and where to look next."""

from __future__ import annotations

import numpy as np
import pytest

from sc2pool.tasks.minigames.zerglings.search import FORGOTTEN_LOOPS, SearchMemory


@pytest.fixture
def memory(area) -> SearchMemory:
    """24 x 20 cells from (10, 20), in blocks of 4 x 4."""
    return SearchMemory(area)


def test_blocks_fill_the_area(memory):
    assert memory.shape == (5, 6)
    assert memory.middles[[0, 5, -1]].tolist() == [[12, 22], [32, 22], [32, 38]]


def test_near_blocks_are_seen_now_and_age(memory):
    assert (memory.ages() == 1).all()
    memory.note_seen(np.array([(12.0, 22.0)]), 100)
    seen = memory.ages() == 0
    assert (np.hypot(*(memory.middles[seen] - (12, 22)).T) <= 8).all()
    assert (memory.ages()[~seen] == 1).all()
    memory.note_seen(np.empty((0, 2)), 100 + FORGOTTEN_LOOPS // 2)
    assert (memory.ages()[seen] == 0.5).all()


def test_the_nearest_forgotten_block_comes_first_then_the_oldest(memory):
    memory.note_seen(np.array([(12.0, 22.0)]), 1)
    there = memory.nearest_forgotten(12, 22)
    assert np.hypot(*(there - (12, 22))) == pytest.approx(np.hypot(8, 4))
    for loop, middle in enumerate(memory.middles):
        memory.note_seen(middle[None, :], 10 * loop)
    assert memory.nearest_forgotten(32, 38).tolist() == [12, 22]


def test_ages_by_direction(memory):
    memory.note_seen(np.array([(30.0, 30.0)]), 10)
    ages = memory.ages_by_direction(22, 30)
    assert ages.shape == (8,)
    assert ages[0] < ages[4] == 1, "east was seen, west was not"
