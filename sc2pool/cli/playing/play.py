"""Plays a trained model, and prints how it did.

    python scripts/play.py MODEL --task MoveToBeacon [--algo ppo] [--game auto|real|PATH]
        [--opponent zerg medium] [--seed 7] [--realtime] [--stochastic]

as an ordinary python-sc2 bot; the opponent is the game's own computer player, on maps that have a
second player;

    python scripts/play.py MODEL --task MarineDuel --against MODEL|scripted [--matches 10]
        [--replay FILE.SC2Replay] [--picture FILE.gif] [--game …] [--seed 7]

in matches against another model, or against the task's own scripted player; both models draw their
actions, as in training. Replay and picture are of the first match, as the first model sees it.

A MODEL is what SB3's `model.save` wrote (`runs/…/model.zip`). The task is a built-in one's name, or
`module:Class`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import sc2pool
from sc2pool.cli.arguments import integer
from sc2pool.cli.training.self_play.opponents import scripted_player
from sc2pool.cli.training.settings.algorithms import ALGORITHMS, check_algorithm
from sc2pool.config import PoolConfig, ReplayPolicy
from sc2pool.errors import ConfigError
from sc2pool.game.installation import find, find_map
from sc2pool.protocol.game_time import LOOPS_PER_S
from sc2pool.tasks.definition import TaskDefinition
from sc2pool.tasks.opponents.models import SavedModel
from sc2pool.tasks.opponents.results import RESULT
from sc2pool.tasks.players.replays import REPLAY
from sc2pool.tasks.registry import resolve


def main() -> None:
    parser = argument_parser()
    options = parser.parse_args()
    try:
        task = resolve(options.task)
        if options.against is not None:
            print(play_matches(options, task))
            return
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
    parser.add_argument("--against", help="another model's file, or: scripted")
    parser.add_argument("--matches", type=integer(1), default=10, help="how many (default: 10)")
    parser.add_argument("--replay", type=Path, help="write the first match's replay to this file")
    parser.add_argument("--picture", type=Path, help="draw the first match, as a GIF file")
    parser.add_argument("--seed", type=int, help="of the game")
    parser.add_argument("--realtime", action="store_true", help="as fast as people play")
    parser.add_argument(
        "--stochastic", action="store_true", help="without --against: draw actions, as in training"
    )
    return parser


def play_matches(options: argparse.Namespace, task: type[TaskDefinition]) -> str:
    """Play the matches against `--against`; what came of them.

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
        env = sc2pool.SubprocSC2VecEnv(
            n=1,
            task=task,
            game=options.game,
            opponent=against,
            seed=options.seed,
            render_mode="rgb_array" if options.picture else None,
            config=PoolConfig(replays=replays if options.replay else None),
        )
        try:
            results = results_of(env, model, options)
            version = env.stats().game_version
        finally:
            env.close()
    undecided = sum(results.values()) - results["win"] - results["loss"]
    return (
        f"{task.__name__}, game {version}: {options.model} won {results['win']} of "
        f"{sum(results.values())} matches against {options.against}, lost {results['loss']}"
        + f", {undecided} undecided"
        * bool(undecided)
    )


def results_of(env: Any, model: SavedModel, options: argparse.Namespace) -> Counter[str]:
    """How often the model's matches ended with each result; writes replay and picture."""
    policy = model.load()
    masks = hasattr(resolve(options.task), "action_masks") and "Maskable" in type(policy).__name__
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
        loops = resolve(options.task).step_mul
        draw(frames, round(1000 * loops / LOOPS_PER_S), options.picture)
    return results


def draw(frames: list[Any], frame_ms: int, path: Path) -> None:
    """Write the frames as an animated picture; the last one is shown for two seconds."""
    from PIL import Image  # noqa: PLC0415 - only pictures need it

    first, *others = [Image.fromarray(one).quantize(dither=Image.Dither.NONE) for one in frames]
    durations_ms = [frame_ms] * len(others) + [2000]
    first.save(path, save_all=True, append_images=others, duration=durations_ms, loop=0)


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
