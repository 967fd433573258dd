"""`rllib_cases.py TEMP REPORT GAME OTHER_GAME` runs RLlib's algorithms on two nodes.

All cases share one cluster, because the cluster's start takes longer than any case. The report is a
JSON object with the result of each case.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import ray
from gymnasium import spaces
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.appo import APPOConfig
from ray.rllib.algorithms.dreamerv3 import DreamerV3Config
from ray.rllib.algorithms.impala import IMPALAConfig
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.callbacks.callbacks import RLlibCallback

from sc2pool.config import PoolConfig, RestartPolicy
from sc2pool.errors import ClosedError
from sc2pool.ray import configure, connect
from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon, MoveToBeaconImage
from tests.support.ray_nodes import Nodes, error_of, games_of, run_cases, wait

TEMP, REPORT, GAME, OTHER = sys.argv[1:]
N = 2
"""The number of games of each env runner, and the number for which a node has room."""
FRAGMENT = 8
KILL_EVERY_S, KILL_FOR_S = 7.0, 120.0
LENIENT = PoolConfig(restart=RestartPolicy(per_env=100, per_pool_per_env=100))
"""Allows many kills in a pool of two games; the default policy would report a crash loop."""


class Record(RLlibCallback):
    """A callback that records the transitions of each env runner's envs."""

    def on_environment_created(self, *, env_runner: Any, **keywords: Any) -> None:
        env_runner.firsts, env_runner.digest = [], hashlib.sha256()
        env_runner.faults, env_runner.faults_at_resets = [], 0

    def on_episode_start(self, *, episode: Any, env_runner: Any, **keywords: Any) -> None:
        env_runner.firsts.append(np.asarray(episode.get_observations(0)).tolist())
        if "sc2pool.fault" in episode.get_infos(0):
            env_runner.faults_at_resets += 1

    def on_episode_step(self, *, episode: Any, env_runner: Any, **keywords: Any) -> None:
        for seen in (episode.get_observations(-1), episode.get_rewards(-1)):
            env_runner.digest.update(np.asarray(seen).tobytes())

    def on_episode_end(self, *, episode: Any, env_runner: Any, **keywords: Any) -> None:
        if "sc2pool.fault" in episode.get_infos(-1):
            env_runner.faults.append([episode.is_truncated, episode.is_terminated])


class Picture(MoveToBeaconImage):
    """A task whose observation has the form that DreamerV3 takes."""

    observation_space = spaces.Box(0.0, 1.0, (64, 64, 3), np.float32)

    def observe(self) -> Any:
        beacon, marine = super().observe()
        return np.stack((beacon, marine, marine), axis=-1).astype(np.float32) / 255


class RaisesLater(MoveToBeacon):
    """A task with a bug: it raises an error after some steps."""

    steps = 0

    def act(self, action: int) -> Any:
        self.steps += 1
        if self.steps > FRAGMENT:
            raise ZeroDivisionError("a mistake in act")
        return super().act(action)


def ppo() -> Any:
    return PPOConfig().training(
        train_batch_size_per_learner=FRAGMENT * N * 2, minibatch_size=FRAGMENT * N, num_epochs=1
    )


def asynchronous(config: Any) -> Any:
    return (
        config.training(train_batch_size_per_learner=FRAGMENT * N)
        .learners(num_learners=0)
        .reporting(min_time_s_per_iteration=0.2)
    )


def dreamer() -> Any:
    return DreamerV3Config().training(
        model_size="nano", training_ratio=32, batch_size_B=2, batch_length_T=16
    )


@contextmanager
def training(
    config: Any, runners: int = 2, seed: int | None = None, **keywords: Any
) -> Iterator[Algorithm]:
    config.env_runners(num_env_runners=runners, rollout_fragment_length=FRAGMENT)
    config.debugging(seed=seed).callbacks(Record)
    algorithm = configure(config, **{"n": N, **keywords}).build_algo()
    try:
        yield algorithm
    finally:
        algorithm.stop()
        wait(lambda: not games_of(GAME, OTHER))


def of_runners(algorithm: Algorithm, what: Callable[[Any], Any]) -> list[Any]:
    return list(algorithm.env_runner_group.foreach_env_runner(what, local_env_runner=False))


def results(algorithm: Algorithm) -> Iterator[dict[str, Any]]:
    """Train, and yield the result of each iteration that brought samples."""
    for _ in range(5000):
        result = algorithm.train()
        if result.get("env_runners", {}).get("num_env_steps_sampled_lifetime"):
            yield result
    raise AssertionError("5000 iterations without an end")


