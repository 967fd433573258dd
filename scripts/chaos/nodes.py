"""A Ray cluster of two nodes under attack, and the check that a round leaves no games on it.

Only `chaos.py run --ray` imports Ray; this command runs in a virtual environment that has Ray.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import psutil

from tests.support.audit.belongings import GONE_WITHIN_S, describe
from tests.support.ray_nodes import Nodes, games_of

ROOT = Path(__file__).parents[2]
NODES_KNOWN_S = 120.0


class Cluster:
    """A head node and a second node, each with room for the games and the spares of two actors.

    Attributes:
        nodes: the nodes, for attacks.
    """

    def __init__(self, root: Path, game: Path, most_games: int) -> None:
        self._game = str(game)
        self._lost = False
        folder = root / "r"  # a short name, because a socket's path has at most 107 bytes
        (folder / "ray").mkdir(parents=True)
        # Only the trainer's clock is set: if Ray's clock jumped, Ray might miss a lost node.
        os.environ.pop("LD_PRELOAD", None)
        os.environ.update(
            HOME=str(folder),
            RAY_TMPDIR=str(folder),
            RAY_AUTH_MODE="disabled",
            RAY_USAGE_STATS_ENABLED="0",
            RAY_worker_niceness="0",  # with Ray's default, workers yield to all other processes
            PYTHONPATH=str(ROOT),  # the nodes import the tasks
        )
        self.nodes = Nodes(str(folder), self._game, most_games)
        os.environ["RAY_ADDRESS"] = self.nodes.address

    def lose_second(self) -> None:
        """Kill the second node, if it lives."""
        if not self._lost:
            self._lost = True
            self.nodes.kill_second()

    def bring_back(self) -> None:
        """Start the second node again; only in the main thread, because Ray demands it."""
        if self._lost:
            self.nodes.clear_second()
            self.nodes.second = self.nodes.add()
            self.nodes.cluster.wait_for_nodes(NODES_KNOWN_S)  # Ray must know that the old node died
            self._lost = False

    def living(self) -> list[psutil.Process]:
        """The games on both nodes that still live after a few seconds."""
        deadline_s = time.monotonic() + GONE_WITHIN_S
        while (pids := games_of(self._game)) and time.monotonic() < deadline_s:
            time.sleep(0.02)
        return [psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)]

    def what_stays(self) -> list[str]:
        """The result of `Belongings.what_stays` without Ray's own processes, which come and go."""
        return [f"process {describe(game)}" for game in self.living()]

    def end_new_processes(self) -> None:
        """Kill the games that are left, so that the next round does not report them again."""
        for game in self.living():
            game.kill()

    def shutdown(self) -> None:
        """End Ray with all its processes."""
        self.nodes.shutdown()
