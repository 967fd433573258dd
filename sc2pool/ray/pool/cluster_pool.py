"""A pool whose games live on the nodes of a Ray cluster, with the calls of `Pool`.

    send(actions) ─► one call per node ─► recv(): all replies, then new actors for those that died,
                                          then one batch in the order of the envs

Rules: every env gets exactly one transition for each action; if its actor or its node dies, that is
one marked truncation, as for any fault, and the actor is made again where there is room (see
`Actors`). The nodes play the same game and have the same spaces, or none plays. A node's own pool
replaces the games that fail there; nothing of that is repeated here.

Which node plays how many games is a pure decision, `spread`. Games go to the nodes in proportion to
their room, which is the free `sc2_game` if any node declares it, else the CPUs; a node takes no
more games than it declares; each node's share of the envs is one run of rows, those of the largest
node first, so the same nodes give the same spread, also after Ray was started again.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gymnasium import spaces
from gymnasium.error import AlreadyPendingCallError, NoAsyncCallError, ResetNeeded

from sc2pool.config import PoolConfig
from sc2pool.deadline import Deadline
from sc2pool.errors import ConfigError, Phase
from sc2pool.game.hang_detection import SLOW_FACTOR
from sc2pool.pool import actions as action_checks
from sc2pool.pool.ipc.pickling import for_worker
from sc2pool.pool.queues.layout import Array, SpaceLayout, space_layout
from sc2pool.pool.statistics.stats import PoolStats
from sc2pool.pool.stepping.batch import Batch
from sc2pool.pool.vec_pool import refuse_to_travel
from sc2pool.ray.cluster import GAME_RESOURCE, Node, declares_games, nodes
from sc2pool.ray.pool.actors import Actors, ResetArguments
from sc2pool.ray.pool.batches import together, truncation
from sc2pool.ray.pool.node_games import About, Book, Reply
from sc2pool.ray.pool.remote_games import RemoteGames

_FREE_S = 3.0
"""For Ray to notice that games of before, which have just been closed, have left room."""
_POLL_S = 0.1


class ClusterPool:
    """Owns n envs on the nodes of the cluster that this process is connected to.

    Args:
        keywords: those of `make_players`, without `n` and `env_fns`.
        n: envs in all.
        env_fns: a function for each env; None for a task.
        node_timeout_s: how long a step waits for room for the games of a node that died.

    Raises:
        ConfigError: the cluster has no room, a node has no such game, or the nodes disagree.
    """

    __reduce__ = refuse_to_travel

    def __init__(
        self,
        keywords: Mapping[str, Any],
        n: int,
        env_fns: Sequence[Callable[[], Any]] | None,
        node_timeout_s: float,
    ) -> None:
        self.n = self.n_rows = n
        self.rows = 1
        self._began = False
        self._sent: list[Any] | None = None
        self._book: Book | None = None
        self._book_is_new = False
        self._steps = 0
        config: PoolConfig = keywords.get("config") or PoolConfig()
        patience_s = SLOW_FACTOR * config.limits.step_s + config.limits.worker_grace_s
        spares = keywords["spares"]
        every: list[RemoteGames] = []
        first = 0
        for index, (node, count) in enumerate(_room(n, spares)):
            fns = None if env_fns is None else env_fns[first : first + count]
            mine = for_worker({**keywords, "env_fns": fns, "n": count})
            every.append(
                RemoteGames(
                    index, first, count, count + spares, mine, node, node.games > 0, patience_s
                )
            )
            first += count
        self._actors = Actors(every, config.restart, node_timeout_s, self._next_episodes)
        self.about: About = every[0].about
        self.observation_space: spaces.Space[Any] = self.about.played.observation_space
        self.action_space: spaces.Space[Any] = self.about.played.action_space
        self.metadata: Mapping[str, Any] = self.about.metadata
        self.render_mode = self.about.render_mode
        self._layout: SpaceLayout = space_layout(self.observation_space, 0)

    # Episodes.

    def seed(self, seed: int | None, seeded: int | None = None) -> None:
        """The seeds of the episodes from the next reset on; None for the game's own.

        Each node has a book of its own (see `EpisodeBook`), seeded with the run's seed and the
        node's number, so no two rows share an episode, and the same seed on the same nodes gives
        the same run. An actor that takes over for a dead one begins a new book.

        Args:
            seed: of the run.
            seeded: None to seed all episodes; a number for the first ones only.
        """
        self._actors.check_usable()
        self._book = Book(None if seed is None else [seed], seeded)
        self._book_is_new = True

    def _book_of(self, games: RemoteGames) -> Book | None:
        if self._book is None or self._book.seed is None:
            return self._book
        seeded = None if self._book.seeded is None else games.n
        return Book([*self._book.seed, games.index, len(games.losses_s)], seeded)

    def reset(
        self,
        seeds: Sequence[int | None] | None = None,
        options: Sequence[Mapping[str, Any]] | None = None,
    ) -> Batch:
        """Begin a new episode in every env, whatever it is doing, and receive them all."""
        self._actors.check_usable()
        self._sent = None  # the nodes drop it when they reset

        def asked(games: RemoteGames, *, begun: bool = False) -> ResetArguments:
            of_rows = [None if given is None else given[games.rows] for given in (seeds, options)]
            return None if begun else self._book_of(games), *of_rows

        begun, self._book_is_new = not self._book_is_new, False
        at_rest = [games.reborn for games in self._actors]  # deaths that no batch has shown
        for games in self._actors:
            games.reborn = None
        references = [games.submit("reset", *asked(games, begun=begun)) for games in self._actors]
        self._began = True
        replies = self._actors.replies(references, Phase.RESETTING, asked)
        for games, reply, before in zip(self._actors, replies, at_rest, strict=True):
            reborn, games.reborn = games.reborn or before, None
            if reborn is not None:
                for info in reply.batch.reset_infos:
                    assert info is not None
                    info["sc2pool.fault"] = reborn.fault
        return self._together(replies)

    # Steps.

    def send(self, actions: Any) -> None:
        """Send one action to each env.

        Raises:
            ActionError: an action is outside its space; nothing has been sent to any node.
            AlreadyPendingCallError: the step before has not been received.
            ResetNeeded: no episode of the task has begun.
        """
        self._actors.check_usable()
        if self._sent is not None:
            raise AlreadyPendingCallError("receive the step before you send the next one", "step")
        if not self._began:
            if self.about.is_task:
                raise ResetNeeded("call reset() before the first step")
            self.reset()
        if self.about.strict:
            actions = action_checks.check(self.action_space, actions, range(self.n))
        else:
            action_checks.count(actions, self.n)
        self._sent = [
            None if games.reborn else games.submit("step", actions[games.rows])
            for games in self._actors
        ]

    def recv(self) -> Batch:
        """Wait for the transitions of all envs.

        Raises:
            NodeLostError: games of a dead node found no room in time.
            CrashLoopError: the actors of a node keep dying.
            NoAsyncCallError: nothing is pending.
        """
        self._actors.check_usable()
        if self._sent is None:
            raise NoAsyncCallError("send actions before receiving what came of them", "step")
        replies = self._actors.replies(self._sent, Phase.STEPPING, self._next_episodes)
        self._sent = None
        self._steps += self.n
        for index, games in enumerate(self._actors):
            if games.reborn is not None:
                assert games.newest is not None, "a reset came before"
                first, masks = games.reborn.reply
                last = games.newest.batch
                made_up = truncation(self._layout, last, first, games.reborn.fault)
                replies[index] = Reply(made_up, masks)
                games.reborn = None
        return self._together(replies)

    def _next_episodes(self, games: RemoteGames) -> ResetArguments | None:
        """The reset that begins the next episodes, as an autoreset would; None before the first."""
        return (self._book_of(games), None, None) if self._began else None

    def _together(self, replies: Sequence[Reply]) -> Batch:
        for games, reply in zip(self._actors, replies, strict=True):
            games.newest = reply
        return together(self._layout, [reply.batch for reply in replies])

    # Everything beside the step path.

    def action_mask(self, row: int) -> Array | None:
        """See `Pool.action_mask`."""
        games = self._games_of(row)
        if games.newest is None or games.newest.masks is None:
            return None
        return games.newest.masks[row - games.first]

    def call(self, rows: Sequence[int], operation: str, *arguments: Any) -> list[Any]:
        """See `Pool.call`; if an actor dies during it, its successor is asked."""
        return self._spread(rows, "call", operation, *arguments)

    def render(self, rows: Sequence[int]) -> list[Any]:
        """A frame of each of these rows; see `Pool.render`."""
        return self._spread(rows, "render")

    def set_attr(self, rows: Sequence[int], name: str, value: Any) -> None:
        """Set an attribute, now and in every later task object, instance or actor of these rows."""
        self._spread(rows, "set_attr", name, value)
        for row in rows:
            games = self._games_of(row)
            games.attributes[row - games.first, name] = value

    def pause(self, envs: Iterable[int] | None = None) -> None:
        """See `Pool.pause`."""
        if self._sent is not None:
            raise AlreadyPendingCallError("receive the step before you pause the games", "step")
        self._on_nodes("pause", envs)

    def resume(self, envs: Iterable[int] | None = None) -> None:
        """See `Pool.resume`."""
        self._on_nodes("resume", envs)

    def _on_nodes(self, method: str, envs: Iterable[int] | None) -> None:
        if envs is not None:
            self._spread(list(envs), method)
            return
        self._actors.check_usable()
        for games in self._actors:
            self._actors.ask(games, method)

    def void_episodes(self) -> None:
        """See `Pool.void_episodes`."""
        self._actors.check_usable()
        for games in self._actors:
            games.submit("call", "void_episodes")

    def show_figures(self, figures: Mapping[str, float]) -> None:
        """Figures of the training, which `sc2pool watch --ray` shows; see `Pool.show_figures`."""
        for games in self._actors:
            games.submit("call", "show_figures", dict(figures))

    def _games_of(self, env: int) -> RemoteGames:
        if not 0 <= env < self.n:
            raise ConfigError(f"the pool's envs are 0 to {self.n - 1}, there is no {env}")
        return next(games for games in self._actors if env < games.first + games.n)

    def _spread(self, envs: Sequence[int], method: str, *arguments: Any) -> list[Any]:
        """Call a method of the nodes' pools for their envs among these; results in their order."""
        self._actors.check_usable()
        results: dict[int, Any] = {}
        for games in self._actors:
            own = [env for env in dict.fromkeys(envs) if self._games_of(env) is games]
            if own:
                there = [env - games.first for env in own]
                answers = self._actors.ask(games, method, there, *arguments)
                results.update(zip(own, answers or [None] * len(own), strict=True))
        return [results[env] for env in envs]

    def stats(self) -> PoolStats:
        """Counters of all nodes together; see `merge` for what an approximation is."""
        return replace(self._actors.stats(), env_steps=self._steps)

    def games_by_node(self) -> dict[str, int]:
        """How many envs each node plays."""
        counts: Counter[str] = Counter()
        for games in self._actors:
            counts[games.node.name] += games.n
        return dict(counts)

    @property
    def game_version(self) -> str | None:
        """The version that all games report; None without games."""
        return self.about.played.game_version

    @property
    def closed(self) -> bool:
        return self._actors.closed

    def __repr__(self) -> str:
        return (
            f"ClusterPool(n={self.n}, nodes={self.games_by_node()}, "
            f"game_version={self.game_version!r}, closed={self.closed})"
        )

    def close(self) -> None:
        """End the games of all nodes; bounded, and may be called again."""
        self._actors.close()


