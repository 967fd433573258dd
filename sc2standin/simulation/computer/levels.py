"""How good a computer player is, by difficulty.

The differences are our choice: the real game's are in its scripts. A stronger one thinks more
often, has more workers, more barracks earlier, and attacks earlier with more marines.
"""

from __future__ import annotations

from dataclasses import dataclass

from s2clientprotocol import sc2api_pb2 as sc_pb


@dataclass(frozen=True)
class Level:
    """The behaviour of one difficulty."""

    thinks_every_loops: int
    workers: int
    barracks: int
    barracks_from_loop: int
    """Loop before which it builds no barracks."""
    attacks_with: int
    """Marines of the first attack; each later one has as many more."""
    attacks_from_loop: int
    workers_fight: bool
    """True if workers defend their town."""


VERY_EASY = Level(224, 13, 1, 5000, 6, 9000, workers_fight=False)
EASY = Level(112, 14, 2, 3000, 8, 7000, workers_fight=True)
MEDIUM = Level(64, 16, 2, 1500, 8, 5500, workers_fight=True)
MEDIUM_HARD = Level(44, 16, 3, 0, 10, 5000, workers_fight=True)
HARD = Level(32, 18, 4, 0, 12, 4500, workers_fight=True)
HARDER = Level(22, 20, 5, 0, 14, 4200, workers_fight=True)
VERY_HARD = Level(11, 22, 7, 0, 16, 4000, workers_fight=True)

LEVELS = {
    sc_pb.VeryEasy: VERY_EASY,
    sc_pb.Easy: EASY,
    sc_pb.Medium: MEDIUM,
    sc_pb.MediumHard: MEDIUM_HARD,
    sc_pb.Hard: HARD,
    sc_pb.Harder: HARDER,
}
"""All others, the cheating ones too, play as VERY_HARD."""


def level_of(difficulty: sc_pb.Difficulty.ValueType) -> Level:
    """The level of a difficulty."""
    return LEVELS.get(difficulty, VERY_HARD)
