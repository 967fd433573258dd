"""Scores to hold one's own against: of the paper on the real game, and of ours on the stand-in.

From the SC2LE paper: Vinyals et al., "StarCraft II: A New Challenge for Reinforcement Learning",
2017, arXiv:1708.04782, its table of mini-game results: the random policy, the DeepMind human
player, the StarCraft grandmaster, and the FullyConv agent's best mean. The random policy there
acts in the game's full function space; how a random policy of a task scores depends on the task's
action space.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


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


class StandInScores(NamedTuple):
    """Mean returns of 20 episodes on the stand-in; `sc2standin/README.md` has the ranges."""

    random: float
    """Of uniformly random possible actions."""
    scripted: float
    """Of the scripted player; in SMAC's scenarios, of SMAC's heuristic."""


ON_THE_STANDIN: dict[str, StandInScores] = {
    "MoveToBeacon": StandInScores(0.6, 25.5),
    "CollectMineralShards": StandInScores(11.3, 146.6),
    "FindAndDefeatZerglings": StandInScores(13.0, 48.4),
    "DefeatRoaches": StandInScores(-4.5, 120.0),
    "DefeatZerglingsAndBanelings": StandInScores(15.8, 1144.8),
    "CollectMineralsAndGas": StandInScores(4709.8, 5896.8),
    "BuildMarines": StandInScores(51.5, 135.0),
    "3m": StandInScores(1.7, 17.0),
    "8m": StandInScores(2.2, 12.1),
    "5m_vs_6m": StandInScores(1.5, 6.8),
    "2s3z": StandInScores(3.8, 20.0),
    "3s_vs_3z": StandInScores(4.4, 9.2),
    "corridor": StandInScores(4.4, 9.3),
    "MMM": StandInScores(2.6, 6.6),
}
"""By map name."""
