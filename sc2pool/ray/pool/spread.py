"""Which node of a cluster plays how many games: a pure decision.

Rules: games go to the nodes in proportion to their room, which is the free `sc2_game` if any node
declares it, else the CPUs; a node takes no more games than it declares; each node's share of the
envs is one run of rows, those of the largest node first, so the same nodes give the same spread,
also after Ray was started again.
"""

from __future__ import annotations

from collections.abc import Sequence

from sc2pool.errors import ConfigError
from sc2pool.ray.cluster import GAME_RESOURCE, Node, declares_games


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
