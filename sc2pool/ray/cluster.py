"""The Ray cluster that games are played on: connecting to it, its nodes, whether it has room.

A node says how many games it can play by the resource `sc2_game`:

    ray start --head --resources '{"sc2_game": 8}'

Rules: if one node of a cluster has this resource, games go only where it is; if none has, they go
anywhere. What a cluster cannot do is a `ConfigError` within seconds, where Ray itself would wait
for ever for a node that may still come.
"""

from __future__ import annotations

import math
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import ray
from ray._private.services import canonicalize_bootstrap_address
from ray._private.state import available_resources_per_node  # public only for the whole cluster
from ray._private.worker import global_worker
from ray.exceptions import RayError, TaskUnschedulableError
from ray.job_config import JobConfig
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from sc2pool.deadline import Deadline
from sc2pool.errors import ConfigError, NodeLostError

T = TypeVar("T")

GAME_RESOURCE = "sc2_game"
"""One game of StarCraft II, or of the stand-in."""
_PROBE_S = 5.0
ANSWER_S = 180.0
"""A process of Ray's starts and imports sc2pool in some seconds; where the cores are full, in more
than a minute: its niceness is 15, which gives way to all else."""
_AGAIN_S = 0.2
_HEAD_S = 30.0
"""For the cluster's head to answer; it does within milliseconds."""
_HTTP2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes.fromhex("000000040000000000")
"""The connection preface of a gRPC client (RFC 9113, 3.4): the server answers with its settings."""
_connected_by: set[str | None] = set()
"""Addresses that this process has connected by: a cluster may be known by several names."""


@dataclass(frozen=True)
class Node:
    """A node of the cluster that is alive.

    Attributes:
        node_id: Ray's id, hexadecimal.
        name: its address, and its host's name if that is another.
        cpus: how many CPUs Ray has there.
        games: how many games it can play; 0 if it does not say.
        free_games: how many of those games can still be started; the others are reserved.
    """

    node_id: str
    name: str
    cpus: float
    games: float
    free_games: float = 0.0


@dataclass(frozen=True)
class Need:
    """The resources that some actors take of a cluster; each is on one node as a whole."""

    name: str
    actors: int
    cpus_each: float
    games_each: int = 0


class _Job(JobConfig):
    """A job whose processes import nothing from a folder that this process would not import from.

    Ray puts the working directory first on their path, even if this process has not got it on its
    own; what lies there may be another user's.
    """

    _py_driver_sys_path: list[str]

    def _serialize(self) -> Any:
        importable = {os.path.realpath(folder) for folder in sys.path}
        self._py_driver_sys_path = [
            folder for folder in self._py_driver_sys_path if os.path.realpath(folder) in importable
        ]
        return super()._serialize()


def connect(address: str | None = None) -> None:
    """Connect this process to a cluster, unless it is connected already.

    Args:
        address: "auto" for a cluster with a node on this machine, or a head node's HOST:PORT; None
            as Ray does it: $RAY_ADDRESS, a cluster on this machine, or a new one in this process.

    Raises:
        ConfigError: no cluster answers there; or this process is in another one.
    """
    if ray.is_initialized():
        here = ray.get_runtime_context().gcs_address
        if address not in (None, "auto", here, *_connected_by):
            raise ConfigError(
                f"this process is already connected to the Ray cluster at {here}, not to {address}"
            )
        return
    if not isinstance(address, str | None):
        raise ConfigError(f'the address of a Ray cluster is "auto" or HOST:PORT, got {address!r}')
    _probe(address)
    try:
        ray.init(address=address, job_config=_Job(), log_to_driver=False, logging_level="warning")
    except (OSError, ValueError, RuntimeError, RayError) as error:
        raise _no_cluster(address, error) from error
    _connected_by.clear()  # a process may go from one cluster to another
    _connected_by.add(address)


def connection() -> Any:
    """What tells this process's connection to Ray from an earlier one; None if there is none."""
    return global_worker.current_cluster_and_job if ray.is_initialized() else None


def _probe(address: str | None) -> None:
    """Raise if no gRPC server answers there, because Ray would try for ever, or end the process."""
    if address in (None, "auto"):
        try:
            address = canonicalize_bootstrap_address(address)
        except (ConnectionError, ValueError) as error:  # ValueError: of $RAY_ADDRESS
            raise _no_cluster(address, error) from error
        if address is None:
            return  # Ray will start a cluster, or say that there is none
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        raise ConfigError(f'the address of a Ray cluster is "auto" or HOST:PORT, got {address!r}')
    try:
        with socket.create_connection((host, int(port)), timeout=_PROBE_S) as connection:
            connection.sendall(_HTTP2_PREFACE)
            with suppress(ConnectionResetError):  # it speaks TLS; a stopped process says nothing
                connection.recv(1)
    except (OSError, UnicodeError) as error:  # UnicodeError: no host can have such a name
        raise ConfigError(f"no Ray cluster answers at {address}: {error}") from error


