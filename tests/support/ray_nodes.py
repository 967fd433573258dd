"""Starts two Ray nodes on this machine, each with room for some games."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import psutil
import ray
from ray.cluster_utils import Cluster

ROOM = 2
"""The number of games that each node can play by default."""


class Nodes:
    """A Ray cluster of a head node and a second node.

    Args:
        temp: A folder with a short path.
        game: The folder of the installation that the nodes play.
        room: The number of games that each node can play.
    """

    def __init__(self, temp: str, game: str, room: int = ROOM) -> None:
        self._common = {"num_cpus": 1, "object_store_memory": 10**8}
        self._room = room
        self._game = game
        self.cluster = Cluster(
            initialize_head=True,
            head_node_args={
                "include_dashboard": False,
                "temp_dir": temp,
                **self._common,
                **self._playing(game),
            },
        )
        self.second = self.add()

    @property
    def address(self) -> str:
        return str(self.cluster.address)

    def add(self, game: str | None = None) -> Any:
        return self.cluster.add_node(**self._common, **self._playing(game or self._game))

    def _playing(self, game: str) -> dict[str, Any]:
        return {"resources": {"sc2_game": self._room}, "env_vars": {"SC2PATH": game}}

    def kill_second(self) -> None:
        """Kill the second node without notice to Ray, as if its machine were switched off."""
        raylet_of(self.second).kill()

    def clear_second(self) -> None:
        """Reap the processes of the second node."""
        self.cluster.remove_node(self.second, allow_graceful=False)

    def shutdown(self) -> None:
        ray.shutdown()
        self.cluster.shutdown()


def raylet_of(node: Any) -> psutil.Process:
    return psutil.Process(node.all_processes["raylet"][0].process.pid)


def games_of(*folders: str) -> set[int]:
    """The pids of the running games of these installations."""
    found = set()
    for process in psutil.process_iter(["cmdline", "status"]):
        line = process.info["cmdline"] or ()
        alive = process.info["status"] != psutil.STATUS_ZOMBIE
        if alive and "-dataDir" in line and any(folder in line for folder in folders):
            found.add(process.pid)
    return found


def actor_of(env: Any, row: int) -> psutil.Process:
    """The process of the actor that plays this env."""
    worker = env.stats().instances[row].worker_pid
    found = psutil.Process(worker).parent()
    assert found is not None
    return found


def wait(until: Callable[[], object], limit_s: float = 180.0) -> float:
    """Wait for a condition; returns the seconds until it is true, or -1 after the time limit."""
    began_s = time.monotonic()
    while not until():
        if time.monotonic() - began_s > limit_s:
            return -1.0
        time.sleep(0.01)
    return time.monotonic() - began_s


def error_of(call: Callable[[], Any]) -> dict[str, Any]:
    """The error that a call raises, and the seconds that the call took."""
    began_s = time.monotonic()
    try:
        made = call()
    except Exception as error:
        took_s = time.monotonic() - began_s
        return {"type": type(error).__name__, "text": str(error), "took_s": took_s}
    if hasattr(made, "close"):
        made.close()
    return {"type": "", "text": "no error", "took_s": time.monotonic() - began_s}


def run_cases(cases: Sequence[Callable[[], Any]]) -> dict[str, Any]:
    """Run cases; maps each case's name to its result, or to its traceback if the case raised.

    If RAY_CASES="one,other" is in the environment, only these cases are run and timed.
    """
    report: dict[str, Any] = {}
    chosen = os.environ.get("RAY_CASES", "")
    for case in cases:
        if chosen and case.__name__ not in chosen.split(","):
            continue
        began_s = time.monotonic()
        try:
            report[case.__name__] = case()
        except BaseException:
            report[case.__name__] = {"traceback": traceback.format_exc()}
        if chosen:
            print(f"{case.__name__}: {time.monotonic() - began_s:.1f} s", flush=True)
    return report
