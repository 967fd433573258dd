"""PPO beside AsyncPPO on MoveToBeacon in step mode: returns per step, and steps per second.

    python scripts/studies/async_learning.py --out learning       # three seeds of each
    python scripts/studies/async_learning.py --out learning --quick

Both have the same settings. The number of epochs is chosen so that an update takes as long as a
rollout; the script measures both first, with PPO. It writes `async_learning.json` and
`async_learning.png` and prints two verdicts: whether AsyncPPO's mean return of the last hundred
episodes is at least 0.95 of PPO's, and whether it makes at least 1.2 times as many steps a second.

If the games of a rollout keep all cores busy, learning meanwhile gains nothing. `--game-ms 5` makes
each step 5 ms longer without using a core, like games with cores of their own. Run it on a machine
that does nothing else.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import time
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import numpy as np
import torch as th
from matplotlib.axes import Axes
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecMonitor

from sc2pool import AsyncPPO, SubprocSC2VecEnv
from sc2pool.cli.bench.output import write_json
from sc2pool.cli.drawing import BLUE, GREEN, VERMILION, new_figure, save, tidy
from sc2pool.cli.training.curve import rolling_mean
from sc2pool.cli.training.episodes import WINDOW
from sc2pool.cli.training.model import arguments_for
from sc2pool.cli.training.settings.hyperparameters import read_hyperparameters
from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon

TASK = "MoveToBeacon"
HYPERPARAMETERS = read_hyperparameters("ppo", TASK)
LEARNS_AS_WELL = 0.95
FASTER = 1.2
LEARNERS: dict[str, tuple[type[PPO], dict[str, Any], str]] = {
    "PPO": (PPO, {}, BLUE),
    "AsyncPPO": (AsyncPPO, {"game_waits": True}, VERMILION),
    "AsyncPPO, process": (AsyncPPO, {"game_waits": True, "actor": "process"}, GREEN),
}


class Unhurried(MoveToBeacon):
    """Each step takes longer, without CPU time."""

    game_s = 0.0

    async def act(self, action: int) -> Any:  # type: ignore[override]
        await asyncio.sleep(self.game_s)
        return super().act(action)


def task_of(options: argparse.Namespace) -> type[MoveToBeacon]:
    if not options.game_ms:
        return MoveToBeacon
    return type("Unhurried", (Unhurried,), {"game_s": options.game_ms / 1000.0})


class Run(NamedTuple):
    """One training."""

    learner: str
    seed: int
    wall_s: float
    """From the first step to the end."""
    steps: int
    """Env steps that PPO learned from, of all games."""
    played_steps: int
    """Env steps played: those, dropped ones, and those left over at the end."""
    episodes: list[tuple[int, float, float]]
    """Steps, seconds and return at each episode's end."""

    @property
    def last_mean(self) -> float:
        returns = [episode[2] for episode in self.episodes[-WINDOW:]]
        return mean(returns) if returns else math.nan


class Noting(BaseCallback):
    """Records every episode, and how long rollouts and the updates between them take."""

    def __init__(self) -> None:
        super().__init__()
        self.episodes: list[tuple[int, float, float]] = []
        self.rollouts_s: list[float] = []
        self.updates_s: list[float] = []
        self.began_s = self._turned_s = math.nan

    def _on_training_start(self) -> None:
        self.began_s = time.monotonic()

    def _on_rollout_start(self) -> None:
        if not math.isnan(self._turned_s):
            self.updates_s.append(self._lap())
        self._lap()

    def _on_rollout_end(self) -> None:
        self.rollouts_s.append(self._lap())

    def _on_step(self) -> bool:
        for info in self.locals["infos"]:
            if "episode" in info:
                now_s = time.monotonic() - self.began_s
                self.episodes.append((self.num_timesteps, now_s, float(info["episode"]["r"])))
        return True

    def _lap(self) -> float:
        before, self._turned_s = self._turned_s, time.monotonic()
        return self._turned_s - before


def model_of(kind: type[PPO], env: Any, seed: int, n_epochs: int, **options: Any) -> PPO:
    arguments = arguments_for(HYPERPARAMETERS, env.num_envs) | {"n_epochs": n_epochs} | options
    return kind("MlpPolicy", env, seed=seed, device="cpu", **arguments)


def train(learner: str, options: argparse.Namespace, seed: int, n_epochs: int) -> Run:
    """One training of one learner."""
    kind, more, _ = LEARNERS[learner]
    env = SubprocSC2VecEnv(n=options.n, task=task_of(options), game=options.game, seed=seed)
    try:
        noting = Noting()
        model = model_of(kind, VecMonitor(env), seed, n_epochs, **more)
        model.learn(options.steps, callback=noting)
        wall_s = time.monotonic() - noting.began_s
        played = env.stats().env_steps
    finally:
        env.close()
    return Run(learner, seed, wall_s, model.num_timesteps, played, noting.episodes)


