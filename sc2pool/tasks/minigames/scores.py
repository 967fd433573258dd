"""Published scores of the seven mini-games, to hold one's own against.

From the SC2LE paper: Vinyals et al., "StarCraft II: A New Challenge for Reinforcement Learning",
2017, arXiv:1708.04782, its table of mini-game results: the random policy, the DeepMind human
player, the StarCraft grandmaster, and the FullyConv agent's best mean. The random policy there
acts in the game's full function space; how a random policy of a task scores depends on the task's
action space.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PublishedScores:
    """Scores per episode on one map, as published."""

    random_mean: float
    random_max: float
    human: float
    grandmaster: float
    agent_best_mean: float
    """The best mean of the FullyConv agent."""


PUBLISHED: dict[str, PublishedScores] = {
    "MoveToBeacon": PublishedScores(1, 6, 26, 28, 26),
    "CollectMineralShards": PublishedScores(17, 35, 133, 177, 103),
    "FindAndDefeatZerglings": PublishedScores(4, 19, 46, 61, 45),
    "DefeatRoaches": PublishedScores(1, 46, 41, 215, 100),
    "DefeatZerglingsAndBanelings": PublishedScores(23, 118, 729, 727, 62),
    "CollectMineralsAndGas": PublishedScores(12, 750, 6880, 7566, 3978),
    "BuildMarines": PublishedScores(1, 5, 138, 133, 3),
}
"""By map name. The paper gives BuildMarines' random mean as "< 1"; it stands here as 1."""
