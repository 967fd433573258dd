"""Scores to compare with: published scores of the real game, and our measurements on the stand-in.

The published scores come from the table of mini-game results in the SC2LE paper (Vinyals et al.,
2017, arXiv:1708.04782). The table has the scores of the random policy, the DeepMind human
player and the StarCraft grandmaster, and the best mean of the FullyConv agent. The paper's random
policy acts in the game's full function space. A random policy's score in sc2pool differs, because
the score depends on the task's action space.
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
"""The published scores by map name. BuildMarines' random mean, "< 1" in the paper, is 1 here."""


class StandInScores(NamedTuple):
    """Mean returns on the stand-in. The ranges and episode counts are in `sc2standin/README.md`."""

    random: float
    """The mean return of a player that draws each action uniformly from the possible actions."""
    scripted: float
    """The mean return of the scripted player; in SMAC's scenarios, this is SMAC's heuristic."""


ON_THE_STANDIN: dict[str, StandInScores] = {
    "MoveToBeacon": StandInScores(0.6, 25.5),
    "CollectMineralShards": StandInScores(11.3, 147.2),
    "FindAndDefeatZerglings": StandInScores(14.1, 48.7),
    "DefeatRoaches": StandInScores(-4.0, 102.6),
    "DefeatZerglingsAndBanelings": StandInScores(14.2, 818.8),
    "CollectMineralsAndGas": StandInScores(4845.5, 5869.5),
    "BuildMarines": StandInScores(50.8, 123.0),
    "3m": StandInScores(1.7, 18.0),
    "8m": StandInScores(2.1, 17.2),
    "25m": StandInScores(2.5, 18.9),
    "5m_vs_6m": StandInScores(1.6, 7.8),
    "8m_vs_9m": StandInScores(1.9, 11.2),
    "10m_vs_11m": StandInScores(2.0, 12.8),
    "27m_vs_30m": StandInScores(2.2, 15.0),
    "MMM": StandInScores(2.3, 13.2),
    "MMM2": StandInScores(1.6, 7.0),
    "2s3z": StandInScores(4.0, 18.6),
    "3s5z": StandInScores(4.5, 14.7),
    "3s5z_vs_3s6z": StandInScores(3.9, 8.4),
    "3s_vs_3z": StandInScores(4.5, 8.7),
    "3s_vs_4z": StandInScores(3.5, 5.9),
    "3s_vs_5z": StandInScores(2.9, 4.2),
    "1c3s5z": StandInScores(6.6, 19.4),
    "2m_vs_1z": StandInScores(1.4, 5.2),
    "corridor": StandInScores(4.3, 19.1),
    "6h_vs_8z": StandInScores(5.2, 7.9),
    "2s_vs_1sc": StandInScores(0.9, 8.9),
    "so_many_baneling": StandInScores(13.3, 5.5),
    "bane_vs_bane": StandInScores(18.6, 17.7),
    "2c_vs_64zg": StandInScores(14.8, 20.0),
}
"""The measured scores by map name."""


class MapScores(NamedTuple):
    """The published and measured scores of one map; None for an unknown score."""

    standin: StandInScores | None
    published: PublishedScores | None


def scores_of(map_name: str) -> MapScores:
    """The scores to compare with on the map of this name."""
    return MapScores(ON_THE_STANDIN.get(map_name), PUBLISHED.get(map_name))
