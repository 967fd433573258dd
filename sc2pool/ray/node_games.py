"""A node's games: a pool in a Ray actor, and the driver's object that starts and calls the actor.

    RemoteGames (driver) ── a call, one array each way ──► NodeGames (node) ─► Pool ─► workers.

A node finds its own installation of the game. The actor's process imports neither torch nor
Stable-Baselines3. When this process ends, in any way, the pool's workers and games end as well. The
process ends as soon as its node's raylet (Ray's main process on the node) ends. If the process did
not end, an idle actor of a killed raylet would live on with its games until its next call (20 s in
a test with Ray 2.60). If the raylet ends, the process does not close its pool, because closing
would make a waiting call raise, as if the trainer had closed the pool.

In the driver, every wait for a node with room has a deadline. A call has no time limit, because the
node's pool has limits. But if a call takes longer than a step may take, the actor must confirm that
it is alive, which a stopped process cannot do. An exception on a node is raised in the driver with
the same type and a note that names the node. If an actor does not answer, any error from Ray
becomes `LostError`, and the actor is killed. After a `LostError` the caller needs a new actor.
"""

from __future__ import annotations

import os
import pickle
import shutil
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import ray
from ray.exceptions import ActorUnavailableError, GetTimeoutError, RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from sc2pool import PoolStats
from sc2pool.errors import ConfigError, SC2PoolError
from sc2pool.integration import make_players
from sc2pool.pool.batch import Batch
from sc2pool.pool.pool import Pool
from sc2pool.ray.cluster import GAME_RESOURCE, Node, nodes
from sc2pool.ray.equal_nodes import NodeGame
from sc2pool.utilities import Array, Deadline


@dataclass(frozen=True)
class About:
    """The description of a node's pool that the node sends, with the pool's first statistics.

    `played` must be the same on all nodes. `strict` is True if the pool checks actions. `is_task`
    is True if the envs play a task, and False if the user made the envs.
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
    """A pool on a node. Ray makes an actor of this class."""

    def __init__(self) -> None:
        self._pool: Pool | None = None
        self._folders: list[Path] = []
        end_with_node(self._folders)

    def where(self) -> str:
        """Ray's id of the node on which this actor runs."""
        return str(ray.get_runtime_context().get_node_id())

    def open(self, keywords: bytes) -> About:
        """Start the games; `keywords` are the pickled keywords of `make_players`.

        Raises `ConfigError` if a keyword is wrong, this node lacks the game, or the task has
        several learners.
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
    """When the raylet of this process ends, remove these folders, and end this process.

    The caller can append to `folders` later.
    """
    raylet_pid = os.getppid()

    def wait() -> None:
        while os.getppid() == raylet_pid:
            time.sleep(_CHECK_S)
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
        os._exit(1)

    threading.Thread(target=wait, name="end with node", daemon=True).start()


_POLL_S = 0.2
_ANSWER_S = 10.0
"""Time limit for a busy actor to answer that it is alive."""
_HEALTH = "health"
"""The concurrency group of the call that asks if an actor is alive. It has its own thread."""
_Actor = ray.remote(concurrency_groups={_HEALTH: 1})(NodeGames)
"""The actor class, made once, because Ray never deletes its data about an actor class."""


class LostError(SC2PoolError):
    """The actor, or its node, has died."""


class NoPlaceError(SC2PoolError):
    """No node had room for the actor within the deadline."""


class Reborn(NamedTuple):
    """A new actor's first reply, and the fault that ended the old actor, for the infos."""

    fault: dict[str, Any]
    reply: Reply


