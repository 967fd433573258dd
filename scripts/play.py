"""Plays a trained model as an ordinary python-sc2 bot, and prints how it did.

    python scripts/play.py MODEL --task MoveToBeacon [--algo ppo] [--game auto|real|PATH]
        [--opponent zerg medium] [--seed 7] [--realtime] [--stochastic]

MODEL is what SB3's `model.save` wrote (`runs/…/model.zip`). The task is a built-in one's name, or
`module:Class`. An opponent is the game's own computer player, on maps that have a second player.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import sc2pool
from sc2pool.cli.training.settings.algorithms import ALGORITHMS, check_algorithm
from sc2pool.errors import ConfigError
from sc2pool.game.installation import find, find_map
from sc2pool.tasks.definition import TaskDefinition
from sc2pool.tasks.registry import resolve


def main() -> None:
    parser = argument_parser()
    options = parser.parse_args()
    try:
        task = resolve(options.task)
        installation = find(options.game)
        map_path = find_map(installation, task.map_name)
        if not options.model.is_file():
            raise ConfigError(f"{options.model}: no such file")
        check_algorithm(options.algo, task)
        model = ALGORITHMS[options.algo].load_class().load(options.model, device="cpu")
        bot = sc2pool.PolicyBot(task, model, deterministic=not options.stochastic)
    except ConfigError as error:
        parser.error(str(error))
    os.environ["SC2PATH"] = str(installation.root)
    # python-sc2 takes over signals and logging when `sc2.main` is imported, so not before this.
    from sc2.main import run_game  # noqa: PLC0415
    from sc2.maps import Map  # noqa: PLC0415

    result = run_game(
        Map(map_path),
        players(bot, task, options.opponent),
        realtime=options.realtime,
        random_seed=options.seed,
        disable_fog=task.disable_fog,
    )
    print(
        f"{task.__name__}, game {bot.game_version}: {bot.steps} steps, "
        f"return {bot.episode_return:g}, result {result.name}"
    )


def argument_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model", type=Path, help="the file that the model was saved to")
    parser.add_argument("--task", required=True, help="the task's name, or module:Class")
    parser.add_argument("--algo", default="ppo", choices=ALGORITHMS, help="that trained it")
    parser.add_argument("--game", default="auto", help="auto, real, or an installation's path")
    parser.add_argument(
        "--opponent",
        nargs=2,
        metavar=("RACE", "DIFFICULTY"),
        help="the computer, in python-sc2's words: zerg medium, random veryeasy, …",
    )
    parser.add_argument("--seed", type=int, help="of the game")
    parser.add_argument("--realtime", action="store_true", help="as fast as people play")
    parser.add_argument(
        "--stochastic", action="store_true", help="draw actions, as in training, not the best one"
    )
    return parser


def players(bot: Any, task: type[TaskDefinition], opponent: list[str] | None) -> list[Any]:
    """The bot, and the computers it plays against: the one asked for, else the task's own."""
    from sc2.data import Difficulty, Race  # noqa: PLC0415
    from sc2.player import Bot, Computer  # noqa: PLC0415

    computers = [
        Computer(Race(computer.race), Difficulty(computer.difficulty))
        for computer in task.opponents
    ]
    if opponent is not None:
        race, difficulty = opponent
        computers = [Computer(member(Race, race), member(Difficulty, difficulty))]
    return [Bot(Race(task.race_requested), bot), *computers]


def member(kind: Any, name: str) -> Any:
    """The enum's member of this name, however it is capitalised."""
    for one in kind:
        if one.name.lower() == name.lower():
            return one
    raise SystemExit(f"--opponent: {name!r} is none of {', '.join(one.name for one in kind)}")


if __name__ == "__main__":
    main()
