"""Reads all pools of a Ray cluster as one pool, for `top` and `watch`.

`ClusterRun` has the interface of `Run`, which reads a pool on this machine.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from sc2pool.cli.running.runs import ANSWER_S, POLL_S, NoAnswerError
from sc2pool.errors import ConfigError
from sc2pool.utilities import require

if TYPE_CHECKING:
    from sc2pool.ray import Seen

_AGAIN_S = 0.3
"""Requests within this time share one reading of the files."""
_ALL_ANSWER_S = 1.5
"""Time for all pools to answer; a pool checks for requests once a second."""
_ENDED_AFTER_S = 10.0
"""The training counts as ended after this time without a pool."""


class ClusterRun:
    """The running pools of a cluster.

    Args:
        address: the cluster's address; see `sc2pool.ray.connect`.
        closely: whether to read views and curves, too, for calls of `read`.

    Raises:
        MissingPackageError: Ray is not installed.
        ConfigError: no cluster answers.
    """

    def __init__(self, address: str, *, closely: bool = False) -> None:
        require("--ray", "ray")
        from sc2pool.ray import Viewers, connect  # noqa: PLC0415

        connect(address)
        self._viewers = Viewers()
        self._address = address
        self._closely = closely
        self._pools: list[Seen] = []
        self._read_at_s = 0.0
        self._seen_s = time.monotonic()
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """The pools' name in messages."""
        return f"every pool of the Ray cluster at {self._address}"

    def describe(self) -> str:
        """One line that identifies the pools."""
        nodes = dict.fromkeys(pool.node for pool in self._read_pools())
        return f"the Ray cluster at {self._address}, pools on {', '.join(nodes) or 'no node yet'}"

    def ended(self) -> bool:
        """True if no pool was seen for `_ENDED_AFTER_S`."""
        return not self._read_pools() and time.monotonic() - self._seen_s > _ENDED_AFTER_S

    def poll(self) -> tuple[dict[str, Any], float] | None:
        """The merged statistics of all pools, and their age; None without pools."""
        from sc2pool.integration import merge_stats, stats_from_dict  # noqa: PLC0415

        pools = self._read_pools()
        if not pools:
            return None
        merged = merge_stats([(pool.node, stats_from_dict(pool.stats[0])) for pool in pools])
        return merged.as_dict(), max(pool.stats[1] for pool in pools)

    def first_poll(self) -> dict[str, Any] | None:
        """Wait for the pools' answers, and return the merged statistics.

        Raises:
            NoAnswerError: pools are running, but have not answered in time.
            ConfigError: no pool is running.
        """
        self._read_pools()  # before the clock starts, because a node's viewer takes long to start
        began_s = time.monotonic()
        while time.monotonic() - began_s < ANSWER_S:
            seen = self.poll()
            # A file written for an earlier reader is older than this call.
            waited_s = time.monotonic() - began_s
            if seen is not None and seen[1] < waited_s and waited_s > _ALL_ANSWER_S:
                return seen[0]
            time.sleep(POLL_S)
        if self._pools:
            raise NoAnswerError(f"{self.name} has not answered for {ANSWER_S:.0f} s")
        raise ConfigError(
            f"no pool is running on the nodes of the Ray cluster at {self._address} (a training's "
            "own process is seen without --ray)"
        )

    def read(self, name: str, instance: int | None = None) -> tuple[dict[str, Any], float] | None:
        """A file of an instance (with its number in `poll`), or the curves; see `Run.read`."""
        from sc2pool.integration import merge_curves  # noqa: PLC0415

        pools = self._read_pools()
        if instance is not None:
            own, index = divmod(instance, max(1, len(pools)))
            return pools[index].files.get(f"{own}/{name}") if pools else None
        read = [(pool.stats[0]["uptime_s"], pool.files.get(name)) for pool in pools]
        parts = [(uptime_s, seen[0]) for uptime_s, seen in read if seen and seen[0]["at_s"]]
        return (merge_curves(parts), 0.0) if parts else None

    def _read_pools(self) -> list[Seen]:
        with self._lock:
            now_s = time.monotonic()
            if now_s - self._read_at_s > _AGAIN_S:
                self._pools = self._viewers.read(closely=self._closely)
                self._read_at_s = time.monotonic()
            if self._pools:
                self._seen_s = now_s
            return self._pools