@dataclass(eq=False)
class RemoteGames:
    """The games of one actor.

    Attributes:
        first: The number of the actor's first env in the whole pool.
        games: The number of the actor's games, including spares.
        declared: True if the actor reserves `sc2_game` resources. This value never changes, even if
            all nodes that declare games die.
        patience_s: The time in seconds that a call may take before the actor must confirm that it
            is alive.
        about: The actor's answer when it started its games.
        losses_s: The monotonic times at which earlier actors of these games died.
        attributes: The values that `set_attr` has set, by env and name.
        newest: The actor's last reply without an error.
        reborn: The first reply of a new actor, until it is part of a batch; then None.
        stats: The newest statistics. A dead actor's statistics stay until a new actor has opened
            its pool.
        past: The last statistics of dead actors.
        has_place: True if the actor runs, so that it can be called.
    """

    index: int
    first: int
    n: int
    games: int
    keywords: bytes
    node: Node
    declared: bool
    patience_s: float
    about: About = field(init=False)
    losses_s: list[float] = field(default_factory=list)
    attributes: dict[tuple[int, str], Any] = field(default_factory=dict)
    newest: Reply | None = None
    reborn: Reborn | None = None
    stats: PoolStats | None = None
    past: list[PoolStats] = field(default_factory=list)
    has_place: bool = False
    _actor: Any = None

    @property
    def rows(self) -> slice:
        """The actor's rows in a batch of all envs."""
        return slice(self.first, self.first + self.n)

    def create(self, node: Node | None) -> Any:
        """Request the actor from Ray, on this node, or on any node with room if `node` is None.

        Returns Ray's reference, which is ready as soon as the actor runs on a node.
        """
        there = node and NodeAffinitySchedulingStrategy(node.node_id, soft=False)
        self._actor = _Actor.options(
            num_cpus=0,
            resources={GAME_RESOURCE: self.games} if self.declared else {},
            scheduling_strategy=there or "DEFAULT",
            max_restarts=0,
            max_task_retries=0,
        ).remote()
        return self._actor.where.remote()

    def placed(self, reference: Any, deadline: Deadline) -> None:
        """Wait until the actor runs on a node.

        Raises `NoPlaceError` if the actor does not run in time, and `LostError` if the node died.
        """
        self.has_place = False
        try:
            node_id = ray.get(reference, timeout=deadline.remaining_s())
        except GetTimeoutError:
            self.kill()
            raise NoPlaceError from None
        except RayError as error:
            raise self._lost(error) from error
        self.has_place = True
        self.node = next((node for node in nodes() if node.node_id == node_id), self.node)

    def count_anew(self) -> None:
        """Archive a dead actor's statistics, and use the new actor's statistics from `about`."""
        if self.stats is not None:
            self.past.append(self.stats)
        self.stats = self.about.stats

    def place_anew(self, deadline: Deadline) -> None:
        """Start a new actor on any node with room; raise `NoPlaceError` after the deadline."""
        while not deadline.expired():
            # If the actor reserves `sc2_game` resources, Ray chooses the node.
            # Any other actor gets the node with the most CPUs, because games reserve no CPUs.
            best = None if self.declared else max(nodes(), key=lambda node: node.cpus, default=None)
            if self.declared or (best is not None and best.cpus):
                with suppress(LostError):
                    return self.placed(self.create(best), deadline)
            time.sleep(_POLL_S)
        raise NoPlaceError

    def submit(self, method: str, *arguments: Any) -> Any:
        """Begin a call of a method of `NodeGames`. Returns Ray's reference to the result."""
        return getattr(self._actor, method).remote(*arguments)

    def result(self, reference: Any) -> Any:
        """Return a call's result or raise its exception; raise `LostError` if the actor is gone."""
        while True:
            try:
                return ray.get(reference, timeout=self.patience_s)
            except GetTimeoutError:
                self._require_answer()
            except RayTaskError as error:
                raise self._told(error) from error
            except RayError as error:
                raise self._lost(error) from error

    def _require_answer(self) -> None:
        try:
            asked = self._actor.where.options(concurrency_group=_HEALTH).remote()
            ray.get(asked, timeout=_ANSWER_S)
        except RayError as error:
            raise self._lost(error) from error

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method with `submit`, and return its `result`."""
        return self.result(self.submit(method, *arguments))

    def _lost(self, error: RayError) -> LostError:
        self.kill()
        if isinstance(error, ActorUnavailableError | GetTimeoutError):
            why = "they no longer answer"
        else:
            why = str(error).strip().partition("\n")[0] or type(error).__name__
        return LostError(f"the games of node {self.node.name} are gone: {why}")

    def _told(self, error: RayTaskError) -> BaseException:
        cause: object = error.cause
        if not isinstance(cause, BaseException):
            return SC2PoolError(f"node {self.node.name}: {error}")
        where = f"node {self.node.name}"
        if type(cause) is ConfigError:
            return ConfigError(f"{where}: {cause}")
        if self.first:
            where += f", where env {self.first} is env 0"
        cause.add_note(f"on {where}")
        return cause

    def kill(self) -> None:
        """Kill the actor and its games; may be called again."""
        self.has_place = False
        if self._actor is not None:
            with suppress(RayError, ValueError):
                ray.kill(self._actor, no_restart=True)
