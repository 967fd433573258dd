"""Actors and nodes of a Ray cluster that die, stop, or come back."""

from __future__ import annotations

import time
from functools import partial
from random import Random

import psutil

from chaos.arena import Arena, May
from chaos.attacks import signals
from chaos.attacks.attack import Attack, needs, soon
from tests.support.audit.victims import pid_of


def strike_actor(arena: Arena, rng: Random, name: str) -> None:
    """A signal to the process that plays the games of a node, in a moment."""
    which, delay_s, stopped_s = rng.random(), soon(rng), rng.uniform(0.0, 1.5)
    arena.beside(_strike_actor, arena, which, delay_s, name.split("+"), stopped_s)


def _strike_actor(
    arena: Arena, which: float, delay_s: float, names: list[str], stopped_s: float
) -> None:
    time.sleep(delay_s)
    instances = arena.instances()
    if not instances:
        return
    worker = pid_of(instances[int(which * len(instances))], "worker")
    actor = None if worker is None else psutil.Process(worker).parent()
    if actor is not None:
        signals.send([actor], names, stopped_s)


def lose_node(arena: Arena, rng: Random) -> None:
    """The second node dies in a moment."""
    arena.beside(_lose_node, arena, soon(rng))


def _lose_node(arena: Arena, delay_s: float) -> None:
    assert arena.cluster is not None
    time.sleep(delay_s)
    arena.cluster.lose_second()


def bring_node_back(arena: Arena, rng: Random) -> None:
    """It is started again."""
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
"""They may end the env: a cluster that dies while its pool is made is the user's to see."""
