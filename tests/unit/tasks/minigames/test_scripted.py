"""What scripted players do; how well they play, tests/tasks/test_minigames shows."""

from __future__ import annotations

import numpy as np
import pytest

from sc2pool.tasks.minigames.scripted import collect_minerals_and_gas
from sc2pool.tasks.minigames.towns.collect_minerals_and_gas import (
    BUILD_DEPOT,
    OBSERVATION_SIZE,
    TRAIN_SCV,
    WAIT,
)


@pytest.mark.parametrize(
    ("minerals", "coming", "action"), [(100, 0, BUILD_DEPOT), (99, 0, WAIT), (100, 1, TRAIN_SCV)]
)
def test_a_depot_is_built_when_supply_ends_and_none_is_coming(minerals, coming, action):
    observation = np.zeros(OBSERVATION_SIZE, np.float32)
    observation[[0, 3, 8]] = minerals / 1000, 2 / 20, coming / 4
    assert collect_minerals_and_gas(observation) == action
