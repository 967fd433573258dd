"""Starts, calls and replaces a pool's actors, the Ray processes that have the pool's games.

If a call of any kind finds an actor dead, the actor is replaced immediately, on a node with room.
If too many actors die, or if no node has room in time, the pool fails, and all its actors are
ended. Only this module replaces actors.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import ray
from ray.exceptions import RayError

from sc2pool import PoolStats
from sc2pool.config import RestartPolicy
from sc2pool.errors import (
    ClosedError,
    ConfigError,
    CrashLoopError,
    FaultKind,
    ForkedPoolError,
    NodeLostError,
    Phase,
)
from sc2pool.integration import merge_stats, restarts_exceeded, warn_of_owner
from sc2pool.pool.statistics import PoolEvent
from sc2pool.ray.cluster import ANSWER_S, connection
from sc2pool.ray.equal_nodes import check_agreement
from sc2pool.ray.node_games import LostError, NoPlaceError, Reborn, RemoteGames, Reply
from sc2pool.utilities import Deadline

log = logging.getLogger(__name__)

_CLOSE_S = 4.0
"""Time limit for all actors together to end their games by themselves."""
_STATS_TIMEOUT_S = 2.0
"""Time limit for all actors together to send their statistics."""
_BROUGHT_S = 0.2
"""Time limit for receiving statistics that an actor has already sent."""

ResetArguments = tuple[Any, ...]
"""The arguments of `NodeGames.reset`."""


class Actors:
    """Starts the games of all actors. `every` has all actors, in the order of their envs.

    If an actor is replaced between two steps, `begin` returns the arguments of the new actor's
    reset, or None for no reset. The games of a dead actor wait up to `node_timeout_s` for a node
    with room. If a node lacks room or the game, or if the nodes differ in game, task or package,
    the constructor ends all actors, and raises `ConfigError`.
    """

    def __init__(
        self,
        every: Sequence[RemoteGames],
        restart: RestartPolicy,
        node_timeout_s: float,
        begin: Callable[[RemoteGames], ResetArguments | None],
    ) -> None:
        self._every = every
        self._restart = restart
        self._node_timeout_s = node_timeout_s
        self._begin = begin
        self._owner_pid = os.getpid()
        self._connection = connection()
        self.closed = False
        self._failed = ""
        self._losses: list[PoolEvent] = []
        self._recoveries_s: list[float] = []
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def __iter__(self) -> Iterator[RemoteGames]:
        return iter(self._every)

    def _start(self) -> None:
        deadline = Deadline.after(ANSWER_S)
        places = [games.create(games.node) for games in self._every]
        for games, place in zip(self._every, places, strict=True):
            try:
                games.placed(place, deadline)
            except NoPlaceError:
                raise ConfigError(
                    f"node {games.node.name} has not started {games.games} games within "
                    f"{ANSWER_S:g} s: end other games there, or play fewer games"
                ) from None
            except LostError as error:
                raise ConfigError(f"node {games.node.name} starts no process: {error}") from error
        references = [games.submit("open", games.keywords) for games in self._every]
        errors: list[Exception] = []
        for games, reference in zip(self._every, references, strict=True):
            try:
                games.about = games.result(reference)
            except Exception as error:  # await all pools; a pool cannot be closed while it opens
                errors.append(error)
        if errors and isinstance(errors[0], LostError):
            words = f"a node died while its games were launched: {errors[0]}"
            raise ConfigError(words) from errors[0]
        if errors:
            raise errors[0]
        self._check_agreement()
        for games in self._every:
            games.count_anew()

    def _check_agreement(self) -> None:
        """Raise an error unless all nodes have the same game, task and package."""
        check_agreement([(f"node {one.node.name}", one.about.played) for one in self._every])

    def replies(
        self,
        references: Sequence[Any],
        phase: Phase,
        begin: Callable[[RemoteGames], ResetArguments | None],
    ) -> list[Reply]:
        """The reply of each actor, or, if an actor has died, the new actor's first reply.

        `references` has None for an actor that was just replaced. `begin` returns the arguments
        that reset a new actor. Fault reports contain `phase`. Raises `NodeLostError` if no node has
        room in time, and `CrashLoopError` if the actors of a node keep dying.
        """
        replies: dict[int, Reply] = {}
        lost: list[tuple[RemoteGames, LostError]] = []
        with self._failing():
            for games, reference in zip(self._every, references, strict=True):
                if games.reborn is None:
                    try:
                        replies[games.index] = games.result(reference)
                    except LostError as error:
                        lost.append((games, error))
            for games, why in lost:
                self._revive(games, why, phase, begin)
        return [
            replies[games.index] if games.reborn is None else games.reborn.reply
            for games in self._every
        ]

    def ask(self, games: RemoteGames, method: str, *arguments: Any) -> Any:
        """Call a method of an actor's pool. If the actor dies, call the new actor's pool."""
        while True:
            try:
                return games.call("call", method, *arguments)
            except LostError as error:
                with self._failing():
                    self._revive(games, error, Phase.IDLE, self._begin)

    def _revive(
        self,
        games: RemoteGames,
        error: LostError,
        phase: Phase,
        begin: Callable[[RemoteGames], ResetArguments | None],
    ) -> None:
        """Replace a dead actor, on any node with room, and begin episodes in its envs."""
        lost_at_s = time.monotonic()
        where, deadline = games.node.name, Deadline.after(self._node_timeout_s)
        try:
            while True:
                self.check_usable()
                self._count_loss(games, error, phase)
                log.warning(
                    "%s; its %d games start again, on a node that gets room within %.0f s",
                    error,
                    games.n,
                    self._node_timeout_s,
                )
                try:
                    games.place_anew(deadline)
                    games.about = games.call("open", games.keywords)
                    self._check_agreement()
                    games.count_anew()
                    for (env, name), value in games.attributes.items():
                        games.call("call", "set_attr", [env], name, value)
                    if (arguments := begin(games)) is not None:
                        reply = games.call("reset", *arguments)
                        fault = {
                            "kind": str(FaultKind.NODE_LOST),
                            "phase": str(phase),
                            "detail": str(error),
                            "instance": None,
                            "recovery_s": time.monotonic() - lost_at_s,
                            "fault_report": None,
                            "node": where,
                        }
                        games.reborn = Reborn(fault, reply)
                except LostError as again:
                    error = again
                else:
                    self._recoveries_s.append(time.monotonic() - lost_at_s)
                    self._update_stats([games])
                    return
        except NoPlaceError:
            raise NodeLostError(
                f"{error}; no node had room for {games.games} games within "
                f"{self._node_timeout_s:g} s (node_timeout_s): start the node again, or another"
            ) from error
        except BaseException:
            games.kill()  # the new actor may lack its pool, attributes or episodes
            raise

    def _count_loss(self, games: RemoteGames, error: LostError, phase: Phase) -> None:
        now_s = time.monotonic()
        games.losses_s.append(now_s)
        kind = str(FaultKind.NODE_LOST)
        self._losses += [
            PoolEvent("fault", now_s, f"env {env}", -1, kind, str(phase), str(error))
            for env in range(games.first, games.first + games.n)
        ]
        of_all = [at_s for one in self._every for at_s in one.losses_s]
        why = restarts_exceeded(self._restart, len(self._every), games.losses_s, of_all, now_s)
        if why is not None:
            raise CrashLoopError(f"the games of a node keep dying ({why}); the last time: {error}")

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """If the block raises an `Exception`, end the pool and its games for good."""
        try:
            yield
        except Exception as error:
            if not self._failed:
                self._failed = str(error)
                self._end()
            raise

    def check_usable(self) -> None:
        """Raise `ClosedError` if the pool is closed or has failed, or if Ray was shut down.

        Raises `ForkedPoolError` if this process was forked from the pool's process.
        """
        if os.getpid() != self._owner_pid:
            raise ForkedPoolError(
                f"this pool belongs to process {self._owner_pid}; in process {os.getpid()}, which "
                "was forked from it, no call of Ray returns"
            )
        if self.closed:
            raise ClosedError("the pool is closed")
        if self._failed:
            raise ClosedError(f"the pool has failed: {self._failed}")
        if not self._connected:
            raise ClosedError("Ray was shut down, and the games with it: make another env")

    @property
    def _connected(self) -> bool:
        """True unless this process was forked, or `ray.shutdown()` has ended the actors.

        If the result is False, a Ray call would connect to Ray again, or never return.
        """
        return os.getpid() == self._owner_pid and bool(connection() == self._connection)

    def stats(self) -> PoolStats:
        """The actors' merged statistics; `merge_stats` documents which figures are approximate."""
        if self._connected:
            self._update_stats(self._every)
        parts = [(one.node.name, one.stats) for one in self._every if one.stats is not None]
        past = [stats for games in self._every for stats in games.past]
        return merge_stats(parts, past, self._losses, self._recoveries_s)

    @staticmethod
    def _update_stats(some: Sequence[RemoteGames]) -> None:
        """Update the statistics of these actors. A slow actor keeps its old statistics."""
        with suppress(RayError):
            references = [games.submit("call", "stats") for games in some]
            ray.wait(references, num_returns=len(references), timeout=_STATS_TIMEOUT_S)
            for games, one in zip(some, references, strict=True):
                with suppress(RayError):
                    games.stats = ray.get(one, timeout=_BROUGHT_S)

    def close(self) -> None:
        """End all actors within a time limit. May be called again."""
        if os.getpid() != self._owner_pid:
            warn_of_owner(self._owner_pid)
        elif not self.closed:
            self.closed = True
            self._end()

    def _end(self) -> None:
        """Let each actor close its pool, which removes the pool's files. Kill all actors."""
        if not self._connected:
            return
        asked: list[Any] = []
        for games in self._every:
            with suppress(RayError):
                if games.has_place:
                    asked.append(games.submit("close"))
        with suppress(RayError):
            if asked:
                ray.wait(asked, num_returns=len(asked), timeout=_CLOSE_S)
        for games in self._every:
            games.kill()
