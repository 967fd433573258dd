"""What the pools of a cluster must have in common, and how an error names what differs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from gymnasium import spaces

import sc2pool
from sc2pool.errors import ConfigError
from sc2pool.ray import agreement
from sc2pool.ray.agreement import Played, check_agreement

PLAYED = Played(
    sc2pool.__version__,
    "1a2b3c",
    "5.0.14",
    93333,
    "MoveToBeacon",
    spaces.Box(0, 1, (2,)),
    spaces.Discrete(8),
)


@pytest.fixture(autouse=True)
def this_commit(monkeypatch):
    monkeypatch.setattr(agreement, "installed_commit", lambda: "1a2b3c")


def test_equal_pools_agree_also_if_one_tells_no_commit():
    check_agreement([("node a", PLAYED)])
    check_agreement([("node a", PLAYED), ("node b", replace(PLAYED))])
    check_agreement([("node a", PLAYED), ("node b", replace(PLAYED, commit=None))])


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"sc2pool_version": "9"}, r"versions of sc2pool \(this process: .*; node b: 9\)"),
        (
            {"commit": "4d5e6f"},
            r"different versions of sc2pool \(this process: commit 1a2b3c; .*b: commit 4d5e6f\)",
        ),
        (
            {"game_version": "4.10"},
            r"node a: 5\.0\.14 \(build 93333\); node b: 4\.10 \(build 93333",
        ),
        ({"base_build": 1}, r"different versions of the game \(.*; node b: 5\.0\.14 \(build 1\)\)"),
        ({"task": "DefeatRoaches"}, "node b: task is DefeatRoaches, but node a has MoveToBeacon"),
        ({"action_space": spaces.Discrete(4)}, r"node b: action_space is Discrete\(4\), but"),
    ],
)
def test_differences_are_named_with_their_nodes(other, words):
    with pytest.raises(ConfigError, match=words):
        check_agreement([("node a", PLAYED), ("node b", replace(PLAYED, **other))])


def test_nodes_may_have_the_same_name():
    with pytest.raises(ConfigError, match=r"node a: 5\.0\.14 .*; node a: 4\.10"):
        check_agreement([("node a", PLAYED), ("node a", replace(PLAYED, game_version="4.10"))])


def test_one_pool_must_have_the_package_of_this_process():
    with pytest.raises(ConfigError, match="different versions of sc2pool"):
        check_agreement([("node a", replace(PLAYED, sc2pool_version="9"))])
