"""The driver's end of one node's games: starts the actor, calls it, knows when it is dead.

Rules: every wait for a place has a deadline. A call lasts as long as it has to, because the node's
pool keeps its own limits, but after the limit of a step the actor must answer something else, which
a stopped process does not. What a node raises is raised here as what it was, with a note that names
the node. Whatever Ray says of an actor that does not answer becomes one error, `LostError`, and the
actor is killed: there is one way to go on, a new one.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import ray
from ray.exceptions import ActorUnavailableError, GetTimeoutError, RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from sc2pool.deadline import Deadline
from sc2pool.errors import ConfigError, SC2PoolError
from sc2pool.pool.statistics.stats import PoolStats
from sc2pool.ray.cluster import GAME_RESOURCE, Node, nodes
from sc2pool.ray.pool.node_games import About, NodeGames, Reply

_POLL_S = 0.2
_ANSWER_S = 10.0
"""For an actor that works to say that it is there."""
_HEALTH = "health"
"""The concurrency group of that question: another thread than the games' answers it."""
_Actor = ray.remote(concurrency_groups={_HEALTH: 1})(NodeGames)
"""Made once: Ray keeps what it knows of each such class for ever."""


class LostError(SC2PoolError):
    """The actor, or its node, has died."""


class NoPlaceError(SC2PoolError):
    """No node had room for the actor within the deadline."""


class Reborn(NamedTuple):
    """The first reply of an actor that was made again, and the fault before it, for the infos."""

    fault: dict[str, Any]
    reply: Reply


@dataclass(eq=False)
class RemoteGames:
    """The games of one actor.

    Attributes:
        index: of the actor, from 0.
        first: its first env in the whole pool.
        n: how many envs it has.
        games: how many games, spares included.
        keywords: see `NodeGames.open`.
        node: where it plays.
        declared: whether it reserves games; fixed at construction, also if all nodes that declare
            some have died.
        patience_s: how long a call may take before the actor is asked whether it is there.
        about: what it said of itself when its games were open.
        losses_s: monotonic times of the deaths of the actors before this one.
        attributes: what `set_attr` set, by env and name.
        newest: the last good reply.
        reborn: what a new actor has brought that no batch has shown; None if there is none.
        stats: the newest statistics, also of one that has died, until another begins.
        past: the last statistics of those that died.
        has_place: whether the actor runs, so that it can be asked.
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
        """Its rows in a batch of all envs."""
        return slice(self.first, self.first + self.n)

    def create(self, node: Node | None) -> Any:
        """Ask Ray for the actor.

        Args:
            node: where it shall be; None for wherever there is room.

        Returns:
            A reference that is ready once it has its place.
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
        """Wait until the actor has its place.

        Raises:
            NoPlaceError: it has none within the deadline.
            LostError: the node died meanwhile.
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
        """Begin with the first statistics of a new actor, which has said `about` itself."""
        if self.stats is not None:
            self.past.append(self.stats)
        self.stats = self.about.stats

    def place_anew(self, deadline: Deadline) -> None:
        """Make the actor again on any node that has room, or that comes to have it.

        Raises:
            NoPlaceError: there was none within the deadline.
        """
        while not deadline.expired():
            # Ray knows best where declared games have room; CPUs are not reserved for games.
            best = None if self.declared else max(nodes(), key=lambda node: node.cpus, default=None)
            if self.declared or (best is not None and best.cpus):
                with suppress(LostError):
                    return self.placed(self.create(best), deadline)
            time.sleep(_POLL_S)
        raise NoPlaceError

    def submit(self, method: str, *arguments: Any) -> Any:
        """Begin a call of `NodeGames`; returns Ray's reference to its result."""
        return getattr(self._actor, method).remote(*arguments)

    def result(self, reference: Any) -> Any:
        """The result of a call.

        Raises:
            LostError: the actor has died, or is stopped.
            Exception: what the call raised.
        """
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
        """`submit`, then `result`."""
        return self.result(self.submit(method, *arguments))

    def _lost(self, error: RayError) -> LostError:
        self.kill()
        if isinstance(error, ActorUnavailableError | GetTimeoutError):
            why = "they do not answer any more"
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
        """End the actor at once, with its games; may be called again."""
        self.has_place = False
        if self._actor is not None:
            with suppress(RayError, ValueError):
                ray.kill(self._actor, no_restart=True)
