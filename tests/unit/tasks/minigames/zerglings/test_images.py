"""The fights as images: who is drawn where, and how bright."""

from __future__ import annotations

import numpy as np

from sc2pool.tasks.minigames.zerglings.defeat_zerglings_and_banelings import (
    ENEMY_BANELINGS,
    ENEMY_ZERGLINGS,
    OWN_MARINES,
)
from sc2pool.tasks.minigames.zerglings.images import (
    DefeatZerglingsAndBanelingsImage,
    FindAndDefeatZerglingsImage,
)


def _middle_of(plane: np.ndarray) -> tuple[float, float]:
    """Mean column and row of what is drawn."""
    rows, columns = np.nonzero(plane)
    return columns.mean(), rows.mean()


def test_the_battle(unit, begin):
    image = begin(
        DefeatZerglingsAndBanelingsImage,
        unit(OWN_MARINES, 22, 30, tag=1, health=22.5),
        unit(ENEMY_ZERGLINGS, 34, 30, tag=2, health=35),
        unit(ENEMY_BANELINGS, 22, 39, tag=3, health=30),
    ).observe()
    assert image[0].max() == 127
    assert image[1].max() == image[2].max() == 255
    assert _middle_of(image[0]) == (31.5, 31.5)
    assert _middle_of(image[1])[0] > 45, "to the right"
    assert _middle_of(image[2])[1] < 21, "above"
    assert (image[3] > 0).mean() == 32 * 26 / 64**2


def test_the_search(unit, begin):
    task = begin(FindAndDefeatZerglingsImage, unit(OWN_MARINES, 32, 30, tag=1, health=45))
    marines, zerglings, ages = task.observe()
    assert marines.max() == 255
    assert not zerglings.any()
    assert ages[31, 31] == 0, "here it was just seen"
    assert ages[31, 8] == 255, "to the left it was not"
    assert ages[0, 0] == 0, "outside of the area"
