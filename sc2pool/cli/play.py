"""`sc2pool play`: plays episodes or matches of a trained model, and prints the results.

With `--against`, the model samples its actions as in training; without it, the model plays its best
actions. A replay, video or GIF shows the first episode.

`play_episodes`, which other commands also use, plays episodes with a policy and yields each one's
result as soon as the episode has ended. Rules: all games play about the same number of episodes;
otherwise games with short episodes would count more. If a fault cuts an episode short, the episode
is yielded but left out of means, and another episode is played.
"""

from __future__ import annotations

import argparse
import inspect
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from s2clientprotocol import common_pb2, sc2api_pb2
from stable_baselines3.common.vec_env import VecEnv

from sc2pool import SubprocSC2VecEnv
from sc2pool.cli.arguments import check_file
from sc2pool.cli.chosen_player import (
    SCRIPTED,
    ChosenPlayer,
    playable_model,
    say_if_normalized,
    scripted_function,
)
from sc2pool.cli.films import Film, GifFilm, Video
from sc2pool.cli.stop import Stop, say
from sc2pool.cli.table import game_name
from sc2pool.config import Computer, PoolConfig, ReplayPolicy
from sc2pool.errors import ConfigError
from sc2pool.integration import LOOPS_PER_S, Policy, PoolVecEnv, TaskDefinition, VecPool
from sc2pool.utilities import printable, replacing, require

VIDEOS = (".mp4", ".mkv", ".mov", ".avi")
"""Suffixes of containers that can hold H.264, the videos' codec."""
_FIRST_ONLY = 1 << 60
"""A value for `ReplayPolicy.every`, so large that only episode 0's replay is kept."""


def run(args: argparse.Namespace) -> int:
    chosen: ChosenPlayer = args.chosen
    check_files(args)
    with Stop().handling(), ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
        env = make_games(args, chosen, folder)
        opened.callback(env.close)
        loops = env.get_attr("step_mul", [0])[0] if args.watch else None
        version = game_name(env.stats().game_version)
        print(printable(f"{chosen.task.__name__}, {chosen.name}, {version}", None))
        films = films_of(args, env.pool)
        for film in films:
            opened.callback(film.close)
        ended = play_episodes(
            env,
            chosen.policy(args.seed),
            args.episodes,
            deterministic=not (args.stochastic or args.against),
            rows=env.pool.rows,
            loops=loops,
            watchers=films,
        )
        episodes = list(shown(ended))
        print(printable(summary(episodes, opponent_of(args)), None))
        written = [(film.path, not film.failed) for film in films]
        if args.replay is not None:
            written.append((args.replay, save_replay(episodes, args.replay)))
        for file, is_there in written:
            if is_there:
                print(printable(f"  {file}", None))
        return 0 if all(is_there for _, is_there in written) else 2


def check_files(args: argparse.Namespace) -> None:
    """Raise `ConfigError` if a file cannot be written."""
    for option, suffixes in (("replay", []), ("video", VIDEOS), ("gif", [".gif"])):
        if (path := getattr(args, option)) is not None:
            check_file(path, f"--{option}", suffixes)
    if args.video is not None:
        require("--video", "imageio_ffmpeg")


def make_games(args: argparse.Namespace, chosen: ChosenPlayer, replays: Path) -> PoolVecEnv[Any]:
    """The pool of games; replays are written to the folder `replays`."""
    keep = ReplayPolicy(replays, every=_FIRST_ONLY, best=False) if args.replay else None
    task, opponent = against(args, chosen.task)
    return SubprocSC2VecEnv(
        n=min(args.n, args.episodes),
        task=task,
        game=chosen.game,
        seed=args.seed,
        realtime=args.realtime,
        render_mode="human" if args.watch else "rgb_array",
        config=PoolConfig(replays=keep),
        opponent=opponent,
    )


def against(args: argparse.Namespace, task: type[TaskDefinition]) -> tuple[Any, Any]:
    """The task, which gets the computer of `--opponent` if given, and a match's opponent."""
    if args.opponent is not None:
        race, difficulty = args.opponent
        computer = Computer(
            race=_value(common_pb2.Race, race), difficulty=_value(sc2api_pb2.Difficulty, difficulty)
        )
        if task.players == 2:
            return task, computer
        if not task.opponents:
            raise ConfigError(f"--opponent {race} {difficulty}: {task.__name__} has no opponent")
        return type(task.__name__, (task,), {"opponents": (computer,)}), None
    if args.against is None:
        return task, None
    if task.players == 1:
        raise ConfigError(f"--against {args.against}: {task.__name__} has one player")
    if args.against == SCRIPTED:
        return task, scripted_function(task)
    path = playable_model(args.against)
    say_if_normalized(path)
    return task, str(path)


def opponent_of(args: argparse.Namespace) -> str | None:
    """The opponent's name for the summary; None without an opponent."""
    if args.opponent is not None:
        return f"the computer ({' '.join(args.opponent)})"
    return args.against  # type: ignore[no-any-return]


def _value(kind: Any, name: str) -> int:
    """The number of the enum's member of this name; upper and lower case do not matter."""
    for known, number in kind.items():
        if known.lower() == name.lower():
            return int(number)
    raise ConfigError(f"--opponent: {name!r} is none of {', '.join(kind.keys())}")


def films_of(args: argparse.Namespace, pool: VecPool) -> list[Film]:
    fps = float(pool.metadata["render_fps"])
    kinds = ((Video, args.video), (GifFilm, args.gif))
    return [kind(path, pool, fps) for kind, path in kinds if path is not None]


