"""The pools of a cluster's nodes, read from their files, for `sc2pool top --ray` and `watch --ray`.

    node: Viewer ─► the live files of the pools of Ray's processes there ─► driver: all of them

Rules: it only reads, so no pool is disturbed, and it listens nowhere: Ray carries the answers, to
those who may join the cluster. A node's viewer shows the pools of its own node's processes, of
which it knows by their parent, which is also its own.
"""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from sc2pool.pool.machine.run_dir import living
from sc2pool.pool.report import live_files
from sc2pool.ray.cluster import nodes

_ANSWER_S = 5.0
"""For all nodes to answer; one that does not is left out until it does."""
_FIRST_ANSWER_S = 60.0
"""The same for a new viewer, whose process has to start: `top --once` asks it only once."""
_NODES_EVERY_S = 2.0
"""Poll interval for new nodes."""


@dataclass
class Seen:
    """A pool as its files show it.

    Attributes:
        node: of the cluster.
        path: the run's folder there.
        stats: see `PoolStats.as_dict`.
        age_s: how old they are.
        curves: see `History.as_dict`; None if there are none.
        views: the newest view of each instance and its age, by its number.
        maps: the maps that these views name, by their keys.
    """

    node: str
    path: str
    stats: dict[str, Any]
    age_s: float
    curves: dict[str, Any] | None = None
    views: dict[int, tuple[dict[str, Any], float]] = field(default_factory=dict)
    maps: dict[str, dict[str, Any]] = field(default_factory=dict)


class Viewer:
    """Reads the live files on one node. Ray makes an actor of it.

    Args:
        node: its name.
    """

    def __init__(self, node: str) -> None:
        self._node = node
        self._raylet = os.getppid()

    def read(self, *, closely: bool) -> list[Seen]:
        """The pools that have answered; asks all of them to keep their files fresh.

        Args:
            closely: with curves, views and maps.
        """
        found = []
        for run, trainer in sorted(living(Path(tempfile.gettempdir())).items()):
            if not self._is_here(trainer):
                continue
            with suppress(OSError):
                live_files.request(run)
            seen = live_files.read(run / live_files.POOL_FILE)
            if seen is not None:
                pool = Seen(self._node, str(run), *seen)
                if closely:
                    _read_details(run, pool)
                found.append(pool)
        return found

    def _is_here(self, trainer: int) -> bool:
        """True if a process is of this node's Ray: several nodes may share a machine."""
        with suppress(psutil.Error):
            return self._raylet in (psutil.Process(trainer).ppid(), trainer)
        return False


def _read_details(run: Path, pool: Seen) -> None:
    curves = live_files.read(run / live_files.CURVE_FILE)
    pool.curves = None if curves is None else curves[0]
    for row in pool.stats["instances"]:
        folder = run / str(row["instance"])
        view = live_files.read(folder / live_files.VIEW_FILE)
        shown = live_files.read(folder / live_files.MAP_FILE)
        if view is None or shown is None or shown[0]["key"] != view[0]["map"]:
            continue
        pool.views[row["instance"]] = view
        pool.maps[shown[0]["key"]] = shown[0]


class Viewers:
    """A viewer on each node of the cluster that this process is connected to."""

    def __init__(self) -> None:
        self._actors: dict[str, Any] = {}
        self._next_nodes_s = 0.0

    def read(self, *, closely: bool) -> list[Seen]:
        """The pools of all nodes that answer, in the order of the nodes."""
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
        """Have a viewer on each node that lives; True if one was made."""
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
