"""`network_cases.py TEMP REPORT GAME` cuts and mends the network between two Ray nodes.

The second node is in a network namespace of its own. A pair of virtual devices connects the
namespaces of the two nodes. The program needs root and Debian's iproute2.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import ray
from ray.cluster_utils import Cluster

from sc2pool.config import Limits, PoolConfig
from sc2pool.pool.machine import sweep
from sc2pool.ray import RaySC2VecEnv
from tests.support.ray_nodes import games_of, wait

TEMP, REPORT, GAME = sys.argv[1:]
NAME = f"sc2pool{os.getpid() % 100_000}"
"""The name of the second namespace, also in names of devices, which have at most 15 bytes."""
HERE, THERE = "10.213.77.1", "10.213.77.2"
N = 2
CUT_S = 30.0
IMPATIENT = PoolConfig(limits=Limits(step_s=1.0, worker_grace_s=1.0))


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, timeout=30)


@contextmanager
def two_hosts() -> Iterator[None]:
    """Make a second network namespace, with an address that this process can reach."""
    ip("netns", "add", NAME)
    try:
        ip("link", "add", f"{NAME}a", "type", "veth", "peer", "name", f"{NAME}b", "netns", NAME)
        ip("address", "add", f"{HERE}/24", "dev", f"{NAME}a")
        ip("link", "set", f"{NAME}a", "up")
        for words in (
            ("address", "add", f"{THERE}/24", "dev", f"{NAME}b"),
            ("link", "set", f"{NAME}b", "up"),
            ("link", "set", "lo", "up"),
            ("route", "add", "default", "via", HERE),  # Ray needs a route to find its own address
        ):
            ip("-n", NAME, *words)
        yield
    finally:
        ip("netns", "delete", NAME)


@contextmanager
def two_nodes() -> Iterator[None]:
    """Start a head and, in the second namespace, a node, each with room for all games."""
    cluster = Cluster(
        initialize_head=True,
        head_node_args={
            "node_ip_address": HERE,
            "include_dashboard": False,
            "temp_dir": TEMP,
            "num_cpus": 1,
            "object_store_memory": 10**8,
            "resources": {"sc2_game": N},
            "env_vars": {"SC2PATH": GAME},
        },
    )
    command = ["ip", "netns", "exec", NAME, Path(sys.executable).with_name("ray"), "start"]
    command += [f"--address={cluster.address}", f"--node-ip-address={THERE}", "--block"]
    command += [
        "--num-cpus=1",
        f"--object-store-memory={10**8}",
        f'--resources={{"sc2_game": {N}}}',
    ]
    second = subprocess.Popen(
        command, env=os.environ | {"SC2PATH": GAME}, stdout=subprocess.DEVNULL, stderr=sys.stderr
    )
    try:
        ray.init(address=cluster.address, log_to_driver=False)
        assert wait(lambda: len([one for one in ray.nodes() if one["Alive"]]) == 2, 60.0) >= 0
        yield
    finally:
        ray.shutdown()
        second.terminate()
        second.wait(60)
        cluster.shutdown()


def cut_and_mended() -> dict[str, Any]:
    env = RaySC2VecEnv(n=N, config=IMPATIENT, node_timeout_s=120.0, spares=0)
    mend = threading.Timer(CUT_S, ip, ["link", "set", f"{NAME}a", "up"])
    try:
        env.reset()
        nodes = len(env.pool.games_by_node())
        games = {row.pid for row in env.stats().instances}
        env.step(np.zeros(N, np.int64))
        ip("link", "set", f"{NAME}a", "down")
        mend.start()
        began_s = time.monotonic()
        _, rewards, dones, infos = env.step(np.zeros(N, np.int64))
        step_s = time.monotonic() - began_s
        kinds = [(info.get("sc2pool.fault") or {}).get("kind") for info in infos]
        then = [env.step(np.zeros(N, np.int64))[2].tolist() for _ in range(3)]
        mend.join()
        gone_s = wait(lambda: len(games_of(GAME) & games) == 1, 120.0)
        return {
            "nodes": nodes,
            "step_s": step_s,
            "kinds": kinds,
            "rewards": rewards.tolist(),
            "dones": dones.tolist(),
            "then": then,
            "gone_s": gone_s,
        }
    finally:
        mend.cancel()
        env.close()


if __name__ == "__main__":
    with two_hosts(), two_nodes():
        found = cut_and_mended()
    found["left"] = wait(lambda: not games_of(GAME), 60.0)
    sweep(Path(tempfile.gettempdir()))  # Ray has killed the actor; the next pool deletes its folder
    Path(REPORT).write_text(json.dumps(found))
