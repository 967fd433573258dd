"""Which algorithm can learn which task, and the modes of self-play."""

from __future__ import annotations

from typing import Any

import pytest
from gymnasium import spaces
from stable_baselines3.common.base_class import BaseAlgorithm

from sc2pool.cli.training.algorithms import (
    ALGORITHMS,
    MODES,
    SHARED,
    check_algorithm,
    choose_self_play,
)
from sc2pool.errors import ConfigError
from sc2pool.tasks.minigames.collect_mineral_shards import CollectMineralShards
from sc2pool.tasks.minigames.defeat_roaches import DefeatRoaches
from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon
from sc2pool.tasks.opponents.snapshots import RULES


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


@pytest.mark.parametrize(
    "space", [spaces.Discrete(3, start=5), spaces.MultiDiscrete([3, 4], start=[0, 1])]
)
def test_actions_that_do_not_start_at_0(space: spaces.Space[Any]) -> None:
    """SB3 plays the numbers from 0 all the same, which are not in the space."""
    started = type("Started", (MoveToBeacon,), {"action_space": space})
    with pytest.raises(ConfigError, match=r"^the algorithms count .* of Started begin at .*[51]"):
        check_algorithm("ppo", started)


@pytest.mark.parametrize(
    ("space", "kind"),
    [
        (spaces.Text(5), "Text"),
        (spaces.Tuple([spaces.Discrete(3)]), "Tuple"),
        (spaces.Sequence(spaces.Discrete(3)), "Sequence"),
        (spaces.Graph(spaces.Box(-1, 1), None), "Graph"),
        (spaces.Dict(near=spaces.Discrete(3), far=spaces.Text(5)), "Text"),
        (spaces.Dict(near=spaces.Dict(far=spaces.Discrete(3))), "Dict"),
    ],
)
@pytest.mark.parametrize("algo", ["ppo", "dqn"])
def test_observations_that_no_algorithm_takes(
    algo: str, space: spaces.Space[Any], kind: str
) -> None:
    seen = type("Seen", (MoveToBeacon,), {"observation_space": space})
    with pytest.raises(ConfigError, match=f"those of Seen are {kind}$"):
        check_algorithm(algo, seen)


def test_observations_of_several_parts() -> None:
    space = spaces.Dict(near=spaces.Discrete(3), far=spaces.MultiBinary(5))
    check_algorithm("ppo", type("Seen", (MoveToBeacon,), {"observation_space": space}))


def test_a_task_without_masks() -> None:
    with pytest.raises(ConfigError, match=r"action_masks\(\), and MoveToBeacon has none"):
        check_algorithm("maskable-ppo", MoveToBeacon)


class Duel(MoveToBeacon):
    players = 2


def test_there_is_a_mode_for_each_rule():
    assert (SHARED, *RULES) == MODES


@pytest.mark.parametrize(
    ("given", "earlier", "mode"),
    [
        (None, None, "shared"),
        (None, "uniform", "uniform"),
        ("latest", "uniform", "latest"),
        ("shared", None, "shared"),
    ],
)
def test_a_task_of_two_players_always_has_one(given, earlier, mode):
    assert choose_self_play(given, earlier, Duel) == mode


def test_a_task_of_one_player_has_none():
    assert choose_self_play(None, None, MoveToBeacon) == ""
    with pytest.raises(ConfigError, match="--self-play latest: it needs a task of two players, an"):
        choose_self_play("latest", None, MoveToBeacon)
