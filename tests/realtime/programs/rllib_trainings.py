"""Trains RLlib's PPO on games in real time. The command is `rllib_trainings.py GAME TEMP REPORT`.

All trainings share one Ray session, because its start takes longer than any of them. The report is
a JSON object with the result of each training. TEMP is a folder for Ray's files, and needs a short
path.
"""

from __future__ import annotations

import io
import json
import runpy
import sys
import time
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import gymnasium
import psutil
import ray
from live_game import LiveEnv
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.algorithms.ppo.torch.ppo_torch_learner import PPOTorchLearner
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner
from ray.tune.registry import register_env
from realtime_tasks import TellsLoop

from sc2pool import SC2GymEnv, SC2VectorEnv
from sc2pool.realtime.gate import PausableEnv, PauseGate
from sc2pool.realtime.rllib import RLlibPauseCallback
from tests.support.ray_nodes import error_of, games_of

TEMP, REPORT, GAME = sys.argv[1:]
EXAMPLE = str(Path(__file__).parents[3] / "examples" / "rllib.py")
UPDATE_S = 0.5
"""The sleep before an update in seconds, in which a game in real time plays 11 loops."""
FRAGMENT = 4
SAMPLE_TIMEOUT_S = 5.0
SLOW_STEP_S = 0.8
"""The delay of a step in seconds. So a fragment of two envs that step in turn takes 6.4 s."""


class Slow(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Delays each step by `delay_s`."""

    delay_s = 0.0

    def step(self, action: Any) -> Any:
        time.sleep(self.delay_s)
        return self.env.step(action)


class SlowLearner(PPOTorchLearner):
    """A learner with slow updates, which records the games' status before and after each update."""

    seen: list[list[str]] = []  # noqa: RUF012 - shared by all learners of this program

    def update(self, *arguments: Any, **keywords: Any) -> Any:
        self.seen.append(games())
        time.sleep(UPDATE_S)
        result = super().update(*arguments, **keywords)
        self.seen.append(games())
        return result


def games() -> list[str]:
    """The process status of each running game of this installation."""
    return [psutil.Process(pid).status() for pid in games_of(GAME)]


def config(num_env_runners: int = 0, **env_runners: Any) -> Any:
    return (
        PPOConfig()
        .environment("game")
        .env_runners(
            num_env_runners=num_env_runners,
            rollout_fragment_length=FRAGMENT,
            sample_timeout_s=SAMPLE_TIMEOUT_S,
            **env_runners,
        )
        .callbacks(RLlibPauseCallback)
    )


def training(updates: int, fragments: int, **env_runners: Any) -> Any:
    """PPO with several updates per iteration, and several fragments per update."""
    envs = env_runners.get("num_envs_per_env_runner", 1)
    batch = FRAGMENT * envs * fragments
    return (
        config(**env_runners)
        .training(
            train_batch_size_per_learner=batch,
            minibatch_size=batch,
            num_epochs=1,
            learner_class=SlowLearner,
        )
        .reporting(min_sample_timesteps_per_iteration=batch * updates)
    )


def summary(result: dict[str, Any]) -> dict[str, Any]:
    seen, SlowLearner.seen = SlowLearner.seen, []
    return {
        "pause": result["env_runners"]["pause"],
        "steps": result["num_env_steps_sampled_lifetime"],
        "games in updates": seen,
    }


def in_this_process() -> dict[str, Any]:
    algorithm = training(updates=2, fragments=2).build_algo()
    report = summary(algorithm.train())
    algorithm.stop()
    return report


def in_another_process() -> dict[str, Any]:
    """RLlib steps two envs in turn. With slow steps, a fragment exceeds RLlib's timeout."""
    algorithm = training(
        updates=2, fragments=2, num_env_runners=1, num_envs_per_env_runner=2
    ).build_algo()
    report = summary(algorithm.train())
    algorithm.env_runner_group.foreach_env_runner(slow_down, local_env_runner=False)
    report["too slow"] = error_of(algorithm.train)
    algorithm.stop()
    return report


def slow_down(runner: SingleAgentEnvRunner) -> None:
    runner.env.unwrapped.set_attr("delay_s", SLOW_STEP_S)


def single_game() -> dict[str, Any]:
    """A game without a pool, which its env pauses by the game's pause key."""
    algorithm = training(updates=2, fragments=2).environment("live game").build_algo()
    (game,) = algorithm.env_runner.env.unwrapped.get_attr("game")
    result = summary(algorithm.train())
    report = {
        "pause": result["pause"],
        "paused": game.paused,
        "updates": len(result["games in updates"]) // 2,
    }
    algorithm.stop()
    report["ended"] = not psutil.pid_exists(game.pid)
    return report


def without_algorithm(mode: str) -> dict[str, Any]:
    """Sample with an env runner that steps its two envs together."""
    runner = SingleAgentEnvRunner(
        config=config(num_envs_per_env_runner=2, gym_env_vectorize_mode=mode)
    )
    seen = []
    for _ in range(2):
        runner.sample()
        seen.append(games())
        time.sleep(UPDATE_S)
    report = {"pause": runner.get_metrics()["pause"], "games": seen}
    runner.stop()
    return report


def build_with_too_long_a_fragment() -> None:
    """Fragments of 50 steps, each of 4 loops, take 8.9 s, which is longer than the timeout."""
    ppo = config(num_env_runners=1).env_runners(rollout_fragment_length=50)
    ppo.build_algo().stop()


def example() -> str:
    """Run the example program, and return its output."""
    printed = io.StringIO()
    argv = ["--realtime", "--iterations", "2", "--runners", "0", "--n", "2", "--fragment", "2"]
    with redirect_stdout(printed):
        runpy.run_path(EXAMPLE)["main"]([*argv, "--game", GAME])
    return printed.getvalue()


def make_game(settings: dict[str, Any]) -> Any:
    options = {"task": TellsLoop, "game": GAME, "realtime": True}
    if "num_envs" in settings:
        return SC2VectorEnv(n=settings["num_envs"], **options)
    return Slow(SC2GymEnv(**options))


def make_live_game(_: Any) -> Any:
    env = LiveEnv()
    key, ticks = env.game.press_p, env.game.read_tick
    return PausableEnv(env, PauseGate(env.game.pid, pause=key, resume=key, ticks=ticks))


def main() -> None:
    register_env("game", make_game)
    register_env("live game", make_live_game)
    ray.init(
        num_cpus=1,  # one CPU, for one env runner; Ray starts one process per CPU
        include_dashboard=False,
        log_to_driver=False,
        logging_level="error",
        object_store_memory=10**8,
        _temp_dir=TEMP,
    )
    report = {
        "in this process": in_this_process(),
        "single game": single_game(),
        "in another process": in_another_process(),
        "vector_entry_point": without_algorithm("vector_entry_point"),
        "async": without_algorithm("async"),
        "another env": error_of(
            lambda: SingleAgentEnvRunner(config=config().environment("CartPole-v1"))
        ),
        "too long a fragment": error_of(build_with_too_long_a_fragment),
        "example": example(),
        "games in the end": games(),
    }
    ray.shutdown()
    Path(REPORT).write_text(json.dumps(report, default=float))


if __name__ == "__main__":
    main()
