"""`vec_env_cases.py TEMP REPORT GAME OTHER_GAME` plays with `RaySC2VecEnv` on two nodes.

All cases share one cluster, because the cluster's start takes longer than any case. The report is a
JSON object with the result of each case.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
import threading
import time
import warnings
from contextlib import closing
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import psutil
import ray

import sc2pool
from sc2pool.config import Limits, PoolConfig, RestartPolicy
from sc2pool.errors import ConfigError
from sc2pool.ray import RaySC2VecEnv, cluster
from sc2pool.ray.cluster import GAME_RESOURCE, Node
from sc2pool.ray.vec_env import spread
from tests.support import vec_pool
from tests.support.audit.scribble import scribble
from tests.support.programs import run, start
from tests.support.ray_nodes import Nodes, actor_of, error_of, games_of, run_cases, wait
from tests.support.vec_pool import check_vec_pool

TEMP, REPORT, GAME, OTHER = sys.argv[1:]
N = 4
DRIVER = Path(__file__).with_name("driver.py")


def make(**keywords: Any) -> RaySC2VecEnv:
    return RaySC2VecEnv(**{"n": N, "address": NODES.address, **keywords})


def steps_and_calls() -> dict[str, Any]:
    env = make(seed=7)
    with closing(env), closing(env):
        firsts = {row.tobytes() for _ in range(2) for row in env.reset()}
        env.step(np.zeros(N, np.int64))
        env.set_attr("step_mul", 4, indices=[1, 3])
        stats = env.stats()
        return {
            "firsts": len(firsts),
            "step_mul": env.get_attr("step_mul"),
            "picked": env.get_attr("step_mul", indices=[3, 0, -1]),
            "steps": stats.env_steps,
            "seats": [row.seat for row in stats.instances],
            "nodes": list(env.pool.games_by_node().values()),
            "version": stats.game_version,
            "free": ray.available_resources().get(GAME_RESOURCE, 0.0),
        }


def contract() -> dict[str, Any]:
    check_vec_pool(
        lambda: make(n=None, num_envs=vec_pool.N, task=vec_pool.TASK, render_mode="rgb_array").pool
    )
    return {}


class Counting(gymnasium.Env[Any, Any]):
    """An env whose first observation is the seed of its reset."""

    observation_space = gymnasium.spaces.Box(0, 1e6, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return np.array([seed or 0], np.float32), {}

    def step(self, action: Any) -> Any:
        return np.zeros(1, np.float32), float(action), False, False, {}


def envs_of_the_user() -> dict[str, Any]:
    with closing(RaySC2VecEnv([Counting] * 3, NODES.address, seed=5)) as env:
        seeds = env.reset().ravel().tolist()
        return {"seeds": seeds, "rewards": env.step(np.array([1, 0, 1]))[1].tolist()}


def fault_of(done: Any, infos: Any, rewards: Any) -> list[Any]:
    """The fields that describe a fault, for each row of a batch."""
    return [
        [
            bool(over),
            float(reward),
            info.get("TimeLimit.truncated"),
            info.get("sc2pool.synthetic"),
            (info.get("sc2pool.fault") or {}).get("kind"),
            None if "terminal_observation" not in info else info["terminal_observation"].tolist(),
        ]
        for over, reward, info in zip(done, rewards, infos, strict=True)
    ]


def actor_killed() -> dict[str, Any]:
    with closing(make(seed=1)) as env:
        before = env.reset()
        env.set_attr("step_mul", 4)
        games = [row.pid for row in env.stats().instances]
        killed = games[:2]
        actor_of(env, 0).kill()
        gone_s = wait(lambda: not games_of(GAME) & set(killed))
        observations, rewards, dones, infos = env.step(np.zeros(N, np.int64))
        next_dones = env.step(np.zeros(N, np.int64))[2]
        stats = env.stats()
        return {
            "gone_s": gone_s,
            "rows": fault_of(dones, infos, rewards),
            "last": before.tolist(),
            "new": bool((observations[:2] != before[:2]).any()),
            "next": next_dones.tolist(),
            "others stay": games_of(GAME) >= set(games[2:]),
            "step_mul": env.get_attr("step_mul"),
            "faults": stats.faults,
            "steps": stats.env_steps,
            "recovered": stats.recovery_s is not None,
        }


def actor_killed_at_rest() -> dict[str, Any]:
    """A killed actor's successor answers calls, and the next step reports the fault."""
    with closing(make()) as env:
        env.reset()
        actor_of(env, 3).kill()
        answers = env.get_attr("step_mul")
        _, rewards, dones, infos = env.step(np.zeros(N, np.int64))
        rows = fault_of(dones, infos, rewards)
        actor_of(env, 3).kill()
        env.reset()
        told = [sorted(info) for info in env.reset_infos]
        actor_of(env, 3).kill()
        env.get_attr("step_mul")
        env.reset()
        told_later = [sorted(info) for info in env.reset_infos]
        return {
            "answers": answers,
            "kinds": [row[4] for row in rows],
            "told": [told, told_later],
        }