def updates(algorithm: Algorithm, count: int = 5) -> dict[str, Any]:
    """Train until the learner has made some updates."""
    seen = 0
    for result in results(algorithm):
        seen += bool(result.get("learners"))
        if seen >= count:
            break
    runners = result["env_runners"]
    return {
        "sampled": runners["num_env_steps_sampled_lifetime"],
        "of the pools": runners["pool"]["env_steps"],
        "launches": runners["pool"]["launches"],
        "faults": runners["pool"]["faults"],
    }


def ppo_by_seed() -> dict[str, Any]:
    def run() -> dict[str, Any]:
        with training(ppo(), seed=5) as algorithm:
            counts = updates(algorithm, 2)
            seen = of_runners(algorithm, lambda one: (one.firsts, one.digest.hexdigest()))
        return {"counts": counts, "seen": sorted(seen)}

    return {"once": run(), "again": run()}


def ppo_in_one_process() -> dict[str, Any]:
    with training(ppo(), runners=0) as algorithm:
        return updates(algorithm)


def impala_with_one_runner() -> dict[str, Any]:
    with training(asynchronous(IMPALAConfig()), runners=1) as algorithm:
        return updates(algorithm)


def appo_in_real_time() -> dict[str, Any]:
    with training(asynchronous(APPOConfig()), realtime=True, step_mul=4) as algorithm:
        counts = updates(algorithm)
        for result in results(algorithm):
            pool = result["env_runners"]["pool"]
            gaps = [pool[f"gap_s_{name}"] for name in ("p50", "p99", "max")]
            if not np.isnan(gaps).any():  # figures are NaN in an iteration without samples
                break
        return {"counts": counts, "gaps": gaps, "killed": a_game_killed(algorithm)}


def dreamerv3() -> dict[str, Any]:
    with training(dreamer(), task=Picture) as algorithm:
        return updates(algorithm)


def ppo_and_faults() -> dict[str, Any]:
    """Train PPO, and kill first a game, then an env runner, and then a node, which comes back."""
    with training(ppo(), seed=5) as algorithm:
        counts = updates(algorithm)
        return {
            "counts": counts,
            "game": a_game_killed(algorithm),
            "runner": a_runner_killed(algorithm),
            "node": a_node_killed_and_back(algorithm),
        }


def a_game_killed(algorithm: Algorithm) -> dict[str, Any]:
    os.kill(min(games_of(GAME)), signal.SIGKILL)
    for result in results(algorithm):
        if result["env_runners"]["pool"]["recoveries"] >= 1:
            break
    return {
        "faults": result["env_runners"]["pool"]["faults"],
        "marked": list(chain(*of_runners(algorithm, lambda one: one.faults))),
        "sampled": result["env_runners"]["num_env_steps_sampled_lifetime"],
        "of the pools": result["env_runners"]["pool"]["env_steps"],
        "restarts": result["fault_tolerance"]["num_remote_worker_restarts"],
    }


def ppo_and_many_faults() -> dict[str, Any]:
    with training(ppo(), pool=LENIENT) as algorithm:
        return many_games_killed(algorithm)


def appo_and_many_faults() -> dict[str, Any]:
    with training(asynchronous(APPOConfig()), pool=LENIENT) as algorithm:
        return many_games_killed(algorithm)


def many_games_killed(algorithm: Algorithm) -> dict[str, Any]:
    """Kill one game after the other, the oldest first, while the training continues."""
    updates(algorithm, 1)
    began_s, kills = time.monotonic(), 0
    for result in results(algorithm):
        running_s = time.monotonic() - began_s
        if running_s > (kills + 1) * KILL_EVERY_S and running_s < KILL_FOR_S:
            oldest = min(map(psutil.Process, games_of(GAME)), key=psutil.Process.create_time)
            oldest.kill()
            kills += 1
        pool = result["env_runners"]["pool"]
        if running_s > KILL_FOR_S and pool["recoveries"] == kills:
            break
    return {
        "kills": kills,
        "faults": pool["faults"],
        "marked": list(chain(*of_runners(algorithm, lambda one: one.faults))),
        "at resets": sum(of_runners(algorithm, lambda one: one.faults_at_resets)),
        "sampled": result["env_runners"]["num_env_steps_sampled_lifetime"],
        "of the pools": pool["env_steps"],
        "restarts": result["fault_tolerance"]["num_remote_worker_restarts"],
    }


