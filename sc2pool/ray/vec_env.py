"""`RaySC2VecEnv` makes one Stable-Baselines3 `VecEnv` of games on the nodes of a Ray cluster.

`RaySC2VecEnv` is `SubprocSC2VecEnv` with a `ClusterPool`, so both classes work with the same
wrappers and callbacks. A `ClusterPool` has the methods of `Pool`, but its games run on nodes.
`send(actions)` makes one call per node. `recv()` receives all replies, starts new actors in
place of the dead actors, and returns one batch in the order of the envs.

Every env gets exactly one transition for each action. If the env's actor or node dies, the
transition is a marked truncation, as after any fault, and the actor is replaced on a node with room
(see `Actors`). All nodes must have the same game and the same spaces. A game that fails is replaced
by its node's own pool, not by this module.

The pure function `spread` decides how many games each node plays. Games go to the nodes in
proportion to the nodes' room. The room of a node is its free `sc2_game` resource if any node
declares this resource, else its CPUs. A node never takes more games than it declares. Each node's
envs are consecutive rows, and the largest node has the first rows. So the same nodes always get the
same envs, even after a restart of Ray.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gymnasium import spaces
from gymnasium.error import AlreadyPendingCallError, NoAsyncCallError, ResetNeeded

from sc2pool import PoolStats
from sc2pool.config import PoolConfig, is_number
from sc2pool.errors import ConfigError, Phase
from sc2pool.integration import (
    SLOW_FACTOR,
    EnvFns,
    GameChoice,
    PoolVecEnv,
    SpaceLayout,
    TaskChoice,
    check_actions,
    games_of_one_row,
    refuse_to_travel,
    space_layout,
)
from sc2pool.pool.batch import Batch
from sc2pool.ray.actors import Actors, ResetArguments
from sc2pool.ray.batches import together, truncation
from sc2pool.ray.cluster import GAME_RESOURCE, Node, connect, declares_games, nodes
from sc2pool.ray.node_games import About, Book, RemoteGames, Reply
from sc2pool.utilities import Array, Deadline, pickle_for_worker, whole_number

_FREE_S = 3.0
"""Time limit for Ray to notice that closed games no longer use their room."""
_POLL_S = 0.1


class ClusterPool:
    """Owns n envs on the nodes of the cluster to which this process is connected.

    `keywords` are the keywords of `make_players` without `n` and `env_fns`. `env_fns` is None for a
    task. A step waits up to `node_timeout_s` for a node with room for a dead node's games.
    Raises `ConfigError` if the cluster has too little room, if a node lacks the game, or if the
    nodes differ in game, task or package.
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
            mine = pickle_for_worker({**keywords, "env_fns": fns, "n": count})
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
        """Set the seeds of the episodes from the next reset on. None lets each game choose.

        Each node has its own sequence of episodes (`EpisodeBook`), seeded with the run's seed and
        the node's number. So all rows have different episodes, and the same seed on the same nodes
        repeats the run. An actor that replaces a dead actor begins a new sequence. Only the
        first `seeded` episodes get a seed; None means all episodes.
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
        """Begin an episode in every env, in any state, and receive the first observations."""
        self._actors.check_usable()
        self._sent = None  # because the nodes drop a pending step when they reset

        def asked(games: RemoteGames, *, begun: bool = False) -> ResetArguments:
            of_rows = [None if given is None else given[games.rows] for given in (seeds, options)]
            return None if begun else self._book_of(games), *of_rows

        begun, self._book_is_new = not self._book_is_new, False
        at_rest = [games.reborn for games in self._actors]  # replies that no batch contains yet
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
            ActionError: An action is outside its space, so no node has received an action.
            AlreadyPendingCallError: The previous step has not been received.
            ResetNeeded: No episode of the task has begun.
        """
        self._actors.check_usable()
        if self._sent is not None:
            raise AlreadyPendingCallError("receive the step before you send the next one", "step")
        if not self._began:
            if self.about.is_task:
                raise ResetNeeded("call reset() before the first step")
            self.reset()
        space = self.action_space if self.about.strict else None
        actions = check_actions(space, actions, range(self.n))
        self._sent = [
            None if games.reborn else games.submit("step", actions[games.rows])
            for games in self._actors
        ]

    def recv(self) -> Batch:
        """Wait for the transitions of all envs.

        Raises:
            NodeLostError: No node has room for the games of a dead node in time.
            CrashLoopError: The actors of a node keep dying.
            NoAsyncCallError: No step is pending.
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
        """The arguments of a reset that begins the next episodes; None before the first reset."""
        return (self._book_of(games), None, None) if self._began else None

    def _together(self, replies: Sequence[Reply]) -> Batch:
        for games, reply in zip(self._actors, replies, strict=True):
            games.newest = reply
        return together(self._layout, [reply.batch for reply in replies])

    # The following methods are not called in a step.

    def action_mask(self, row: int) -> Array | None:
        """See `Pool.action_mask`."""
        games = self._games_of(row)
        if games.newest is None or games.newest.masks is None:
            return None
        return games.newest.masks[row - games.first]

    def call(self, rows: Sequence[int], operation: str, *arguments: Any) -> list[Any]:
        """See `Pool.call`. If an actor dies during the call, its successor gets the call."""
        return self._spread(rows, "call", operation, *arguments)

    def render(self, rows: Sequence[int]) -> list[Any]:
        """A rendered frame of each of these envs; see `Pool.render`."""
        return self._spread(rows, "render")

    def set_attr(self, rows: Sequence[int], name: str, value: Any) -> None:
        """Set an attribute of these envs, and again after a task, game or actor is replaced."""
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
        """Pass on the training's figures for `sc2pool watch --ray`; see `Pool.show_figures`."""
        for games in self._actors:
            games.submit("call", "show_figures", dict(figures))

    def _games_of(self, env: int) -> RemoteGames:
        if not 0 <= env < self.n:
            raise ConfigError(f"the pool's envs are 0 to {self.n - 1}, there is no {env}")
        return next(games for games in self._actors if env < games.first + games.n)

    def _spread(self, envs: Sequence[int], method: str, *arguments: Any) -> list[Any]:
        """Call a method of each pool for its own envs. Returns results in the order of `envs`."""
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
        """The merged statistics of all nodes. `merge_stats` says which figures are approximate."""
        return replace(self._actors.stats(), env_steps=self._steps)

    def games_by_node(self) -> dict[str, int]:
        """The number of envs of each node."""
        counts: Counter[str] = Counter()
        for games in self._actors:
            counts[games.node.name] += games.n
        return dict(counts)

    @property
    def game_version(self) -> str | None:
        """The version of all games; None if the envs play no games of the pool."""
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
        """End the games of all nodes within a time limit. May be called again."""
        self._actors.close()


