"""Compares learners on one live game, SuperTux, for an equal time of play.

Usage:
    python -m scripts.studies.live_game_table [--rows ppo gate …] [--minutes 10 30] [--seeds 1 2 3]
        [--python ROW=INTERPRETER …] [--out live_game_table]    # Each option can be left out.

Each row of the table shows one learner. Each pair of a row and a seed has its own process, which
plays for the longest of the given times. The game's env writes a line per step, so all rows are
measured in the same way, even if a learner drops steps. The script appends the figures to
`results.jsonl` in the output folder, and prints one Markdown table at the end. If a row's library
is missing, or a row fails, the row says so. RLlib needs a virtual environment of its own, which is
given by `--python rllib-ppo=.venv/ray/bin/python`; rtgym and async-gym-agents can have one, too.

A *gap* is the time from an observation to the action that was chosen from this observation, without
pauses. A *missed period* is a whole decision period without a new action. A *death without action*
is a death in a missed period. The *return after M minutes* is the mean return of the last 20
episodes that ended before M minutes. (rtgym computes an action while it plays the previous action,
so rtgym's gap is about a period, and rtgym misses no period.)
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import mean, median
from typing import Any, Final, NamedTuple

import gymnasium
import numpy as np
import psutil
from gymnasium import spaces

from examples.supertux.env import PERIOD_TICKS, SuperTuxEnv
from examples.supertux.game import TICK_S
from sc2pool.cli.bench.measuring import markdown, tell
from sc2pool.processes.tree import kill_tree
from sc2pool.realtime.env import StepResult

STARTS_WITHIN_S: Final = 300.0
ENDLESS: Final = 10**9
"""A number of steps that no learner reaches, because time ends each training first."""
LAST_EPISODES: Final = 20
TIME_LIMIT_STEPS: Final = 285
"""The number of steps after which rtgym truncates; the env's own limit is 2,000 ticks."""
PPO_OPTIONS: Final[dict[str, Any]] = {
    "n_steps": 256,
    "batch_size": 64,
    "n_epochs": 10,
    "learning_rate": 5e-4,
    "ent_coef": 0.01,
    "gamma": 0.98,
    "device": "cpu",
}


# ---- the game, measured --------------------------------------------------------------------------


class Step(NamedTuple):
    """One line of a record, for one step of the game."""

    at_s: float
    episode: int
    gap_s: float
    missed: int
    reward: float
    died: int
    unattended: int


class RecordedTux(SuperTuxEnv):
    """The game SuperTux, which writes a line per step into a file of the folder `folder`.

    `extra_gap_s` says how much older the policy's observation is than the newest observation.
    """

    extra_gap_s = 0.0

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._played = 0
        name = f"{os.getpid()}-{id(self)}.csv"
        self._record = (folder / name).open("w", buffering=1)

    def begin(self, options: dict[str, Any]) -> None:
        super().begin(options)
        self._played += 1
        self._acted = False

    def act(self, action: np.int64) -> None:
        super().act(action)
        self._acted = True

    def observe(self) -> StepResult[Any]:
        result = super().observe()
        if self._acted:
            step = Step(
                at_s=time.monotonic(),
                episode=self._played,
                gap_s=self.gap_s + self.extra_gap_s,
                missed=int(self.gap_s / self.period_s),
                reward=float(result.reward),
                died=int(result.info["died"]),
                unattended=int(result.info["unattended"]),
            )
            self._record.write(",".join(map(str, step)) + "\n")
        return result

    def close(self) -> None:
        super().close()
        self._record.close()


def read_record(folder: Path) -> list[Step]:
    """All steps of a learner's run in their order; each env of the run has written one file."""
    steps = []
    for number, file in enumerate(sorted(folder.glob("*.csv"))):
        lines = file.read_text().splitlines(keepends=True)
        whole = (line for line in lines if line.endswith("\n"))  # the last line may be incomplete
        for at_s, episode, gap_s, missed, reward, died, unattended in csv.reader(whole):
            steps.append(
                Step(
                    at_s=float(at_s),
                    episode=number * 1_000_000 + int(episode),
                    gap_s=float(gap_s),
                    missed=int(missed),
                    reward=float(reward),
                    died=int(died),
                    unattended=int(unattended),
                )
            )
    return sorted(steps)


