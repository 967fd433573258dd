"""Checks that all pools of a cluster have the same game, task and package.

Each node finds its game and its packages by itself, so the nodes may differ. If pools differ, an
error before the first step names the nodes. Both versions and commits of the packages are compared,
because a commit is more exact than a version.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from gymnasium import spaces

import sc2pool
from sc2pool import PoolStats
from sc2pool.errors import ConfigError
from sc2pool.integration import VecPool


@dataclass(frozen=True)
class NodeGame:
    """A pool's game, task and sc2pool package, and the spaces of one of its envs.

    `commit` is None if the commit is unknown. `task` is None if the user made the envs.
    """

    sc2pool_version: str
    commit: str | None
    game_version: str | None
    base_build: int | None
    task: str | None
    observation_space: spaces.Space[Any]
    action_space: spaces.Space[Any]

    @classmethod
    def of(cls, pool: VecPool, stats: PoolStats) -> NodeGame:
        """The game, task and package of a pool in this process; `stats` is from this pool."""
        return cls(
            sc2pool.__version__,
            installed_commit(),
            stats.game_version,
            stats.base_build,
            stats.task,
            pool.observation_space,
            pool.action_space,
        )


def check_agreement(pools: Sequence[tuple[str, NodeGame]]) -> None:
    """Raise `ConfigError` unless all pools have the same game, task and package.

    `pools` has the game of each pool and the pool's place, such as "node 10.0.0.2", for error
    messages.
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


_GIT_S = 10.0
"""Time limit for git, which may be slow on a network disk."""


def commit_of(root: Path) -> str | None:
    """The commit of a checkout, followed by "-dirty" if tracked files have changed.

    None if `root` is not a checkout, or if git is missing or fails.
    """
    if not (root / ".git").exists():  # without this check, git may use a parent folder's repository
        return None
    # Git takes no locks, because other nodes may run git in the same checkout on a network disk.
    command = ["git", "--no-optional-locks", "describe", "--always", "--dirty"]
    command += ["--abbrev=12", "--exclude=*"]
    try:
        told = subprocess.run(
            command, cwd=root, capture_output=True, text=True, check=True, timeout=_GIT_S
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return told.stdout.strip()


@cache
def installed_commit() -> str | None:
    """The commit of this process's package, computed once; None for a package from an index.

    In a checkout, git reports the commit. For `pip install git+https://…`, pip has stored the
    commit, see https://packaging.python.org/en/latest/specifications/direct-url/.
    """
    commit = commit_of(Path(sc2pool.__file__).parents[1])
    if commit is not None:
        return commit
    try:
        kept = metadata.distribution("sc2pool").read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return None
    given = json.loads(kept or "{}").get("vcs_info", {}).get("commit_id")
    return None if given is None else str(given)[:12]