def shown(episodes: Iterator[Ended]) -> Iterator[Ended]:
    """Print a line for each episode, then yield the episode unchanged."""
    print("episode     return   steps  end")
    for number, ended in enumerate(episodes, 1):
        figures = f"{number:7d} {ended.episode_return:10.2f} {ended.steps:7d}  {ended.end}"
        print(printable(figures, None), flush=True)
        yield ended


def save_replay(episodes: list[Ended], replay: Path) -> bool:
    """Move the first episode's replay to `replay`; if that fails, print why and return False."""
    key = "sc2pool.replay"
    saved = next((one.info[key] for one in episodes if key in one.info), None)
    if saved is None:
        say(f"cannot write {replay}: the game did not save its first episode")
        return False
    try:
        replay.parent.mkdir(parents=True, exist_ok=True)
        with replacing(replay) as unfinished:
            shutil.move(saved, unfinished)
    except OSError as error:
        say(f"cannot write {replay}: {error.strerror or error}")
        return False
    return True


def summary(episodes: list[Ended], opponent: str | None) -> str:
    """A text with match results and mean return, without episodes that a fault cut short."""
    whole = [episode for episode in episodes if episode.whole]
    returns = np.array([episode.episode_return for episode in whole])
    count = f"{len(whole)} episode{'s' * (len(whole) != 1)}"
    words = f"mean return {returns.mean():.2f} ± {returns.std():.2f} over {count}"
    if opponent is None:
        return words
    results = Counter(episode.end for episode in whole)
    undecided = len(whole) - results["win"] - results["loss"]
    ties = f", {undecided} undecided" if undecided else ""
    return (
        f"won {results['win']} of {len(whole)} matches against {opponent}, "
        f"lost {results['loss']}{ties}; {words}"
    )


class Ended(NamedTuple):
    episode_return: float
    """The sum of the first player's rewards."""
    steps: int
    end: str
    """The match's result; if the episode has no result, the reason for its end."""
    whole: bool
    """True unless a fault cut the episode short."""
    info: dict[str, Any]


class Watcher(Protocol):
    """An observer that is called once at the beginning and then after each step."""

    def begin(self, observations: Any, /) -> None:
        """Called when all rows have begun an episode."""
        ...

    def step(self, actions: Any, observations: Any, rewards: Any, over: Any, infos: Any, /) -> None:
        """Called after each step, with the actions and the results of `VecEnv.step`."""
        ...


def play_episodes(
    env: VecEnv,
    policy: Policy,
    episodes: int,
    *,
    deterministic: bool,
    rows: int = 1,
    loops: int | None = None,
    watchers: Sequence[Watcher] = (),
    stop: Stop | None = None,
) -> Iterator[Ended]:
    """Play this number of whole episodes in games that have not been reset yet.

    Each game has `rows` rows; only the results of its first row are yielded. Each step plays
    `loops` game loops at the game's normal speed; if `loops` is None, the games run at full speed.
    A signal that `stop` receives ends the episodes.
    """
    torch.set_num_threads(1)  # use one core, because the games need all others
    first_rows = range(0, env.num_envs, rows)
    left = [(episodes + game) // len(first_rows) for game in range(len(first_rows))]
    returns, steps = np.zeros(env.num_envs), np.zeros(env.num_envs, int)
    next_step = time.monotonic()
    for rewards, over, infos in play_steps(env, policy, watchers, stop, deterministic):
        returns += rewards
        steps += 1
        for game, row in enumerate(first_rows):
            if over[row] and left[game]:
                end, whole = end_of(infos[row])
                left[game] -= whole
                yield Ended(float(returns[row]), int(steps[row]), end, whole, infos[row])
        returns[over] = steps[over] = 0
        if loops is not None:
            next_step += loops / LOOPS_PER_S
            time.sleep(max(0.0, next_step - time.monotonic()))
        if not any(left):
            return


def play_steps(
    env: VecEnv, policy: Policy, watchers: Sequence[Watcher], stop: Stop | None, deterministic: bool
) -> Iterator[tuple[Any, Any, Any]]:
    """Play until `stop` receives a signal; yields each step's rewards, ends and infos."""
    masks = "action_masks" in inspect.signature(policy.predict).parameters
    masks = masks and env.has_attr("action_masks")
    seen, over, state = env.reset(), np.ones(env.num_envs, bool), None
    for watcher in watchers:
        watcher.begin(seen)
    while stop is None or stop.signal is None:
        more = {"action_masks": np.stack(env.env_method("action_masks"))} if masks else {}
        actions, state = policy.predict(
            seen, state=state, episode_start=over, deterministic=deterministic, **more
        )
        seen, rewards, over, infos = env.step(actions)
        for watcher in watchers:
            watcher.step(actions, seen, rewards, over, infos)
        yield rewards, over, infos


def end_of(info: dict[str, Any]) -> tuple[str, bool]:
    """A text on how the episode with this last info ended; False if a fault cut it short."""
    if "sc2pool.fault" in info:
        return f"fault: {info['sc2pool.fault']['kind']}", False
    if "sc2pool.result" in info:
        return info["sc2pool.result"], True
    return "time limit" if info["TimeLimit.truncated"] else "ended", True


def seed_of_this_part(seed: int | None, done: int) -> int | None:
    """The seed of a later part of a resumed run or recording, after `done` steps or episodes.

    `seed` is the seed of the first part, or None if that part has no seed. With the first part's
    seed, a later part would repeat the first part.
    """
    if seed is None or not done:
        return seed
    return int(np.random.SeedSequence([seed, done]).generate_state(1)[0])