def _no_cluster(address: str | None, error: Exception) -> ConfigError:
    return ConfigError(
        f"no Ray cluster at {address!r}: {error}; start one with `ray start --head "
        f"--resources '{{\"{GAME_RESOURCE}\": 8}}'`"
    )


def answered(call: Callable[[], T]) -> T:
    """The result of a call of Ray's that asks the cluster's head and has no time limit of its own.

    Raises:
        NodeLostError: it has not returned in time.
    """
    result: Future[T] = Future()

    def run() -> None:
        try:
            result.set_result(call())
        except BaseException as error:
            result.set_exception(error)

    threading.Thread(target=run, name="ask the head", daemon=True).start()
    try:
        return result.result(_HEAD_S)
    except TimeoutError:
        raise NodeLostError(
            f"the head of the Ray cluster has not answered within {_HEAD_S:g} s"
        ) from None


def nodes() -> list[Node]:
    """The nodes that are alive, of the cluster that this process is connected to.

    Raises:
        NodeLostError: the cluster's head does not answer.
    """
    free, every = answered(lambda: (available_resources_per_node(), ray.nodes()))
    found = []
    for node in every:
        if node["Alive"]:
            address, host = node["NodeManagerAddress"], node["NodeManagerHostname"]
            found.append(
                Node(
                    node["NodeID"],
                    address if host in (address, "") else f"{address} ({host})",
                    node["Resources"].get("CPU", 0.0),
                    node["Resources"].get(GAME_RESOURCE, 0.0),
                    free.get(node["NodeID"], {}).get(GAME_RESOURCE, 0.0),
                )
            )
    return found


def on_each(
    chosen: Sequence[Node], call: Callable[..., Any], *arguments: Any
) -> list[tuple[Node, Any]]:
    """The result of a call in a process of each of these nodes that is alive.

    Raises:
        ConfigError: it raised, as if a module of the user is missing there; or no answer came.
    """
    remote = ray.remote(num_cpus=0, max_retries=0)(call)

    def ask(node: Node) -> Any:
        there = NodeAffinitySchedulingStrategy(node.node_id, soft=False)
        return remote.options(scheduling_strategy=there).remote(*arguments)

    deadline = Deadline.after(ANSWER_S)
    asked = [(node, ask(node)) for node in chosen]
    found = []
    while asked:
        node, reference = asked.pop(0)
        try:
            found.append((node, ray.get(reference, timeout=deadline.remaining_s())))
        except TaskUnschedulableError as error:
            # It has just joined, or has died; either takes Ray some seconds to know everywhere.
            if deadline.expired():
                raise ConfigError(f"node {node.name} takes no work: {error}") from error
            time.sleep(_AGAIN_S)
            if node.node_id in {one.node_id for one in nodes()}:
                asked.append((node, ask(node)))
        except RayError as error:
            raise ConfigError(f"node {node.name} gives no answer: {error}") from error
    return found


def declares_games(alive: Sequence[Node]) -> bool:
    """True if a node says how many games it can play, so that games go only to nodes that do."""
    return any(node.games for node in alive)


def resources_of(games: int, alive: Sequence[Node]) -> dict[str, float]:
    """What an actor with this many games asks Ray for, as its `resources`."""
    return {GAME_RESOURCE: float(games)} if declares_games(alive) else {}


def check_room(alive: Sequence[Node], *needs: Need) -> None:
    """Check that all actors fit on the nodes, if nothing else ran there.

    Raises:
        ConfigError: they do not; says what each node has.
    """
    declared = declares_games(alive)
    left = [[node.cpus, node.games if declared else math.inf] for node in alive]
    for need in needs:  # the games first: they fit on fewer nodes
        for placed in range(need.actors):
            room = (
                node for node in left if node[0] >= need.cpus_each and node[1] >= need.games_each
            )
            node = next(room, None)
            if node is None:
                raise ConfigError(_too_little(alive, needs, need, placed, declared))
            node[0] -= need.cpus_each
            node[1] -= need.games_each


def _too_little(
    alive: Sequence[Node], needs: Sequence[Need], lacking: Need, placed: int, declared: bool
) -> str:
    wanted = ", ".join(
        f"{need.actors} {need.name} with {need.cpus_each:g} CPUs"
        + (f" and {need.games_each} {GAME_RESOURCE}" if declared and need.games_each else "")
        + " each"
        for need in needs
        if need.actors
    )
    found = "; ".join(
        f"{node.name}: {node.cpus:g} CPUs"
        + (f", {node.games:g} {GAME_RESOURCE}" if declared else "")
        for node in alive
    )
    return (
        f"the Ray cluster has room for {placed} of {lacking.actors} {lacking.name}; "
        f"needed: {wanted}; there are: {found}. Add nodes, or ask for less"
    )