def figures_of(steps: Sequence[Step], minutes: Sequence[float]) -> dict[str, Any]:
    """The figures of one run, without steps after the longest of these times."""
    began_s = steps[0].at_s
    played = [step for step in steps if step.at_s - began_s <= max(minutes) * 60]
    gaps_s = np.array([step.gap_s for step in played])
    p50, p99 = np.percentile(gaps_s, (50, 99)) * 1000
    return {
        "steps": len(played),
        "gap_ms_p50": float(p50),
        "gap_ms_p99": float(p99),
        "gap_ms_max": float(gaps_s.max() * 1000),
        "missed_periods": sum(step.missed for step in played),
        "deaths": sum(step.died for step in played),
        "deaths_without_action": sum(step.unattended for step in played),
        "returns": {f"{end:g}": return_after(played, began_s + end * 60) for end in minutes},
    }


def return_after(steps: Sequence[Step], end_s: float) -> float | None:
    """The mean return of the last episodes before this time; None if no episode ended before it."""
    by_episode = itertools.groupby(
        sorted(steps, key=lambda step: (step.episode, step.at_s)), key=lambda step: step.episode
    )
    episodes = [list(episode) for _, episode in by_episode]
    newest = max(step.at_s for step in steps)
    ended = sorted(
        (episode[-1].at_s, sum(step.reward for step in episode))
        for episode in episodes
        if episode[-1].at_s <= end_s and episode[-1].at_s < newest  # the newest episode still runs
    )
    return mean(total for _, total in ended[-LAST_EPISODES:]) if ended else None


# ---- the rows ------------------------------------------------------------------------------------


def in_pool(folder: Path) -> Any:
    from stable_baselines3.common.vec_env import VecMonitor  # noqa: PLC0415

    from sc2pool import SubprocSC2VecEnv  # noqa: PLC0415

    return VecMonitor(SubprocSC2VecEnv([partial(RecordedTux, folder)]))


def play_ppo(folder: Path, seed: int, _: float, callback: Any = None) -> None:
    from stable_baselines3 import PPO  # noqa: PLC0415

    model = PPO("MultiInputPolicy", in_pool(folder), seed=seed, **PPO_OPTIONS)
    model.learn(ENDLESS, callback=callback)


def play_gate(folder: Path, seed: int, minutes: float) -> None:
    from sc2pool import PauseCallback  # noqa: PLC0415

    play_ppo(folder, seed, minutes, PauseCallback())


def play_async_ppo(folder: Path, seed: int, _: float) -> None:
    from sc2pool import AsyncPPO  # noqa: PLC0415

    AsyncPPO("MultiInputPolicy", in_pool(folder), seed=seed, **PPO_OPTIONS).learn(ENDLESS)


def play_async_dqn(folder: Path, seed: int, minutes: float) -> None:
    from sc2pool import AsyncDQN  # noqa: PLC0415

    model = AsyncDQN(
        "MultiInputPolicy",
        in_pool(folder),
        learning_rate=5e-4,
        buffer_size=20_000,
        learning_starts=256,
        batch_size=64,
        train_freq=1,
        gradient_steps=1,
        target_update_interval=500,
        gamma=0.98,
        exploration_fraction=0.3,
        device="cpu",
        seed=seed,
    )
    # The schedule of the exploration needs the number of steps that will really be made.
    model.learn(int(minutes * 60 / (PERIOD_TICKS * TICK_S)))


def play_rllib_ppo(folder: Path, seed: int, _: float) -> None:
    from gymnasium.wrappers import FrameStackObservation  # noqa: PLC0415
    from ray.tune.registry import register_env  # noqa: PLC0415

    from examples import rllib_single_game  # noqa: PLC0415
    from sc2pool import PausableEnv, PauseGate  # noqa: PLC0415

    def make_game(_: Any) -> gymnasium.Env[Any, Any]:
        game = RecordedTux(folder)
        gate = PauseGate(game.game_pid)
        return PausableEnv(FrameStackObservation(game, stack_size=4), gate)

    register_env("recorded", make_game)
    play_rllib(rllib_single_game.config().environment("recorded"), seed)


