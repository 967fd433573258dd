"""The games of one node: a pool in a Ray actor.

    driver: RemoteGames ── a call, one array each way ──► node: NodeGames ─► Pool ─► workers, games

Rules: the node finds its own installation of the game. The process imports neither torch nor
Stable-Baselines3. When it ends in any way, the pool's workers and games end too, as with any
trainer's process. It ends as soon as its node ends. Without this rule, an idle actor of a killed
raylet would live on with its games until its next call (seen for 20 s with Ray 2.60). It then ends
without closing its pool: closing would make a waiting call raise, as if the trainer had closed the
pool.
"""

from __future__ import annotations

import os
import pickle
import shutil
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import ray

from sc2pool import PoolStats
from sc2pool.integration import make_players
from sc2pool.pool.pool import Pool
from sc2pool.pool.stepping.batch import Batch
from sc2pool.ray.equal_nodes import NodeGame
from sc2pool.utilities import Array


@dataclass(frozen=True)
class About:
    """A node's description of its pool.

    Attributes:
        played: the facts that must be the same on all nodes.
        stats: the pool's first statistics.
        metadata: the envs' metadata.
        render_mode: the envs' render mode.
        strict: whether actions are checked.
        is_task: whether the envs play a task. If not, they are the user's.
    """

    played: NodeGame
    stats: PoolStats
    metadata: Mapping[str, Any]
    render_mode: str | None
    strict: bool
    is_task: bool


class Book(NamedTuple):
    """The seeds of the next episodes; see `Pool.seed`."""

    seed: Sequence[int] | None
    seeded: int | None


class Reply(NamedTuple):
    """The result of a step or a reset."""

    batch: Batch
    masks: Sequence[Array | None] | None
    """The action mask of each env; None for envs without masks."""


class NodeGames:
    """A pool on a node. Ray makes an actor of it."""

    def __init__(self) -> None:
        self._pool: Pool | None = None
        self._folders: list[Path] = []
        end_with_node(self._folders)

    def where(self) -> str:
        """Ray's id of the node."""
        return str(ray.get_runtime_context().get_node_id())

    def open(self, keywords: bytes) -> About:
        """Start the games.

        Args:
            keywords: the pickled keywords of `make_players`.

        Raises:
            ConfigError: a keyword is wrong, this node lacks the game, or the task has several
                learning players.
        """
        players = make_players(**pickle.loads(keywords))
        players.require_one_row("RaySC2VecEnv")
        self._pool = pool = players.make_pool()
        self._folders.append(pool.run_dir)
        stats = pool.stats()
        return About(
            NodeGame.of(pool, stats),
            stats,
            pool.metadata,
            pool.render_mode,
            pool.strict,
            players.is_task,
        )

    def reset(
        self,
        book: Book | None,
        seeds: Sequence[int | None] | None,
        options: Sequence[Mapping[str, Any]] | None,
    ) -> Reply:
        """Begin an episode in every env."""
        if book is not None:
            self._opened().seed(*book)
        return self._reply(self._opened().reset(seeds, options))

    def step(self, actions: Any) -> Reply:
        """Step every env."""
        self._opened().send(actions)
        return self._reply(self._opened().recv())

    def call(self, name: str, *arguments: Any) -> Any:
        """Call a method of the pool."""
        return getattr(self._opened(), name)(*arguments)

    def close(self) -> None:
        """End the games."""
        if self._pool is not None:
            self._pool.close()

    def _opened(self) -> Pool:
        assert self._pool is not None, "open comes first"
        return self._pool

    def _reply(self, batch: Batch) -> Reply:
        pool = self._opened()
        masks = [pool.action_mask(env) for env in range(pool.n)]
        return Reply(batch, None if all(mask is None for mask in masks) else masks)


_CHECK_S = 0.1


def end_with_node(folders: Sequence[Path]) -> None:
    """End this actor's process when its raylet ends.

    Args:
        folders: the folders to remove then. The caller may add to them later.
    """
    raylet_pid = os.getppid()

    def wait() -> None:
        while os.getppid() == raylet_pid:
            time.sleep(_CHECK_S)
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
        os._exit(1)

    threading.Thread(target=wait, name="end with node", daemon=True).start()
