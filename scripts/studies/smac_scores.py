"""Plays scenarios of SMAC and SMACv2 with random agents and the scripted player: a table.

    python scripts/studies/smac_scores.py [SCENARIO ...] [--episodes 20] [--game auto|real|PATH]

The scripted player attacks from any distance, as SMAC's `heuristic_ai`, or, in the last columns,
takes only the actions that an agent has (`heuristic_rest`). Seeds are the same in every run.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from statistics import mean, pstdev

import numpy as np

from sc2pool import StarCraft2Env
from sc2pool.cli.bench.output import markdown, tell
from sc2pool.tasks.registry import SMAC, SMACV2

USUAL = (
    *("3m", "8m", "5m_vs_6m", "2s3z", "3s_vs_3z", "corridor", "MMM"),
    *("1c3s5z", "3s5z", "10m_vs_11m", "bane_vs_bane"),
)
"""The scenarios that the stand-in's page has figures of, played with SMAC's own package."""
PLAYERS: dict[str, dict[str, bool]] = {
    "random": {},
    "heuristic": {"heuristic_ai": True},
    "heuristic, available actions": {"heuristic_ai": True, "heuristic_rest": True},
}
"""SMAC's options for each player."""
HEAD = ("scenario", *(f"{name}: return, win rate" for name in PLAYERS))


@dataclass(frozen=True)
class Played:
    """Some battles of one player."""

    returns: list[float]
    win_rate: float

    def __str__(self) -> str:
        spread = f"{mean(self.returns):.1f} ± {pstdev(self.returns):.1f}"
        return f"{spread} ({min(self.returns):.1f}–{max(self.returns):.1f}), {self.win_rate:.2f}"


def main() -> None:
    options = parse_arguments()
    rows = []
    for scenario in options.scenarios:
        of_players = [
            str(played(scenario, chosen, options.episodes, options.game))
            for chosen in PLAYERS.values()
        ]
        rows.append((scenario, *of_players))
        tell(f"{scenario}: played")
    print(markdown(HEAD, rows))
    print(f"\n{options.episodes} battles of each player and scenario.")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("scenarios", nargs="*", default=USUAL, metavar="SCENARIO")
    parser.add_argument("--episodes", type=int, default=20, help="per scenario and player")
    parser.add_argument("--game", default="auto", help="auto, real, or an installation's path")
    options = parser.parse_args()
    for scenario in options.scenarios:
        if scenario not in (*SMAC, *SMACV2):
            parser.error(f"no scenario {scenario!r}; there are {', '.join((*SMAC, *SMACV2))}")
    return options


def played(scenario: str, chosen: dict[str, bool], episodes: int, game: str) -> Played:
    """Battles with some of SMAC's options; actions are random, unless the options replace them."""
    env = StarCraft2Env(map_name=scenario, seed=1, game=game, **chosen)
    rng = np.random.default_rng(1)
    returns = []
    try:
        for _ in range(episodes):
            env.reset()
            total, over = 0.0, False
            while not over:
                able = env.get_avail_actions()
                reward, over, _ = env.step([int(rng.choice(np.flatnonzero(one))) for one in able])
                total += reward
            returns.append(total)
        return Played(returns, env.get_stats()["win_rate"])
    finally:
        env.close()


if __name__ == "__main__":
    main()
