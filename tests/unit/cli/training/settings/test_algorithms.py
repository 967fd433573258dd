"""Which algorithm can learn which task."""

from __future__ import annotations

import pytest
from stable_baselines3.common.base_class import BaseAlgorithm

from sc2pool.cli.training.settings.algorithms import ALGORITHMS, check_algorithm
from sc2pool.errors import ConfigError
from sc2pool.tasks.minigames.collect_mineral_shards import CollectMineralShards
from sc2pool.tasks.minigames.defeat_roaches import DefeatRoaches
from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_there_is_such_a_class(algo: str) -> None:
    assert issubclass(ALGORITHMS[algo].load_class(), BaseAlgorithm)


def test_algorithms_that_fit_their_task() -> None:
    check_algorithm("maskable-ppo", DefeatRoaches)
    check_algorithm("dqn", MoveToBeacon)
    check_algorithm("ppo", CollectMineralShards)


def test_actions_that_it_cannot_play() -> None:
    with pytest.raises(ConfigError, match=r"--algo sac plays Box actions, .* are Discrete: ppo, "):
        check_algorithm("sac", MoveToBeacon)
    with pytest.raises(ConfigError, match=r"dqn plays Discrete .* are MultiDiscrete"):
        check_algorithm("dqn", CollectMineralShards)


def test_a_task_without_masks() -> None:
    with pytest.raises(ConfigError, match=r"action_masks\(\), and MoveToBeacon has none"):
        check_algorithm("maskable-ppo", MoveToBeacon)