def a_runner_killed(algorithm: Algorithm) -> dict[str, Any]:
    before = of_runners(algorithm, lambda one: one.firsts[:N])
    pid, games = of_runners(algorithm, lambda one: (os.getpid(), game_pids(one)))[0]
    os.kill(pid, signal.SIGKILL)
    gone_s = wait(lambda: not set(games) & games_of(GAME))
    full_s = wait(lambda: algorithm.train() and is_full(algorithm))
    updates(algorithm, 1)
    after = of_runners(algorithm, lambda one: one.firsts[:N])
    return {"games gone after s": gone_s, "full after s": full_s, "firsts": [before, after]}


def a_node_killed_and_back(algorithm: Algorithm) -> dict[str, Any]:
    second = NODES.second.node_id
    where = of_runners(
        algorithm, lambda one: (ray.get_runtime_context().get_node_id(), game_pids(one))
    )
    [games] = [games for node, games in where if node == second]
    NODES.kill_second()
    gone_s = wait(lambda: not set(games) & games_of(GAME))
    without = [updates(algorithm, 1)["sampled"] for _ in range(3)]
    healthy = algorithm.env_runner_group.num_healthy_remote_workers()
    NODES.clear_second()
    NODES.second = NODES.add()
    full_s = wait(lambda: algorithm.train() and is_full(algorithm))
    return {
        "games gone after s": gone_s,
        "steps without it": without,
        "healthy without it": healthy,
        "full again after s": full_s,
        "after": updates(algorithm, 1),
    }


def game_pids(runner: Any) -> list[int]:
    return [one.pid for one in runner.env.unwrapped.stats().instances]


def is_full(algorithm: Algorithm) -> bool:
    return algorithm.env_runner_group.num_healthy_remote_workers() == 2


def errors() -> dict[str, Any]:
    def build(config: Any, runners: int = 2, **keywords: Any) -> Any:
        config.env_runners(num_env_runners=runners, rollout_fragment_length=FRAGMENT)
        algorithm = configure(config, **{"n": N, **keywords}).build_algo()
        try:
            for _ in range(20):
                algorithm.train()
        finally:
            algorithm.stop()

    old = ppo().api_stack(
        enable_rl_module_and_learner=False, enable_env_runner_and_connector_v2=False
    )
    anew = ppo().fault_tolerance(restart_failed_sub_environments=True)
    found = {
        "no room": error_of(lambda: build(ppo(), runners=3)),
        "no CPU for the learner": error_of(lambda: build(APPOConfig())),
        "no such task": error_of(lambda: build(ppo(), task="Chess")),
        "no games": error_of(lambda: build(ppo(), n=0)),
        "no config": error_of(lambda: configure({})),
        "old API stack": error_of(lambda: configure(old)),
        "another cluster": error_of(lambda: connect("127.0.0.1:1")),
        "no such game": error_of(lambda: build(ppo(), game="/nowhere")),
        "the task raises": error_of(lambda: build(ppo(), runners=1, task=RaisesLater)),
        "in this process": error_of(lambda: build(ppo(), runners=0, task=RaisesLater)),
        "envs made anew": error_of(lambda: build(anew, runners=1, task=RaisesLater)),
    }
    NODES.kill_second()
    NODES.clear_second()
    NODES.second = NODES.add(OTHER)
    found["two versions"] = error_of(lambda: build(ppo()))
    wait(lambda: not games_of(GAME, OTHER))
    return found | {"left": len(games_of(GAME, OTHER))}


def one_config_twice() -> dict[str, Any]:
    """The number of iterations before the error, for each of two algorithms with one config."""
    config = ppo().training(train_batch_size_per_learner=FRAGMENT * N)
    config.env_runners(num_env_runners=1, rollout_fragment_length=FRAGMENT)
    configure(config, task=RaisesLater, n=N)

    def iterations() -> int:
        algorithm = config.build_algo()
        try:
            for made in range(20):
                try:
                    algorithm.train()
                except ClosedError:
                    return made
            return -1
        finally:
            algorithm.stop()

    return {"once": iterations(), "again": iterations()}


def main() -> None:
    cases = [
        ppo_by_seed,
        ppo_in_one_process,
        impala_with_one_runner,
        appo_in_real_time,
        dreamerv3,
        ppo_and_many_faults,
        appo_and_many_faults,
        ppo_and_faults,
        one_config_twice,
        errors,
    ]
    report = run_cases(cases)
    NODES.shutdown()
    wait(lambda: not games_of(GAME, OTHER))
    report["in_the_end"] = {"games": len(games_of(GAME, OTHER))}
    Path(REPORT).write_text(json.dumps(report, default=float))


if __name__ == "__main__":
    NODES = Nodes(TEMP + "/ray", GAME)
    os.environ["SC2PATH"] = GAME  # the env runner in this process also needs a game
    connect(NODES.address)
    main()
