"""Connects to a Ray cluster, lists its nodes, and checks if they have room for games.

With the resource `sc2_game`, a node declares the number of games that it can play.

    ray start --head --resources '{"sc2_game": 8}'

If a node of the cluster has this resource, games go only to nodes that have it. If no node has the
resource, games can go to any node. Requests that the cluster cannot fulfil raise `ConfigError`
within seconds. Ray itself would wait for ever, because another node may still join.
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
from ray._private.state import available_resources_per_node  # Ray's public API adds up all nodes
from ray._private.worker import global_worker
from ray.exceptions import RayError, TaskUnschedulableError
from ray.job_config import JobConfig
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from sc2pool.errors import ConfigError, NodeLostError
from sc2pool.utilities import Deadline

T = TypeVar("T")

GAME_RESOURCE = "sc2_game"
"""The name of Ray's resource for one game of StarCraft II, or of the stand-in."""
_PROBE_S = 5.0
ANSWER_S = 180.0
"""Time limit for the start of a Ray process, which imports sc2pool. The import takes seconds, or
over a minute on busy cores, because Ray's niceness of 15 gives other processes priority."""
_AGAIN_S = 0.2
_HEAD_S = 30.0
"""Time limit for the cluster's head, which normally answers within milliseconds."""
_HTTP2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes.fromhex("000000040000000000")
"""The connection preface of a gRPC client (RFC 9113, 3.4), to which a server answers."""
_connected_by: set[str | None] = set()
"""The addresses with which this process has connected. A cluster may have several addresses."""


@dataclass(frozen=True)
class Node:
    """A living node of the cluster; `node_id` is Ray's hexadecimal id.

    `name` is the node's address, followed by the host's name if the two differ. `cpus` is the
    number of CPUs that Ray has on the node. `games` is the number of games that the node declares,
    or 0. `free_games` is the number of declared games that are not reserved yet.
    """

    node_id: str
    name: str
    cpus: float
    games: float
    free_games: float = 0.0


@dataclass(frozen=True)
class Need:
    """The resources that a number of actors need, each actor on a single node."""

    name: str
    actors: int
    cpus_each: float
    games_each: int = 0


class _Job(JobConfig):
    """A Ray job whose processes import only from folders on this process's import path.

    Ray puts the working directory first on its processes' path, even if this process does not
    import from there. But the working directory may have files of another user.
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
        address: "auto" for a cluster with a node on this machine, or a head node's HOST:PORT. None
            for Ray's default: $RAY_ADDRESS, else a cluster on this machine, else a new cluster in
            this process.

    Raises:
        ConfigError: No cluster answers at the address, or this process uses another cluster.
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
    _connected_by.clear()  # a process may connect to one cluster after another
    _connected_by.add(address)


def connection() -> Any:
    """A value that identifies this process's current connection to Ray; None if not connected."""
    return global_worker.current_cluster_and_job if ray.is_initialized() else None


def _probe(address: str | None) -> None:
    """Raise `ConfigError` if no gRPC server answers; Ray would try for ever, or end the process."""
    if address in (None, "auto"):
        try:
            address = canonicalize_bootstrap_address(address)
        except (ConnectionError, ValueError) as error:  # ValueError if $RAY_ADDRESS is wrong
            raise _no_cluster(address, error) from error
        if address is None:
            return  # Ray will start a cluster, or report that none exists
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        raise ConfigError(f'the address of a Ray cluster is "auto" or HOST:PORT, got {address!r}')
    try:
        with socket.create_connection((host, int(port)), timeout=_PROBE_S) as connection:
            connection.sendall(_HTTP2_PREFACE)
            with suppress(ConnectionResetError):  # raised if a TLS server resets the connection
                connection.recv(1)
    except (OSError, UnicodeError) as error:  # UnicodeError if the host name is wrong
        raise ConfigError(f"no Ray cluster answers at {address}: {error}") from error


def _no_cluster(address: str | None, error: Exception) -> ConfigError:
    return ConfigError(
        f"no Ray cluster at {address!r}: {error}; start one with `ray start --head "
        f"--resources '{{\"{GAME_RESOURCE}\": 8}}'`"
    )


def answered(call: Callable[[], T]) -> T:
    """The result of a Ray call to the cluster's head. Ray has no time limit for calls to the head.

    Raises `NodeLostError` if the call has not returned in time.
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
    """The cluster's living nodes; raises `NodeLostError` if the head does not answer."""
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
    """The result of a call on each of these nodes, in a Ray process. Dead nodes are left out.

    Raises `ConfigError` if a call fails or does not return, for example if a module is missing.
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
            # Ray needs some seconds to notice a node that has just joined or died.
            if deadline.expired():
                raise ConfigError(f"node {node.name} takes no work: {error}") from error
            time.sleep(_AGAIN_S)
            if node.node_id in {one.node_id for one in nodes()}:
                asked.append((node, ask(node)))
        except RayError as error:
            raise ConfigError(f"node {node.name} gives no answer: {error}") from error
    return found


def declares_games(alive: Sequence[Node]) -> bool:
    """True if any node declares a number of games, so that games go only to such nodes."""
    return any(node.games for node in alive)


def resources_of(games: int, alive: Sequence[Node]) -> dict[str, float]:
    """The `resources` that an actor requests from Ray to play this many games."""
    return {GAME_RESOURCE: float(games)} if declares_games(alive) else {}


def check_room(alive: Sequence[Node], *needs: Need) -> None:
    """Check that all actors fit on the nodes, assuming that the nodes are otherwise idle.

    Raises `ConfigError` if the actors do not fit; the message lists each node's resources.
    """
    declared = declares_games(alive)
    left = [[node.cpus, node.games if declared else math.inf] for node in alive]
    for need in needs:  # actors with games come first, because fewer nodes have games
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
