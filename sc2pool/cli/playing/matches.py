"""A trained model plays matches against another, or against the task's scripted player.

Both models draw their actions, as in training. Replay and picture are of the first match, as the
first model sees it.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from sc2pool import SubprocSC2VecEnv
from sc2pool.cli.training.self_play.opponents import scripted_player
from sc2pool.config import PoolConfig, ReplayPolicy
from sc2pool.errors import ConfigError
from sc2pool.tasks.definition import TaskDefinition
from sc2pool.tasks.opponents.models import SavedModel
from sc2pool.tasks.opponents.results import RESULT
from sc2pool.tasks.players.replays import REPLAY


def play_matches(options: argparse.Namespace, task: type[TaskDefinition]) -> str:
    """Play the matches against `--against`; a line that says how they ended.

    Raises:
        ConfigError: a model, the task or the opponent cannot be played.
    """
    model = SavedModel(options.model.stem, options.model)
    model.check_spaces(task.observation_space, task.action_space)
    against: Any = options.against
    if against == "scripted":
        against = scripted_player(task)
        if against is None:
            raise ConfigError(f"--against scripted: {task.__name__} has no scripted player")
    with tempfile.TemporaryDirectory() as folder:
        replays = ReplayPolicy(Path(folder), every=options.matches, best=False)
        env = SubprocSC2VecEnv(
            n=1,
            task=task,
            game=options.game,
            opponent=against,
            seed=options.seed,
            render_mode="rgb_array" if options.picture else None,
            config=PoolConfig(replays=replays if options.replay else None),
        )
        try:
            results = _results_of(env, task, model, options)
            version = env.stats().game_version
        finally:
            env.close()
    undecided = sum(results.values()) - results["win"] - results["loss"]
    ties = f", {undecided} undecided" if undecided else ""
    return (
        f"{task.__name__}, game {version}: {options.model} won {results['win']} of "
        f"{sum(results.values())} matches against {options.against}, lost {results['loss']}{ties}"
    )


def _results_of(
    env: Any, task: type[TaskDefinition], model: SavedModel, options: argparse.Namespace
) -> Counter[str]:
    """The number of the model's matches with each result; writes replay and picture."""
    policy: Any = model.load()
    masks = hasattr(task, "action_masks") and "Maskable" in type(policy).__name__
    results: Counter[str] = Counter()
    frames: list[Any] = []
    seen = env.reset()
    over = np.array([True])
    state = None
    while sum(results.values()) < options.matches:
        if options.picture and not results:
            frames += env.get_images()
        more = {"action_masks": np.stack(env.env_method("action_masks"))} if masks else {}
        actions, state = policy.predict(seen, state=state, episode_start=over, **more)
        seen, _, over, (info, *_) = env.step(actions)  # all agents of a team have the same
        if RESULT not in info:  # the match goes on, or a fault has cut it short
            continue
        results[info[RESULT]] += 1
        if REPLAY in info and options.replay:
            shutil.move(info[REPLAY], options.replay)
    if options.picture:
        from sc2pool.cli.playing.picture import frame_of, write_picture  # noqa: PLC0415

        write_picture(options.picture, list(map(frame_of, frames)), task.step_mul)
    return results