def play_rllib_appo(folder: Path, seed: int, _: float) -> None:
    import torch  # noqa: PLC0415
    from gymnasium.wrappers import FrameStackObservation  # noqa: PLC0415
    from ray.rllib.algorithms.appo import APPOConfig  # noqa: PLC0415
    from ray.rllib.core.columns import Columns  # noqa: PLC0415
    from ray.rllib.core.learner.utils import make_target_network  # noqa: PLC0415
    from ray.rllib.core.rl_module.apis import (  # noqa: PLC0415
        TARGET_NETWORK_ACTION_DIST_INPUTS,
        TargetNetworkAPI,
    )
    from ray.rllib.core.rl_module.rl_module import RLModuleSpec  # noqa: PLC0415
    from ray.tune.registry import register_env  # noqa: PLC0415

    from examples.rllib_single_game import STEPS_PER_UPDATE, PictureAndVector  # noqa: PLC0415

    class WithTarget(PictureAndVector, TargetNetworkAPI):  # type: ignore[misc]
        """The network of `rllib_single_game`, with the target network that APPO needs."""

        def make_target_networks(self) -> None:
            self.target = make_target_network(torch.nn.ModuleList(self.networks()))

        def networks(self) -> list[Any]:
            return [self.cnn, self.mlp, self.common, self.policy]

        def get_target_network_pairs(self) -> list[tuple[Any, Any]]:
            return list(zip(self.networks(), self.target, strict=True))

        def forward_target(self, batch: dict[str, Any]) -> dict[str, Any]:
            cnn, mlp, common, policy = self.target
            seen = batch[Columns.OBS]
            parts = [cnn(seen["frame"].float().flatten(1, 2) / 255), mlp(seen["state"].float())]
            return {TARGET_NETWORK_ACTION_DIST_INPUTS: policy(common(torch.cat(parts, 1)))}

    register_env("recorded", lambda _: FrameStackObservation(RecordedTux(folder), stack_size=4))
    play_rllib(
        APPOConfig()
        .environment("recorded")
        .env_runners(num_env_runners=1, rollout_fragment_length=64)
        .learners(num_learners=0)
        .rl_module(rl_module_spec=RLModuleSpec(module_class=WithTarget))
        .training(
            train_batch_size_per_learner=STEPS_PER_UPDATE,
            use_circular_buffer=False,
            num_epochs=10,
            minibatch_size=64,
            target_network_update_freq=1,
            lr=5e-4,
            gamma=0.98,
            entropy_coeff=0.01,
        )
        .reporting(min_time_s_per_iteration=5),
        seed,
    )


def play_rllib(config: Any, seed: int) -> None:
    algorithm = config.debugging(seed=seed).build_algo()
    while True:
        algorithm.train()


def play_rtgym(folder: Path, seed: int, _: float) -> None:
    """Play rtgym's env with SB3's PPO (rtgym has no learner), and call `wait` in each update."""
    import rtgym  # noqa: PLC0415
    from rtgym.envs.real_time_env import DEFAULT_CONFIG_DICT  # noqa: PLC0415
    from stable_baselines3 import PPO  # noqa: PLC0415
    from stable_baselines3.common.callbacks import BaseCallback  # noqa: PLC0415

    class Tux(rtgym.RealTimeGymInterface):  # type: ignore[misc]
        """SuperTux for rtgym, which keeps the clock and calls only the hooks of the game's env."""

        def __init__(self) -> None:
            self.env = RecordedTux(folder)

        def get_observation_space(self) -> Any:
            return spaces.Tuple(list(self.env.observation_space.values()))

        def get_action_space(self) -> spaces.Box:
            return spaces.Box(-1.0, 1.0, (2,), np.float32)

        def get_default_action(self) -> Any:
            return np.full(2, -1.0, np.float32)

        def send_control(self, control: Any) -> None:
            if control is not None:
                wall_s = time.monotonic() - self.seen_s
                ticks_s = (self.env.ticks() - self.seen_tick + 1) * TICK_S
                self.env.gap_s = min(wall_s, ticks_s)  # the gap is computed as in `RealTimeEnv`
                self.env.extra_gap_s = self.seen_s - self.seen_before_s
                right, jump = control > 0
                self.env.act(np.int64(right + 2 * jump))

        def reset(self, seed: Any = None, options: Any = None) -> tuple[list[Any], dict[str, Any]]:
            observation, info = self.env.reset(seed=seed, options=options)
            self.seen_s = time.monotonic()
            self._note()
            return list(observation.values()), info

        def get_obs_rew_terminated_info(self) -> tuple[list[Any], float, bool, dict[str, Any]]:
            result = self.env.observe()
            self._note()
            return (
                list(result.observation.values()),
                result.reward,
                result.terminated,
                dict(result.info),
            )

        def wait(self) -> None:
            self.env.act(np.int64(0))

        def _note(self) -> None:
            # In rtgym a step returns the observation before the newest observation.
            self.seen_before_s, self.seen_s = self.seen_s, time.monotonic()
            self.seen_tick = self.env.ticks()

    class AsDict(gymnasium.ObservationWrapper[Any, Any, Any]):
        """Turns rtgym's tuple of observations into a dict, because SB3 does not take tuples."""

        def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
            super().__init__(env)
            names, parts = ("frame", "state", "action"), env.observation_space
            self.observation_space = spaces.Dict(dict(zip(names, parts, strict=True)))  # type: ignore[call-overload]

        def observation(self, observation: Any) -> dict[str, Any]:
            return dict(zip(("frame", "state", "action"), observation, strict=True))

    class WaitInUpdates(BaseCallback):
        def _on_step(self) -> bool:
            return True

        def _on_rollout_end(self) -> None:
            self.training_env.env_method("wait")

    period_s = PERIOD_TICKS * TICK_S
    config = DEFAULT_CONFIG_DICT | {
        "interface": Tux,
        "time_step_duration": period_s,
        "start_obs_capture": period_s,
        "ep_max_length": TIME_LIMIT_STEPS,
    }
    env = AsDict(gymnasium.make("real-time-gym-ts-v1", config=config, disable_env_checker=True))
    model = PPO("MultiInputPolicy", env, seed=seed, **PPO_OPTIONS)
    model.learn(ENDLESS, callback=WaitInUpdates())


