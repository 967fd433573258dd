"""Actors and nodes of a Ray cluster that die, stop, or come back."""

from __future__ import annotations

from functools import partial
from random import Random

import psutil

from chaos.arena import Arena, May
from chaos.attacks import signals
from chaos.attacks.attack import Attack, needs, soon


def strike_actor(arena: Arena, rng: Random, name: str) -> None:
    """Send a signal, after a short delay, to the process that plays the games of a node."""
    which, delay_s, stopped_s = rng.random(), soon(rng), rng.uniform(0.0, 1.5)
    arena.beside(delay_s, _strike_actor, arena, which, name.split("+"), stopped_s)


def _strike_actor(arena: Arena, which: float, names: list[str], stopped_s: float) -> None:
    worker = arena.pid(which, "worker")
    actor = None if worker is None else psutil.Process(worker).parent()
    if actor is not None:
        signals.send([actor], names, stopped_s)


def lose_node(arena: Arena, rng: Random) -> None:
    """Kill the second node after a short delay."""
    assert arena.cluster is not None
    arena.beside(soon(rng), arena.cluster.lose_second)


def bring_node_back(arena: Arena, rng: Random) -> None:
    """Start the second node again."""
    del rng
    assert arena.cluster is not None
    arena.cluster.bring_back()


ATTACKS = {
    f"actor {name}": Attack(
        "node", partial(strike_actor, name=name), May.ENDED, needs("nodes"), weight=2.0
    )
    for name in signals.NAMES
} | {
    "node lost": Attack("node", lose_node, May.ENDED, needs("nodes")),
    "node back": Attack("node", bring_node_back, May.NOTHING, needs("nodes"), weight=2.0),
}
"""These attacks may end the env: if the cluster fails while a pool is made, an error is raised."""
