"""`sc2pool play`: a trained model plays, and how it did is printed.

It plays as an ordinary python-sc2 bot; the opponent is the game's own computer player, on maps that
have a second player. With `--against` it plays matches (`matches`).
"""

from __future__ import annotations

import argparse
import os
from typing import Any

from sc2pool.cli.training.settings.algorithms import ALGORITHMS, check_algorithm
from sc2pool.errors import ConfigError
from sc2pool.game.installation import find, find_map
from sc2pool.tasks.definition import TaskDefinition
from sc2pool.tasks.policy_bot import PolicyBot
from sc2pool.tasks.registry import resolve


def run(args: argparse.Namespace) -> int:
    """Play what the arguments say."""
    task = resolve(args.task)
    if not args.model.is_file():
        raise ConfigError(f"{args.model}: no such file")
    if args.against is not None:
        from sc2pool.cli.playing.matches import play_matches  # noqa: PLC0415 - it imports SB3

        print(play_matches(args, task))
    else:
        print(play_as_bot(args, task))
    return 0


def play_as_bot(args: argparse.Namespace, task: type[TaskDefinition]) -> str:
    """Play one game; a line that says how it went.

    Raises:
        ConfigError: the model or the task cannot be played, no installation, no such map.
    """
    installation = find(args.game)
    map_path = find_map(installation, task.map_name)
    check_algorithm(args.algo, task)
    model = ALGORITHMS[args.algo].load_class().load(args.model, device="cpu")
    bot = PolicyBot(task, model, deterministic=not args.stochastic)
    os.environ["SC2PATH"] = str(installation.root)
    # python-sc2 takes over signals and logging when `sc2.main` is imported, so not before this.
    from sc2.main import run_game  # noqa: PLC0415
    from sc2.maps import Map  # noqa: PLC0415

    result: Any = run_game(
        Map(map_path),
        _players(bot, task, args.opponent),
        realtime=bool(args.realtime),
        random_seed=args.seed,
        disable_fog=task.disable_fog,
    )
    return (
        f"{task.__name__}, game {bot.game_version}: {bot.steps} steps, "
        f"return {bot.episode_return:g}, result {result.name}"
    )


def _players(bot: Any, task: type[TaskDefinition], opponent: list[str] | None) -> list[Any]:
    """The bot, and the computers it plays against: the one asked for, else the task's own."""
    from sc2.data import Difficulty, Race  # noqa: PLC0415
    from sc2.player import Bot, Computer  # noqa: PLC0415

    computers = [
        Computer(Race(computer.race), Difficulty(computer.difficulty))
        for computer in task.opponents
    ]
    if opponent is not None:
        race, difficulty = opponent
        computers = [Computer(_member(Race, race), _member(Difficulty, difficulty))]
    return [Bot(Race(task.race_requested), bot), *computers]


def _member(kind: Any, name: str) -> Any:
    """The enum's member of this name, however it is capitalised."""
    for one in kind:
        if one.name.lower() == name.lower():
            return one
    raise ConfigError(f"--opponent: {name!r} is none of {', '.join(one.name for one in kind)}")
