"""Measures what random and scripted players score on the built-in mini-games.

Usage: `scores.py [--game auto|real|PATH] [--episodes 20] [--task NAME ...]`. The script prints a
Markdown table with the measured and the published scores, and two verdicts. The first verdict is
"yes" if the scripted player's score is between 0.85 times the human's and 1.2 times the
grandmaster's. The second verdict is "yes" if every random episode scores less than the published
random maximum. On the stand-in, a "no" shows that one of the stand-in's rules makes the game easier
or harder than the real game.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import closing
from statistics import mean
from typing import Any

from gymnasium import spaces

import sc2pool
from sc2pool.cli.bench.measuring import markdown, tell
from sc2pool.cli.chosen_player import scripted_player
from sc2pool.tasks.minigames.scores import PUBLISHED, PublishedScores
from sc2pool.tasks.minigames.scripted import SCRIPTED
from sc2pool.tasks.registry import resolve_task

Policy = Callable[[Any], Any]
TASKS = (*SCRIPTED, "Melee")

HEAD = (
    "task",
    "random mean (max)",
    "scripted mean (min–max)",
    "human",
    "grandmaster",
    "scripted in bounds",
    "random in bounds",
)


def main() -> None:
    options = parse_arguments()
    rows = []
    for task in options.task:
        published = PUBLISHED.get(resolve_task(task).map_name)
        with closing(sc2pool.SC2GymEnv(task=task, game=options.game)) as env:
            random_scores = play(env, random_policy(env.action_space), options.episodes)
            scripted_scores = play(env, scripted_player(resolve_task(task)), options.episodes)
            version = env.stats().game_version
        rows.append(row(task, random_scores, scripted_scores, published))
        tell(f"{task}: played")
    print(markdown(HEAD, rows))
    print(f"\nGame {version}, {options.episodes} episodes for each player and task.")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--game", default="auto", help="auto, real, or an installation's path")
    parser.add_argument("--episodes", type=int, default=20, help="per task and player")
    parser.add_argument("--task", nargs="+", choices=TASKS, default=list(SCRIPTED))
    return parser.parse_args()


def random_policy(actions: spaces.Space[Any]) -> Policy:
    """A policy that acts uniformly at random, with the same actions in every run."""
    actions.seed(0)
    return lambda _observation: actions.sample()


def play(env: Any, policy: Policy, episodes: int) -> list[float]:
    """The scores of some episodes; episode k has the seed k."""
    scores = []
    for seed in range(episodes):
        observation, _ = env.reset(seed=seed)
        score, over = 0.0, False
        while not over:
            observation, reward, terminated, truncated, _ = env.step(policy(observation))
            score += reward
            over = terminated or truncated
        scores.append(score)
    return scores


def row(
    task: str, random: list[float], scripted: list[float], published: PublishedScores | None
) -> tuple[str, ...]:
    """One line of the table."""
    random_mean, scripted_mean = mean(random), mean(scripted)
    if published is None:
        measured = ((random_mean, random), (scripted_mean, scripted))
        cells = (f"{middle:.2f} ({min(all_):.2f}–{max(all_):.2f})" for middle, all_ in measured)
        return (task, *cells, "–", "–", "–", "–")
    lowest, highest = 0.85 * published.human, 1.2 * published.grandmaster
    return (
        task,
        f"{random_mean:.1f} ({max(random):.0f})",
        f"{scripted_mean:.1f} ({min(scripted):.0f}–{max(scripted):.0f})",
        f"{published.human:.0f}",
        f"{published.grandmaster:.0f}",
        f"{verdict(lowest <= scripted_mean <= highest)} ({lowest:.0f}–{highest:.0f})",
        f"{verdict(max(random) <= published.random_max)} (≤ {published.random_max:.0f})",
    )


def verdict(in_bounds: bool) -> str:
    return "yes" if in_bounds else "no"


if __name__ == "__main__":
    main()
