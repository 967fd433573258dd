"""Arguments of `SC2VectorEnv`: which games a mask means."""

from __future__ import annotations

import pytest

from sc2pool.envs.arguments import whole_envs
from sc2pool.errors import ConfigError


def test_a_mask_holds_whole_games():
    assert whole_envs([0, 2, 3], 1) == [0, 2, 3]
    assert whole_envs([0, 1, 4, 5], 2) == [0, 2]
    assert whole_envs([3, 4, 5], 3) == [1]


@pytest.mark.parametrize("rows", [[0], [1, 2], [0, 1, 2]])
def test_a_game_in_part_is_an_error(rows):
    with pytest.raises(ConfigError, match=r"must hold all of them or none, got True for \["):
        whole_envs(rows, 2)