def crash_loop(n: int = N) -> dict[str, Any]:
    with closing(make(n=n, config=PoolConfig(restart=RestartPolicy(per_env=0)))) as env:
        env.reset()
        actor_of(env, 0).kill()
        error = error_of(lambda: env.step(np.zeros(n, np.int64)))
        stats = env.stats()
        left_s = wait(lambda: not games_of(GAME), 30.0)
        then = error_of(env.reset)
    told = {"error": error, "then": then, "left_s": left_s}
    return told | {"faults": stats.faults, "launches": stats.launches}


def crash_loop_of_the_only_actor() -> dict[str, Any]:
    return crash_loop(1)


def node_lost_for_good() -> dict[str, Any]:
    """A node is lost while no other node has room. Later this node comes back."""
    env = make(node_timeout_s=4.0)
    try:
        env.reset()
        games = {row.pid for row in env.stats().instances}
        NODES.kill_second()
        gone_s = wait(lambda: len(games_of(GAME) & games) == 2)
        error = error_of(lambda: env.step(np.zeros(N, np.int64)))
    finally:
        env.close()
        NODES.clear_second()
        NODES.second = NODES.add()
    return {
        "games": len(games),
        "gone_s": gone_s,
        "error": error,
        "left": len(games_of(GAME) & games),
    }


def node_returns() -> dict[str, Any]:
    brought: list[Any] = []

    def step() -> None:
        brought.append((env.step(np.zeros(N, np.int64)), time.monotonic()))

    stepping = threading.Thread(target=step)
    with closing(make()) as env:
        env.reset()
        games = {row.pid for row in env.stats().instances}
        NODES.kill_second()
        wait(lambda: len(games_of(GAME) & games) == 2)
        stepping.start()
        waits = wait(lambda: brought, 2.0) < 0
        NODES.clear_second()
        NODES.second = NODES.add()
        returned_s = time.monotonic()
        stepping.join(60)
        (_, rewards, dones, infos), plays_s = brought[0]
        then = env.step(np.zeros(N, np.int64))[2].tolist()
        return {
            "kinds": [row[4] for row in fault_of(dones, infos, rewards)],
            "waits": waits,
            "then": then,
            "after_return_s": plays_s - returned_s,
        }


def driver_killed() -> dict[str, Any]:
    """Kill a driver whose working directory has files with the names of packages."""
    folder = Path(TEMP, "planted")
    for name in ("sc2pool", "numpy", "psutil", "picows"):
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text(f"open({str(folder / 'imported')!r}, 'w')")
    driver = start(sys.executable, DRIVER, NODES.address, stderr=None, cwd=folder)
    try:
        assert driver.stdout is not None
        games = set(json.loads(driver.stdout.readline() or "[]"))
        driver.send_signal(signal.SIGKILL)
        gone_s = wait(lambda: not games_of(GAME) & games)
        driver.wait()
        free_s = wait(lambda: ray.available_resources().get(GAME_RESOURCE, 0.0) == N)
        return {
            "games": len(games),
            "imported": (folder / "imported").exists(),
            "gone_s": gone_s,
            "free_s": free_s,
        }
    finally:
        driver.kill()
        driver.communicate()