def play_async_gym_agents(folder: Path, seed: int, _: float) -> None:
    """Play with the PPO of async-gym-agents on a Box."""
    # On a Dict, version 0.5.0 of async-gym-agents fails (`unhashable type: 'slice'`).
    from async_gym_agents.agents.async_agent import get_injected_agent  # noqa: PLC0415
    from async_gym_agents.envs.multi_env import IndexableMultiEnv  # noqa: PLC0415
    from gymnasium.wrappers import FlattenObservation  # noqa: PLC0415
    from stable_baselines3 import PPO  # noqa: PLC0415

    class Spaces(gymnasium.Env[Any, Any]):
        """A stub env in place of a second game, because only the game's spaces are needed."""

        observation_space = SuperTuxEnv.observation_space
        action_space = SuperTuxEnv.action_space

    def make_game() -> gymnasium.Env[Any, Any]:
        return FlattenObservation(RecordedTux(folder))

    env = IndexableMultiEnv([make_game], stub_env=FlattenObservation(Spaces()))
    model = get_injected_agent(PPO)("MlpPolicy", env, seed=seed, **PPO_OPTIONS)
    model.learn(ENDLESS)


ROWS: Final[Mapping[str, tuple[str, Callable[[Path, int, float], None]]]] = {
    "ppo": ("PPO", play_ppo),
    "gate": ("PPO, pause gate", play_gate),
    "async-ppo": ("`AsyncPPO`", play_async_ppo),
    "async-dqn": ("`AsyncDQN`", play_async_dqn),
    "rllib-ppo": ("RLlib's PPO, `RLlibPauseCallback`", play_rllib_ppo),
    "rllib-appo": ("RLlib's APPO, one env runner", play_rllib_appo),
    "rtgym": ("rtgym's env and `wait`, SB3's PPO", play_rtgym),
    "async-gym-agents": ("async-gym-agents' PPO, flat observation, no CNN", play_async_gym_agents),
}


# ---- one process per row and seed ----------------------------------------------------------------


def main() -> None:
    options = parse_arguments()
    if options.play:
        play(options.play, options.seeds[0], max(options.minutes), options.out)
        return
    options.out.mkdir(parents=True, exist_ok=True)
    results = []
    for row, seed in itertools.product(options.rows, options.seeds):
        python = dict(options.python).get(row, sys.executable)
        folder = options.out / f"{row}-{seed}"
        outcome = run(row, seed, options.minutes, folder, python)
        results.append({"row": row, "seed": seed, "minutes": options.minutes, **outcome})
        with (options.out / "results.jsonl").open("a") as file:
            file.write(json.dumps(results[-1]) + "\n")
        tell(f"{row}, seed {seed}: {outcome}")
    print(table(results, options.minutes))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS), metavar="ROW")
    parser.add_argument("--minutes", nargs="+", type=float, default=[10.0, 30.0])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--python", nargs="+", type=pair, default=[], metavar="ROW=INTERPRETER")
    parser.add_argument("--out", type=Path, default=Path("live_game_table"))
    parser.add_argument("--play", choices=ROWS, help=argparse.SUPPRESS)
    return parser.parse_args()


