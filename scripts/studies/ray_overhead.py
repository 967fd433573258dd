"""Measures what a step costs if the games are on two Ray nodes, beside a pool on the same machine.

    .venv/ray/bin/python scripts/studies/ray_overhead.py [--rounds 9] [--steps 150] [--n 8]

Both nodes are on this machine, so both sides have the same cores, and the network is the loopback.
The sides play in turn, in rounds; each figure is the median of the rounds, and the last column the
median of the differences within a round, with the least and the greatest. CPU is that of the driver
and the actors, without workers and games; other programs change it less than the time. The maps are
the stand-in's canned ones at several costs of a step: sleeping imitates a game that is busy on its
own core, burning one that shares these.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import cloudpickle
import psutil

sys.path.insert(0, str(Path(__file__).parents[1]))
from bench import standin, tasks

from sc2pool import SubprocSC2VecEnv
from sc2pool.cli.bench.output import markdown, tell

MAPS = ("Canned", "Canned burn 0.5 ms", "Canned sleep 5 ms", "Canned sleep 20 ms")
LONG_SLEEP = {"sleep 20 ms": {"sleep_ms": 20.0}}
HEAD = (
    *("a game's step", "one pool", "two nodes", "one pool, ms", "two nodes, ms", "more, ms"),
    *("one pool, ms of CPU", "two nodes, ms of CPU"),
)


def main() -> None:
    options = parse_arguments()
    # Ray's sockets lie in its folder, and the path of a socket has at most 107 bytes.
    temp = tempfile.mkdtemp(prefix="ray-", dir="/tmp")
    Path(temp, "ray").mkdir()
    os.environ.update(RAY_TMPDIR=temp, RAY_AUTH_MODE="disabled", RAY_USAGE_STATS_ENABLED="0")
    try:
        print(markdown(HEAD, measure(options, temp)))
    finally:
        shutil.rmtree(temp, ignore_errors=True)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--steps", type=int, default=150, help="steps of a round")
    parser.add_argument("--n", type=int, default=8, help="games, an even number")
    parser.add_argument("--maps", nargs="+", choices=MAPS, default=MAPS)
    return parser.parse_args()


def measure(options: argparse.Namespace, temp: str) -> list[tuple[str, ...]]:
    """The rows of the table."""
    import ray  # noqa: PLC0415 - it reads the environment that `main` sets
    from ray.cluster_utils import Cluster  # noqa: PLC0415

    from sc2pool.ray import RaySC2VecEnv  # noqa: PLC0415

    standin.COSTS.update(LONG_SLEEP)
    game = str(standin.install(Path(temp, "StarCraftII")).root)
    cloudpickle.register_pickle_by_value(tasks)
    room = {"num_cpus": 1, "object_store_memory": 10**8, "resources": {"sc2_game": options.n // 2}}
    head = {"include_dashboard": False, "temp_dir": temp, **room}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        cluster.add_node(**room)
        rows = []
        for name in options.maps:
            keywords = {"task": tasks.task_on(name), "game": game, "n": options.n, "seed": 1}
            sides = [
                SubprocSC2VecEnv(**keywords),
                RaySC2VecEnv(address=cluster.address, **keywords),
            ]
            try:
                rows.append(compare(name, sides, options))
            finally:
                for side in sides:
                    side.close()
            tell(f"{name}: measured")
        return rows
    finally:
        ray.shutdown()
        cluster.shutdown()


def compare(name: str, sides: list[Any], options: argparse.Namespace) -> tuple[str, ...]:
    """A row of the table: of each side steps/s and ms per step, and the difference."""
    actions = tasks.actions_on(name, options.n)
    for side in sides:
        side.reset()
    took_ms: list[list[float]] = [[], []]
    cpu_ms: list[list[float]] = [[], []]
    actors = list(map(actors_of, sides))
    for number in range(options.rounds + 1):
        for index in (0, 1) if number % 2 else (1, 0):
            began_s, cpu_began_s = time.perf_counter(), cpu_s(actors[index])
            for step in range(options.steps):
                sides[index].step(actions[step % len(actions)])
            took = 1000 * (time.perf_counter() - began_s) / options.steps
            if number:  # the first round warms up
                took_ms[index].append(took)
                used_s = cpu_s(actors[index]) - cpu_began_s
                cpu_ms[index].append(1000 * used_s / options.steps)
    one, two = map(median, took_ms)
    more = [far - near for near, far in zip(*took_ms, strict=True)]
    return (
        name.removeprefix("Canned ").replace("Canned", "free"),
        *(f"{1000 * options.n / each:,.0f} steps/s" for each in (one, two)),
        *(f"{each:.1f}" for each in (one, two)),
        f"{median(more):.1f} ({min(more):.1f}–{max(more):.1f})",
        *(f"{median(each):.1f}" for each in cpu_ms),
    )


def actors_of(side: Any) -> list[psutil.Process]:
    """The processes that have the pools, but for this one."""
    workers = [psutil.Process(row.worker_pid) for row in side.stats().instances]
    return [psutil.Process(pid) for pid in {each.ppid() for each in workers} - {os.getpid()}]


def cpu_s(actors: list[psutil.Process]) -> float:
    """CPU time of this process and the actors."""
    times = [actor.cpu_times() for actor in actors]
    return time.process_time() + sum(each.user + each.system for each in times)


if __name__ == "__main__":
    main()
