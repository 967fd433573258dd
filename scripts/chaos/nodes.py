"""A Ray cluster of two nodes under attack: what it is for a round, and what a round may not leave.

Only `chaos.py run --ray` imports Ray, in the environment that has it.
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
    """A head and a second node, each with room for all games: two actors, each with its spares.

    Attributes:
        nodes: what attacks strike.
    """

    def __init__(self, root: Path, game: Path, most_games: int) -> None:
        self._game = str(game)
        self._lost = False
        folder = root / "r"  # a socket's path has at most 107 bytes
        (folder / "ray").mkdir(parents=True)
        # If Ray's own clock is set, it may not notice that a node is lost. The trainer's is set.
        os.environ.pop("LD_PRELOAD", None)
        os.environ.update(
            HOME=str(folder),
            RAY_TMPDIR=str(folder),
            RAY_AUTH_MODE="disabled",
            RAY_USAGE_STATS_ENABLED="0",
            RAY_worker_niceness="0",  # or its processes give way to all others of the machine
            PYTHONPATH=str(ROOT),  # of the tasks, which the nodes import
        )
        self.nodes = Nodes(str(folder), self._game, most_games)
        os.environ["RAY_ADDRESS"] = self.nodes.address

    def lose_second(self) -> None:
        """The second node dies, if it lives."""
        if not self._lost:
            self._lost = True
            self.nodes.kill_second()

    def bring_back(self) -> None:
        """The second node is there again. Ray starts one in the main thread only."""
        if self._lost:
            self.nodes.clear_second()
            self.nodes.second = self.nodes.add()
            self.nodes.cluster.wait_for_nodes(NODES_KNOWN_S)  # until the dead one is known as dead
            self._lost = False

    def living(self) -> list[psutil.Process]:
        """The games on both nodes that do not end by themselves within seconds."""
        deadline_s = time.monotonic() + GONE_WITHIN_S
        while (pids := games_of(self._game)) and time.monotonic() < deadline_s:
            time.sleep(0.02)
        return [psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)]

    def what_stays(self) -> list[str]:
        """See `Belongings.what_stays`; Ray's own processes come and go as it likes."""
        return [f"process {describe(game)}" for game in self.living()]

    def end_new_processes(self) -> None:
        """Kill what is left, so that the next round does not report it again."""
        for game in self.living():
            game.kill()

    def shutdown(self) -> None:
        """End Ray, and all that it started."""
        self.nodes.shutdown()