def _room(n: int, spares: int) -> list[tuple[Node, int]]:
    """See `spread`; room that is just becoming free counts, too."""
    deadline = Deadline.after(_FREE_S)
    while True:
        alive = nodes()
        try:
            return spread(n, spares, alive)
        except ConfigError:
            if sum(node.games for node in alive) < n or deadline.expired():
                raise
        time.sleep(_POLL_S)


def spread(n: int, spares: int, alive: Sequence[Node]) -> list[tuple[Node, int]]:
    """The nodes that play, and how many of the n envs each has.

    Args:
        spares: more games on each node that plays.

    Raises:
        ConfigError: the nodes have too little room; the message says how much each has.
    """
    declared = declares_games(alive)
    ordered = sorted(alive, key=lambda node: (-node.games, -node.cpus, node.name, node.node_id))
    room = [node.free_games - spares if declared else node.cpus for node in ordered]
    envs = [0] * len(ordered)
    for _ in range(n):
        # The node that is the least full with one more; D'Hondt's method.
        fits = [
            index
            for index, most in enumerate(room)
            if most > 0 and (not declared or envs[index] + 1 <= most)
        ]
        if not fits:
            raise ConfigError(_no_room(n, spares, ordered, declared=declared))
        envs[min(fits, key=lambda index: ((envs[index] + 1) / room[index], index))] += 1
    return [(node, count) for node, count in zip(ordered, envs, strict=True) if count]


def _no_room(n: int, spares: int, alive: Sequence[Node], *, declared: bool) -> str:
    wanted = f"{n} games" + (f" with spares={spares} on each node" if spares else "")
    if not declared:
        return f"the Ray cluster has no node with a CPU for {wanted}; add a node"
    found = "; ".join(
        f"{node.name}: {node.free_games:g} of {node.games:g} {GAME_RESOURCE} free" for node in alive
    )
    return (
        f"the Ray cluster has no room for {wanted} ({found}); add nodes, play fewer games, or end "
        "what else plays there"
    )
