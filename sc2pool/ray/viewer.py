"""Reads the pools of a cluster's nodes from their files, for `sc2pool top --ray` and `watch --ray`.

    On each node, a `Viewer` reads the live files of the pools in Ray's processes on this node.

Viewers only read, so they disturb no pool. Viewers listen on no port. Ray carries the viewers'
answers, so only users of the cluster get these answers. A viewer shows only the pools of its own
node. The viewer and the processes of its node have the same parent process.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from sc2pool.integration import live_files, living_runs
from sc2pool.ray.cluster import nodes

_ANSWER_S = 5.0
"""Time limit for all nodes' answers. A node that has not answered is left out until it answers."""
_FIRST_ANSWER_S = 60.0
"""Time limit for the answer of a new viewer, whose process has to start first."""
_NODES_EVERY_S = 2.0
"""Interval, in seconds, between two checks for new nodes."""


@dataclass(frozen=True)
class Seen:
    """The data that a pool's files contain.

    Attributes:
        node: The name of the pool's node.
        stats: The data and age of the pool's main file, as `live_files.read` returns them.
        files: The data and age of each other file, by the file's path in the run's folder.
    """

    node: str
    stats: tuple[dict[str, Any], float]
    files: dict[str, tuple[dict[str, Any], float]]


class Viewer:
    """Reads the live files on one node. Ray makes an actor of this class."""

    def __init__(self, node: str) -> None:
        self._node = node
        self._raylet = os.getppid()

    def read(self, *, closely: bool) -> list[Seen]:
        """Read the files that the pools have written, and ask the pools to write newer data.

        If `closely`, also read the files of curves, views and maps.
        """
        found = []
        for run, trainer in sorted(living_runs(Path(tempfile.gettempdir())).items()):
            if not self._is_here(trainer):
                continue
            with suppress(OSError):
                live_files.request(run)
            stats = live_files.read(run / live_files.POOL_FILE)
            if stats is not None:
                files = _read_details(run, stats[0]["instances"]) if closely else {}
                found.append(Seen(self._node, stats, files))
        return found

    def _is_here(self, trainer: int) -> bool:
        """True if a process belongs to this node; several nodes may share a machine."""
        with suppress(psutil.Error):
            return self._raylet in (psutil.Process(trainer).ppid(), trainer)
        return False


def _read_details(
    run: Path, instances: Sequence[dict[str, Any]]
) -> dict[str, tuple[dict[str, Any], float]]:
    """Read the curves, and each instance's view and map. Instances on one map share map data."""
    paths = [live_files.CURVE_FILE]
    for row in instances:
        paths += [
            f"{row['instance']}/{name}" for name in (live_files.VIEW_FILE, live_files.MAP_FILE)
        ]
    found = {path: seen for path in paths if (seen := live_files.read(run / path)) is not None}
    maps: dict[str, Any] = {}
    for path, seen in found.items():
        if path.endswith(live_files.MAP_FILE):
            found[path] = maps.setdefault(seen[0]["key"], seen)
    return found


class Viewers:
    """A viewer on each node of the cluster to which this process is connected."""

    def __init__(self) -> None:
        self._actors: dict[str, Any] = {}
        self._next_nodes_s = 0.0

    def read(self, *, closely: bool) -> list[Seen]:
        """Read the pools of all nodes that answer, in the order of the nodes' ids."""
        timeout_s = _FIRST_ANSWER_S if self._follow_nodes() else _ANSWER_S
        asked = {
            node_id: actor.read.remote(closely=closely) for node_id, actor in self._actors.items()
        }
        ray.wait(list(asked.values()), num_returns=len(asked), timeout=timeout_s)
        found: list[Seen] = []
        for node_id in sorted(asked):
            with suppress(RayError):
                found += ray.get(asked[node_id], timeout=0.1)
        return found

    def _follow_nodes(self) -> bool:
        """Give new nodes viewers, and drop dead nodes' viewers; return True if a node is new."""
        now_s = time.monotonic()
        if now_s < self._next_nodes_s:
            return False
        self._next_nodes_s = now_s + _NODES_EVERY_S
        alive = {node.node_id: node for node in nodes()}
        for gone in self._actors.keys() - alive.keys():
            del self._actors[gone]
        new = alive.keys() - self._actors.keys()
        for node_id in new:
            self._actors[node_id] = (
                ray.remote(Viewer)
                .options(
                    num_cpus=0,
                    max_restarts=-1,
                    scheduling_strategy=NodeAffinitySchedulingStrategy(node_id, soft=False),
                )
                .remote(alive[node_id].name)
            )
        return bool(new)