def pair(text: str) -> tuple[str, str]:
    row, _, python = text.partition("=")
    if row not in ROWS or not python:
        raise argparse.ArgumentTypeError(f"{text!r}, expected ROW=INTERPRETER, ROW of {list(ROWS)}")
    return row, python


def play(row: str, seed: int, minutes: float, folder: Path) -> None:
    """Play in the row's own process until this process is killed."""
    try:
        import torch  # noqa: PLC0415

        torch.set_num_threads(1)  # the machine's second core is for the game
        ROWS[row][1](folder, seed, minutes)
    except ImportError as error:
        (folder / "skipped").write_text(str(error))


def run(row: str, seed: int, minutes: Sequence[float], folder: Path, python: str) -> dict[str, Any]:
    """Start a row's process, end it when its time is over, and return its figures."""
    folder.mkdir(parents=True)
    command = [python, "-m", "scripts.studies.live_game_table", "--play", row, "--seeds", str(seed)]
    command += ["--out", str(folder.resolve()), "--minutes", *map(str, minutes)]
    with (folder / "log").open("w") as log:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=os.environ | {"RAY_USAGE_STATS_ENABLED": "0"},
        )
    began_s, steps = time.monotonic(), list[Step]()
    while child.poll() is None:
        steps = read_record(folder)
        starting = not steps and time.monotonic() - began_s < STARTS_WITHIN_S
        left_s = steps[0].at_s + max(minutes) * 60 - time.monotonic() if steps else 1.0
        if not starting and (left_s <= 0 or not steps):
            break
        time.sleep(min(max(left_s, 0.1), 10.0))
    if child.poll() is None:
        kill_tree(psutil.Process(child.pid))
    code = child.wait()
    steps = read_record(folder)
    if (folder / "skipped").exists():
        return {"skipped": (folder / "skipped").read_text()}
    if not steps or (left_s > 1 and code):
        last = (folder / "log").read_text(errors="replace").strip().splitlines()[-1:]
        return {"failed": "".join(last) or f"exit code {code}"}
    return figures_of(steps, minutes)


def table(results: Sequence[Mapping[str, Any]], minutes: Sequence[float]) -> str:
    """The table: for each row medians over the seeds, the largest gap, and sums of counts."""
    head = ["learner", "gap p50 / p99 / max", "missed periods", "deaths", "without action"]
    head += [f"return after {end:g} min" for end in minutes]
    lines = []
    for row in dict.fromkeys(result["row"] for result in results):
        of_row = [result for result in results if result["row"] == row]
        good = [result for result in of_row if "steps" in result]
        notes = [
            f"{kind}: {result[kind]}"
            for result in of_row
            for kind in ("skipped", "failed")
            if kind in result
        ]
        name = ROWS[row][0] + "".join(f"; {note}" for note in dict.fromkeys(notes))
        lines.append([name, *(cells(good, minutes) if good else ["–"] * (len(head) - 1))])
    seeds = len({result["seed"] for result in results})
    note = f"Seeds: {seeds}. Gaps: median of the seeds, and the largest. Counts: sums of the seeds."
    return f"{markdown(head, lines, 'l' + 'r' * (len(head) - 1))}\n\n{note}"


def cells(good: Sequence[Mapping[str, Any]], minutes: Sequence[float]) -> list[str]:
    p50, p99 = (median(result[name] for result in good) for name in ("gap_ms_p50", "gap_ms_p99"))
    largest = max(result["gap_ms_max"] for result in good)
    counts = [
        str(sum(result[name] for result in good))
        for name in ("missed_periods", "deaths", "deaths_without_action")
    ]
    returns = []
    for end in minutes:
        found = [result["returns"][f"{end:g}"] for result in good]
        known = [one for one in found if one is not None]
        returns.append(f"{mean(known):.2f} ({min(known):.2f}–{max(known):.2f})" if known else "–")
    return [f"{p50:.0f} / {p99:.0f} / {largest:.0f} ms", *counts, *returns]


if __name__ == "__main__":
    main()