def scribbled() -> dict[str, Any]:
    """Write into all returned arrays, with and without a fixed layout, and kill an actor."""
    found = {}
    for space, last in (("array", [3.0]), ("no layout", ([3.0],))):
        with closing(RaySC2VecEnv([lambda space=space: Counted(space)] * N, NODES.address)) as env:
            env.reset()
            for _ in range(3):
                given = env.step(np.zeros(N, np.int64))
                scribble(given)
            actor_of(env, 0).kill()
            _, _, _, infos = env.step(np.zeros(N, np.int64))
            shown = [info["terminal_observation"] for info in infos[:2]]
            found[space] = [same(one, last) for one in shown]
            scribble(infos)
    return found


class Counted(gymnasium.Env[Any, Any]):
    """An env that observes its number of steps."""

    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, space: str) -> None:
        of_one = gymnasium.spaces.Box(0, 1e6, (1,), np.float32)
        self.is_fixed = space == "array"
        self.observation_space = of_one if self.is_fixed else gymnasium.spaces.Sequence(of_one)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.steps = 0
        return self.seen(), {}

    def seen(self) -> Any:
        count = np.array([self.steps], np.float32)
        return count if self.is_fixed else (count,)

    def step(self, action: Any) -> Any:
        self.steps += 1
        return self.seen(), 1.0, False, False, {"array": np.ones(1)}


def same(given: Any, expected: Any) -> bool:
    if isinstance(expected, tuple):
        return all(np.array_equal(one, other) for one, other in zip(given, expected, strict=True))
    return bool(np.array_equal(given, expected))


IMPATIENT = PoolConfig(limits=Limits(step_s=0.5, worker_grace_s=0.5))


def actor_stopped() -> dict[str, Any]:
    """Stop an actor, so that it does not answer a step or another call."""
    with closing(make(config=IMPATIENT)) as env:
        env.reset()
        games = {row.pid for row in env.stats().instances}
        actor_of(env, 3).suspend()
        began_s = time.monotonic()
        _, rewards, dones, infos = env.step(np.zeros(N, np.int64))
        step_s = time.monotonic() - began_s
        rows = fault_of(dones, infos, rewards)
        actor_of(env, 3).suspend()
        began_s = time.monotonic()
        answers = env.get_attr("step_mul")
        call_s = time.monotonic() - began_s
        gone_s = wait(lambda: len(games_of(GAME) & games) == 2)
        return {
            "kinds": [row[4] for row in rows],
            "step_s": step_s,
            "answers": answers,
            "call_s": call_s,
            "gone_s": gone_s,
        }


def head_stopped() -> dict[str, Any]:
    """Stop the head. Steps do not need the head, and calls that need the head raise an error."""
    env = make(n=2)
    head = psutil.Process(NODES.cluster.head_node.all_processes["gcs_server"][0].process.pid)
    before_s, cluster._HEAD_S = cluster._HEAD_S, 2.0
    try:
        env.reset()
        head.suspend()
        env.step(np.zeros(2, np.int64))
        connect = f"from sc2pool.ray import connect; connect({NODES.address!r})"
        asked = run(sys.executable, "-c", connect)
        return {"made": error_of(lambda: make(n=2)), "connected": asked.stderr}
    finally:
        cluster._HEAD_S = before_s
        head.resume()
        env.close()


def interpreter_ends() -> dict[str, Any]:
    """End the interpreter in every way, with the program that also tests the other env classes."""
    program = Path(__file__).parents[1] / "faults" / "classes" / "leaving.py"
    done = run(
        *(sys.executable, program, "RaySC2VecEnv"), env=os.environ | {"RAY_ADDRESS": NODES.address}
    )
    return {"status": done.returncode, "said": done.stdout.splitlines()}


def forked() -> dict[str, Any]:
    """Fork a child that has a copy of the env, as a data loader does."""

    def child() -> None:
        warnings.simplefilter("error")
        calls = {"step": lambda: env.step(np.zeros(1, np.int64)), "close": env.close}
        answers.put({name: error_of(call) for name, call in calls.items()})

    with closing(make(n=1)) as env:
        env.reset()
        forking = multiprocessing.get_context("fork")
        answers = forking.SimpleQueue()
        process = forking.Process(target=child)
        process.start()
        found = answers.get()
        process.join()
        return found | {"parent": error_of(lambda: env.step(np.zeros(1, np.int64)))}


