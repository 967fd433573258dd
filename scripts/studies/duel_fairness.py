"""Plays duels in which the scripted player has both sides, and counts who wins.

    python scripts/studies/duel_fairness.py [TASK ...] [--matches 200] [--n 2] [--seed 1]

The first player is the one that has created the game (the host), and stands where the scenario's
own team stands; the second has joined it. Both know and do the same, so each should win half of the
matches that have a winner. The last column is how probable a split at least as uneven is then (the
exact binomial test, both sides).
"""

from __future__ import annotations

import argparse
from collections import Counter
from math import comb
from typing import Any

import numpy as np

from sc2pool import SubprocSC2VecEnv
from sc2pool.cli.bench.output import markdown, tell
from sc2pool.tasks.definition import TaskDefinition
from sc2pool.tasks.opponents.results import RESULT
from sc2pool.tasks.registry import SMAC_DUELS, resolve
from sc2pool.tasks.teams.team_task import agents_of

USUAL = ("MarineDuel", *SMAC_DUELS)
HEAD = ("task", "matches", "first player won", "second player won", "neither", "p")


def main() -> None:
    options = parse_arguments()
    rows = []
    together: Counter[str] = Counter()
    for name in options.tasks:
        found = played(resolve(name), options.matches, n=options.n, seed=options.seed)
        together += found
        rows.append(row_of(name, found))
        tell(f"{name}: played")
    print(markdown(HEAD, [*rows, row_of("all", together)]))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("tasks", nargs="*", default=USUAL, metavar="TASK")
    parser.add_argument("--matches", type=int, default=200, help="of each task")
    parser.add_argument("--n", type=int, default=2, help="at once")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for name in options.tasks:
        if name not in USUAL:
            parser.error(f"no duel {name!r}; there is {', '.join(USUAL)}")
    return options


def played(task: type[TaskDefinition], matches: int, *, n: int, seed: int) -> Counter[str]:
    """How often each result came for the first player.

    The matches that begin first are counted, not those that end first.
    """
    scripted: Any = task.scripted  # type: ignore[attr-defined]
    rows = 2 * agents_of(task)
    results: Counter[str] = Counter()
    env = SubprocSC2VecEnv(task, n=n, seed=seed)
    try:
        playing = list(range(n))
        begun = n
        seen: Any = env.reset()
        while results.total() < matches:
            seen, _, dones, infos = env.step(np.array([scripted(one) for one in seen]))
            for index in np.flatnonzero(dones[::rows]).tolist():
                if playing[index] < matches:
                    results[infos[index * rows][RESULT]] += 1
                playing[index] = begun
                begun += 1
    finally:
        env.close()
    return results


def row_of(name: str, results: Counter[str]) -> tuple[str, ...]:
    """A task's line of the table."""
    first, second = results["win"], results["loss"]
    total = results.total()
    neither = total - first - second
    return name, *map(str, (total, first, second, neither)), f"{chance_of(first, second):.2f}"


def chance_of(first: int, second: int) -> float:
    """How probable a split is that is at least as uneven, if both are as likely to win."""
    n, most = first + second, max(first, second)
    tail = sum(comb(n, k) for k in range(most, n + 1))
    return float(min(1.0, 2 * tail / 2**n))


if __name__ == "__main__":
    main()