def epochs_as_long_as_a_rollout(options: argparse.Namespace) -> tuple[int, float, float]:
    """The number of epochs, and what a rollout and one epoch take, in seconds."""
    measured_epochs = 4
    env = SubprocSC2VecEnv(n=options.n, task=task_of(options), game=options.game)
    try:
        noting = Noting()
        model = model_of(PPO, VecMonitor(env), 0, measured_epochs)
        model.learn(6 * model.n_steps * model.n_envs, callback=noting)
    finally:
        env.close()
    rollout_s = float(np.median(noting.rollouts_s[1:]))
    epoch_s = float(np.median(noting.updates_s[1:])) / measured_epochs
    return max(1, round(rollout_s / epoch_s)), rollout_s, epoch_s


def verdicts(runs: list[Run]) -> list[dict[str, Any]]:
    """Each kind of AsyncPPO beside PPO: both ratios, over all seeds."""

    def of(learner: str, figure: Callable[[Run], float]) -> float:
        return mean(figure(run) for run in runs if run.learner == learner)

    found = []
    for learner in LEARNERS:
        if learner == "PPO":
            continue
        of_ppo = of("PPO", lambda run: run.last_mean)
        returns = of(learner, lambda run: run.last_mean) / of_ppo if of_ppo else math.nan
        speed = of(learner, lambda run: run.steps / run.wall_s) / of(
            "PPO", lambda run: run.steps / run.wall_s
        )
        found.append(
            {
                "learner": learner,
                "returns_over_ppo": returns,
                "learns_as_well": returns >= LEARNS_AS_WELL,
                "speed_over_ppo": speed,
                "faster": speed >= FASTER,
                "not_learned_from": 1.0 - of(learner, lambda run: run.steps / run.played_steps),
            }
        )
    return found


def draw(path: Path, runs: list[Run], title: str) -> None:
    """Both curves, over steps and over seconds, side by side."""
    figure = new_figure(11, 4.6, layout="constrained")
    over_steps, over_seconds = figure.subplots(1, 2, sharey=True)
    draw_runs(over_steps, runs, 0, "env steps learned from")
    draw_runs(over_seconds, runs, 1, "seconds")
    over_steps.set_ylabel(f"mean return of the last {WINDOW} episodes")
    over_steps.legend(frameon=False, loc="lower right")
    figure.suptitle(title, fontsize=11)
    save(figure, path)


def draw_runs(axes: Axes, runs: list[Run], column: int, label: str) -> None:
    named: set[str] = set()
    for run in runs:
        if not run.episodes:
            continue
        episodes = np.array(run.episodes)
        axes.plot(
            episodes[:, column],
            rolling_mean(episodes[:, 2], WINDOW),
            color=LEARNERS[run.learner][2],
            linewidth=1.6,
            alpha=0.85,
            label=None if run.learner in named else run.learner,
        )
        named.add(run.learner)
    axes.set_xlabel(label)
    tidy(axes)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path(), help="folder for both files")
    parser.add_argument("--game", default="auto", help="auto, real, or an installation's path")
    parser.add_argument("--n", type=int, default=8, help="games")
    parser.add_argument("--game-ms", type=float, default=0.0, help="extra time of a step")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=HYPERPARAMETERS.n_timesteps)
    parser.add_argument("--quick", action="store_true", help="one seed, few steps: it runs")
    options = parser.parse_args()
    if options.quick:
        options.seeds, options.steps = 1, 2_000
    return options


def main() -> None:
    options = parse_arguments()
    th.set_num_threads(1)  # as in `sc2pool train`: the games need the cores
    n_epochs, rollout_s, epoch_s = epochs_as_long_as_a_rollout(options)
    print(f"a rollout {rollout_s:.3f} s, an epoch {epoch_s:.3f} s: {n_epochs} epochs", flush=True)
    runs = []
    for seed in range(options.seeds):
        for learner in LEARNERS:  # in turn, so that a slower machine is slower for all
            runs.append(run := train(learner, options, seed, n_epochs))
            print(
                f"{learner}, seed {seed}: {run.wall_s:.1f} s, {run.steps} steps of "
                f"{run.played_steps}, last mean {run.last_mean:.2f}",
                flush=True,
            )
    found = verdicts(runs)
    result = {
        "task": TASK,
        "n": options.n,
        "game_ms": options.game_ms,
        "steps": options.steps,
        "n_epochs": n_epochs,
        "rollout_s": rollout_s,
        "epoch_s": epoch_s,
        "verdicts": found,
        "runs": [{**run._asdict(), "last_mean": run.last_mean} for run in runs],
    }
    write_json(options.out / "async_learning.json", result)
    title = f"{TASK}, {options.n} games in step mode, {n_epochs} epochs an update"
    draw(options.out / "async_learning.png", runs, title)
    for verdict in found:
        print(
            f"{verdict['learner']}: return {verdict['returns_over_ppo']:.3f} of PPO's (goal "
            f"{LEARNS_AS_WELL}), {verdict['speed_over_ppo']:.2f} times as fast (goal {FASTER}), "
            f"{verdict['not_learned_from']:.1%} of the steps not learned from"
        )


if __name__ == "__main__":
    main()
