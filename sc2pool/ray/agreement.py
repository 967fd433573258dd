"""Checks that all pools of a cluster play the same: the games, the task and the package.

Each node finds its game and its packages by itself, so they may differ. Rule: pools that differ are
an error before the first step, which names the nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gymnasium import spaces

import sc2pool
from sc2pool.errors import ConfigError
from sc2pool.pool.statistics.stats import PoolStats
from sc2pool.pool.vec_pool import VecPool
from sc2pool.ray.commit import installed_commit


@dataclass(frozen=True)
class Played:
    """A pool's game, task and package.

    Attributes:
        commit: that the package there was made from; None if it tells none.
        task: its name; None for envs of the user.
        observation_space: of one env.
    """

    sc2pool_version: str
    commit: str | None
    game_version: str | None
    base_build: int | None
    task: str | None
    observation_space: spaces.Space[Any]
    action_space: spaces.Space[Any]

    @classmethod
    def of(cls, pool: VecPool, stats: PoolStats) -> Played:
        """The game, task and package of a pool of this process, which has these statistics."""
        return cls(
            sc2pool.__version__,
            installed_commit(),
            stats.game_version,
            stats.base_build,
            stats.task,
            pool.observation_space,
            pool.action_space,
        )


def check_agreement(pools: Sequence[tuple[str, Played]]) -> None:
    """Check that all pools play the same.

    Args:
        pools: where each is, in the words of an error, such as "node 10.0.0.2", and what it plays.

    Raises:
        ConfigError: two differ.
    """
    here = ("this process", sc2pool.__version__, installed_commit())
    packages = [here, *((where, one.sc2pool_version, one.commit) for where, one in pools)]
    versions = [(where, version) for where, version, _ in packages]
    commits = [(where, f"commit {commit}") for where, _, commit in packages if commit is not None]
    for facts in (versions, commits):
        if _differ(facts):
            raise ConfigError(
                f"different versions of sc2pool ({_listed(facts)}): install the same one on every "
                "node"
            )
    games = [
        (where, f"{played.game_version} (build {played.base_build})") for where, played in pools
    ]
    if _differ(games):
        raise ConfigError(
            f"the nodes play different versions of the game ({_listed(games)}): install the same "
            "one on each, or set SC2PATH to it where `ray start` is called"
        )
    (at_first, expected), *others = pools
    for where, played in others:
        for name in ("task", "observation_space", "action_space"):
            given, wanted = getattr(played, name), getattr(expected, name)
            if given != wanted:
                raise ConfigError(f"{where}: {name} is {given}, but {at_first} has {wanted}")


def _differ(facts: Sequence[tuple[str, str]]) -> bool:
    return len({fact for _, fact in facts}) > 1


def _listed(facts: Sequence[tuple[str, str]]) -> str:
    return "; ".join(f"{where}: {fact}" for where, fact in facts)