def _room(n: int, spares: int) -> list[tuple[Node, int]]:
    """Return the result of `spread`, but wait briefly for room that Ray has not noticed yet."""
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
    """Each node that plays, with its number of envs. A node also needs room for its `spares`.

    Raises `ConfigError`, whose message has each node's room, if the nodes have too little room.
    """
    declared = declares_games(alive)
    ordered = sorted(alive, key=lambda node: (-node.games, -node.cpus, node.name, node.node_id))
    room = [node.free_games - spares if declared else node.cpus for node in ordered]
    envs = [0] * len(ordered)
    for _ in range(n):
        # This is D'Hondt's method: choose the node that would be least full with one more env.
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
        "other games there"
    )


NODE_TIMEOUT_S = 600.0
"""The default of `node_timeout_s`, longer than a machine's restart, which takes minutes."""


class RaySC2VecEnv(PoolVecEnv[ClusterPool]):
    """n StarCraft II games, or n environments of the user, on the nodes of a Ray cluster.

        RaySC2VecEnv("MoveToBeacon", n=64, address="auto")

    Each node plays its share of the games in one actor. The share is proportional to the node's
    `sc2_game` resource, or to its CPUs if no node has this resource. In all other respects this
    class is like `SubprocSC2VecEnv`. If a node dies, each of its envs gets one truncation
    (`sc2pool.fault` has the kind "node-lost"). The step waits until the games play on another node,
    or on the same node after it has come back.

    Args:
        env_fns: The same argument as in `SubprocSC2VecEnv`.
        address: "auto" for a cluster with a node on this machine, or a head node's HOST:PORT. None
            uses Ray's default.
        n: The number of envs on all nodes together; 8 if not given.
        num_envs: Another name of `n`.
        task: The task, as in `SubprocSC2VecEnv`. A class's module must be on every node.
        game: The game of each node, as in `SubprocSC2VecEnv`. Each node finds its own installation.
        seed: A number that makes the run repeatable on the same nodes.
        spares: The number of additional games that each node keeps ready.
        render_mode: `"rgb_array"` or None. `sc2pool watch --ray` shows the games in a browser.
        config: The limits and policies of each node's pool. `restart` also limits nodes' deaths.
        realtime: True for real time. The network's delay makes actions later.
        step_mul: The same argument as in `SubprocSC2VecEnv`.
        max_loops: The same argument as in `SubprocSC2VecEnv`.
        node_timeout_s: The time for which a step waits for room for a dead node's games.

    Attributes: This class has SB3's attributes, and `pool`. Unlike other pools, this pool sends and
    receives only for all envs together.

    Raises:
        ConfigError: No cluster answers, the cluster has too little room, a node lacks the game, the
            nodes have different versions of the game or of sc2pool, or a keyword is wrong.
        UserCodeError: A function of `env_fns` raised an exception.
        NodeLostError: In a step or reset, no node had room in time for a dead node's games.
        CrashLoopError: In a step or reset, the games of a node kept dying.
    """

    def __init__(
        self,
        env_fns: EnvFns = None,
        address: str | None = None,
        *,
        n: int | None = None,
        num_envs: int | None = None,
        task: TaskChoice | None = None,
        game: GameChoice = "auto",
        seed: int | None = None,
        spares: int = 0,
        render_mode: str | None = None,
        config: PoolConfig | None = None,
        realtime: bool = False,
        step_mul: int | None = None,
        max_loops: int | None = None,
        node_timeout_s: float = NODE_TIMEOUT_S,
    ) -> None:
        fns, games, task = games_of_one_row(env_fns, n, num_envs, task)
        if render_mode == "human":
            raise ConfigError(
                "render_mode='human' is for games on this machine: `sc2pool watch --ray` shows "
                "those of a cluster"
            )
        keywords = {
            "task": task,
            "game": game,
            "spares": whole_number("spares", spares, 0),
            "render_mode": render_mode,
            "config": config,
            "realtime": realtime,
            "step_mul": step_mul,
            "max_loops": max_loops,
        }
        seed = None if seed is None else whole_number("seed", seed, 0)
        if not (is_number(node_timeout_s) and node_timeout_s > 0):
            raise ConfigError(f"node_timeout_s must be a number above 0, got {node_timeout_s!r}")
        if not isinstance(config, PoolConfig | None):
            raise ConfigError(f"config must be a PoolConfig, got {config!r}")
        connect(address)
        pool = ClusterPool(keywords, games, fns, node_timeout_s)
        super().__init__(pool, seed, is_task=pool.about.is_task)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.pool!r})"
