"""`sc2pool record`: plays episodes of several games and writes them as a dataset."""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import closing

import gymnasium

from sc2pool import SubprocSC2VecEnv
from sc2pool.cli.chosen_player import RANDOM, SCRIPTED, ChosenPlayer
from sc2pool.cli.play import play_episodes, seed_of_this_part
from sc2pool.cli.stop import Stop, say
from sc2pool.cli.table import duration, game_name
from sc2pool.datasets import EpisodeCollector, MinariWriter, check_dataset, folder_of
from sc2pool.errors import ConfigError
from sc2pool.integration import TaskDefinition, agents_of, built_in_name, space_layout

SAY_EVERY_S = 5.0


def run(args: argparse.Namespace) -> int:
    chosen: ChosenPlayer = args.chosen
    player = chosen.name if chosen.name in (RANDOM, SCRIPTED) else "model"
    dataset = args.dataset or f"sc2pool/{chosen.task.__name__}/{player}-v0"
    check_recordable(chosen.task)
    check_dataset(dataset, resume=args.resume)
    stop = Stop()
    with stop.handling():
        games = SubprocSC2VecEnv(n=args.n, task=chosen.task, game=chosen.game, seed=args.seed)
        with closing(games) as env, stop.polite():
            version = game_name(env.stats().game_version)
            about = {
                "algorithm_name": chosen.name,
                "description": f"{chosen.task.__name__}, played on {version}",
            }
            try:
                with closing(
                    MinariWriter(
                        dataset,
                        env.observation_space,
                        env.action_space,
                        env_spec=env_spec_of(chosen),
                        about=about,
                        resume=args.resume,
                    )
                ) as writer:
                    say(f"{chosen.task.__name__}, {chosen.name}, {version}\n  to {writer.folder}")
                    began_s = time.monotonic()
                    fill(writer, env, chosen, args, stop)
            except OSError as error:
                raise ConfigError(
                    f"--dataset {dataset}: cannot be written to {folder_of(dataset)} "
                    f"({error.strerror or error})"
                ) from error
    taken = duration(time.monotonic() - began_s)
    episodes = "1 episode" if writer.episodes == 1 else f"{writer.episodes:,} episodes"
    say(f"{writer.steps:,} steps in {episodes}, {taken}")
    say(f'to read it: minari.load_dataset("{dataset}")')
    return stop.exit_code


def check_recordable(task: type[TaskDefinition]) -> None:
    """Raise `ConfigError` if the values of a space are not arrays of one fixed shape."""
    for name in ("observation_space", "action_space"):
        space = getattr(task, name)
        if not space_layout(space, 0).fixed:
            raise ConfigError(
                f"{task.__name__}: {name} {space} cannot be recorded, only Box, Discrete, "
                "MultiDiscrete, MultiBinary, and Dict and Tuple of these"
            )


def fill(
    writer: MinariWriter,
    env: SubprocSC2VecEnv,
    chosen: ChosenPlayer,
    args: argparse.Namespace,
    stop: Stop,
) -> None:
    """Play until the dataset has `args.steps` steps; after an error, whole episodes are still
    written.

    Raises `OSError` if the dataset cannot be written.
    """
    if writer.steps >= args.steps:  # with --resume
        return
    seed = seed_of_this_part(args.seed, writer.episodes)
    if seed != args.seed:
        env.seed(seed)
    collector = EpisodeCollector(writer.add, keeps_faulty=args.keep_faulty)
    policy = chosen.policy(seed)
    first_steps = writer.steps
    began_s = said_s = time.monotonic()
    try:
        for _ in play_episodes(
            env,
            policy,
            sys.maxsize,
            deterministic=not args.stochastic,
            rows=env.pool.rows,
            watchers=[collector],
        ):
            if writer.steps >= args.steps or stop.signal is not None:
                break
            now_s = time.monotonic()
            if now_s - said_s >= SAY_EVERY_S:
                said_s = now_s
                rate = (writer.steps - first_steps) / (now_s - began_s)
                say(f"{writer.steps:,} / {args.steps:,} steps · {rate:,.0f} steps/s")
    finally:
        writer.flush()


def env_spec_of(chosen: ChosenPlayer) -> gymnasium.envs.registration.EnvSpec | None:
    """The spec from which Minari can make the env; None if gymnasium has no env for the task."""
    task = chosen.task
    alone = task.players == 1 and agents_of(task) == 1
    name = built_in_name(task)
    return gymnasium.spec(f"sc2pool/{name}-v0") if alone and name else None
