"""`RaySC2VecEnv`: games on the nodes of a Ray cluster as one Stable-Baselines3 `VecEnv`.

It is like `SubprocSC2VecEnv` with another pool, so it works with the same wrappers and callbacks.
"""

from __future__ import annotations

from sc2pool.config import PoolConfig, is_number
from sc2pool.errors import ConfigError
from sc2pool.integration import EnvFns, GameChoice, PoolVecEnv, TaskChoice, games_of_one_row
from sc2pool.ray.cluster import connect
from sc2pool.ray.cluster_pool import ClusterPool
from sc2pool.utilities import whole_number

NODE_TIMEOUT_S = 600.0
"""Longer than the restart of a machine, which takes minutes."""


class RaySC2VecEnv(PoolVecEnv[ClusterPool]):
    """n StarCraft II games, or n environments of the user, on the nodes of a Ray cluster.

        RaySC2VecEnv("MoveToBeacon", n=64, address="auto")

    Each node plays its share in one actor. The share is proportional to the node's `sc2_game`
    resource, or to its CPUs if no node has that resource. The rest is as in `SubprocSC2VecEnv`. If
    a node dies, each of its envs gets one truncation (`sc2pool.fault` has the kind "node-lost").
    The step waits until the games play on another node, or on the same one after its return.

    Args:
        env_fns: as in `SubprocSC2VecEnv`.
        address: "auto" for a cluster with a node on this machine, or a head node's HOST:PORT. None
            for Ray's default.
        n: the number of envs on all nodes together. 8 if not given.
        num_envs: the same as n.
        task: as in `SubprocSC2VecEnv`. A class in a module must be installed on every node.
        game: as in `SubprocSC2VecEnv`, for each node. Each node finds its own installation.
        seed: makes the run repeatable on the same nodes.
        spares: how many additional games each node keeps ready.
        render_mode: `"rgb_array"` or None. `sc2pool watch --ray` shows the games in a browser.
        config: limits and policies of each node's pool. `restart` is also the policy for nodes.
        realtime: as in `SubprocSC2VecEnv`. Actions come later by the network's delay.
        step_mul: as in `SubprocSC2VecEnv`.
        max_loops: as in `SubprocSC2VecEnv`.
        node_timeout_s: how long a step waits for room for the games of a dead node.

    It has SB3's attributes, and `pool`, which has the pool's methods except `send` and `recv` for a
    part of the envs.

    Raises:
        ConfigError: no cluster answers, the cluster has too little room, a node lacks the game, the
            nodes have different versions of the game or of sc2pool, or a keyword is wrong.
        UserCodeError: a function of `env_fns` raised.
        NodeLostError: at a step or reset, after `node_timeout_s`.
        CrashLoopError: at a step or reset, if the games of a node keep dying.
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
