"""The games of a run: on this machine, or on the nodes of a Ray cluster."""

from __future__ import annotations

import sys
from typing import Any

import cloudpickle

from sc2pool import SubprocSC2VecEnv
from sc2pool.cli.training.self_play.opponents import learns_against, taking_turns, yardsticks
from sc2pool.cli.training.settings.options import TrainOptions
from sc2pool.config import PoolConfig
from sc2pool.envs.sb3 import PoolVecEnv
from sc2pool.tasks.registry import resolve

MOST_EVALUATED = 2
"""Games that evaluations are played in; they idle in between."""


def connect(options: TrainOptions) -> None:
    """Connect to the run's cluster, if it has one; Ray then handles SIGTERM, until others do.

    Raises:
        ConfigError: no cluster answers.
    """
    if options.ray is not None:
        from sc2pool.ray import cluster  # noqa: PLC0415

        cluster.connect(options.ray)


def training_games(options: TrainOptions) -> PoolVecEnv[Any]:
    """The games that are learned from. They have no seed: the model seeds the env."""
    return _make(
        options,
        learns_against(options),
        n=options.n,
        spares=options.spares,
        render_mode="human" if options.watch else None,
        config=PoolConfig(metrics_port=options.metrics_port),
    )


def evaluation_games(options: TrainOptions) -> PoolVecEnv[Any]:
    """The games of evaluations; with self-play against opponents that take turns."""
    return _make(
        options,
        taking_turns(yardsticks(options)) if options.self_play else None,
        n=min(MOST_EVALUATED, options.n, options.eval_episodes),
        render_mode="rgb_array" if options.video else None,
    )


def _make(options: TrainOptions, opponent: object, **keywords: Any) -> PoolVecEnv[Any]:
    if options.ray is None:
        return SubprocSC2VecEnv(
            task=options.task,
            game=str(options.installation),
            realtime=options.realtime,
            opponent=opponent,
            **keywords,
        )
    from sc2pool.ray import RaySC2VecEnv  # noqa: PLC0415

    assert opponent is None, "self-play is refused with a cluster"
    task = resolve(options.task)
    if not task.__module__.startswith("sc2pool."):
        # The nodes need not have the user's module: the class travels as a whole.
        cloudpickle.register_pickle_by_value(sys.modules[task.__module__])
    return RaySC2VecEnv(task=task, address=options.ray, game=options.game, **keywords)


def where(env: object) -> str:
    """Which node plays how many games; empty on this machine alone."""
    by_node: dict[str, int] = getattr(getattr(env, "pool", None), "games_by_node", dict)()
    return ", ".join(f"{node} × {count}" for node, count in by_node.items())