def ray_shut_down() -> dict[str, Any]:
    """Shut Ray down and connect again, as in a notebook whose first cell runs twice."""
    env = make(n=1)
    env.reset()
    ray.shutdown()
    os.environ["RAY_ADDRESS"] = "nonsense"
    try:
        found = {
            "reset": error_of(env.reset),
            "launches": env.stats().launches,
            "connected": ray.is_initialized(),
            "addresses": [
                error_of(lambda at=at: make(address=at)) for at in (7, "a..b:6379", None)
            ],
        }
    finally:
        del os.environ["RAY_ADDRESS"]
        cluster.connect(NODES.address)
    return found | {"then": error_of(env.reset), "closed": error_of(env.close)}


def spreads() -> dict[str, Any]:
    """The number of envs that each node gets. Each node is given as (CPUs, games, free games)."""

    def of(n: int, *rooms: tuple[float, float, float], spares: int = 0) -> Any:
        alive = [Node(str(k), f"node {k}", *room) for k, room in enumerate(rooms)]
        try:
            return {node.name: envs for node, envs in spread(n, spares, alive)}
        except ConfigError as error:
            return str(error)

    return {
        "even": of(5, (4, 0, 0), (4, 0, 0)),
        "by CPUs": of(6, (2, 0, 0), (4, 0, 0), (0, 0, 0)),
        "declared": of(6, (64, 2, 2), (1, 4, 4), (64, 0, 0)),
        "free": of(2, (4, 4, 0), (4, 2, 2)),
        "spares": of(4, (4, 3, 3), (4, 3, 3), spares=1),
        "fewer than nodes": of(1, (4, 2, 2), (4, 2, 2)),
        "too many": of(5, (4, 3, 3), (4, 3, 3), spares=1),
        "no CPU": of(1, (0, 0, 0)),
    }


def too_few_resources() -> dict[str, Any]:
    return error_of(lambda: make(n=N + 1))


def a_node_without_the_game() -> dict[str, Any]:
    return {**error_of(lambda: make(game="/no/such/game")), "left": len(games_of(GAME))}


def another_version() -> dict[str, Any]:
    third = NODES.add(OTHER)
    try:
        found = error_of(lambda: make(n=N + 2))
        return {**found, "left": wait(lambda: not games_of(GAME, OTHER))}
    finally:
        NODES.cluster.remove_node(third)


def another_package() -> dict[str, Any]:
    """Start a driver that has a newer sc2pool than the nodes."""
    installed, sc2pool.__version__ = sc2pool.__version__, "99.0"
    try:
        return error_of(make)
    finally:
        sc2pool.__version__ = installed


def wrong_keywords() -> dict[str, Any]:
    wrong: dict[str, Any] = {"render_mode": "human", "node_timeout_s": None, "config": "fast"}
    return {key: error_of(lambda key=key: make(**{key: wrong[key]})) for key in wrong}


if __name__ == "__main__":
    found_before = filter(None, [os.environ.get("PYTHONPATH")])
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), *found_before])
    NODES = Nodes(TEMP, GAME)
    try:
        found = run_cases(
            [
                steps_and_calls,
                contract,
                envs_of_the_user,
                actor_killed,
                actor_killed_at_rest,
                crash_loop,
                crash_loop_of_the_only_actor,
                driver_killed,
                scribbled,
                actor_stopped,
                head_stopped,
                interpreter_ends,
                forked,
                ray_shut_down,
                spreads,
                too_few_resources,
                a_node_without_the_game,
                another_version,
                another_package,
                wrong_keywords,
                node_lost_for_good,
                node_returns,
            ]
        )
        found["in_the_end"] = {"games": len(games_of(GAME, OTHER))}
        Path(REPORT).write_text(json.dumps(found, default=float))
    finally:
        NODES.shutdown()
