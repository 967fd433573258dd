"""A computer player's next steps, from its possessions: pure, so that a test can ask anything."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from sc2standin.data.unit_types import TYPE_BY_NAME
from sc2standin.simulation.computer.levels import Level

_DEPOT, _BARRACKS = TYPE_BY_NAME["SupplyDepot"], TYPE_BY_NAME["Barracks"]
_MARINE, _SCV = TYPE_BY_NAME["Marine"], TYPE_BY_NAME["SCV"]
MOST_QUEUED = 1
"""Units in a structure beyond which no more are ordered."""
MOST_COMING = 2
"""Barracks that are built at the same time at most."""


class Step(Enum):
    """One thing that a computer player does."""

    TRAIN_SCV = "train an SCV"
    TRAIN_MARINE = "train a marine"
    BUILD_DEPOT = "build a supply depot"
    BUILD_BARRACKS = "build a barracks"
    ATTACK = "send the idle marines to attack"


@dataclass(frozen=True)
class Holdings:
    """The possessions of a computer player."""

    loop: int
    minerals: int
    free_food: float
    workers: int
    depots: int
    depots_coming: int
    barracks: int
    barracks_coming: int
    idle_halls: int
    """Town halls with room in their queue."""
    idle_barracks: int
    idle_marines: int
    attacks: int
    """Attacks that it has sent so far."""


def next_steps(have: Holdings, level: Level) -> list[Step]:
    """The steps to take now, in order of importance; each is paid for before the next is chosen."""
    steps: list[Step] = []
    minerals = have.minerals

    def afford(step: Step, cost: float) -> None:
        nonlocal minerals
        if minerals >= cost:
            minerals -= int(cost)
            steps.append(step)

    if have.idle_halls and have.workers < level.workers and have.free_food >= 1:
        afford(Step.TRAIN_SCV, _SCV.minerals)
    margin = 2 + 2 * have.barracks
    if (have.free_food < margin or not have.depots) and not have.depots_coming:
        afford(Step.BUILD_DEPOT, _DEPOT.minerals)
    wanted = level.barracks - have.barracks - have.barracks_coming
    if have.loop < level.barracks_from_loop:
        wanted = 0
    if have.depots and wanted > 0 and have.barracks_coming < MOST_COMING:
        afford(Step.BUILD_BARRACKS, _BARRACKS.minerals)
    for _ in range(min(have.idle_barracks, int(have.free_food))):
        afford(Step.TRAIN_MARINE, _MARINE.minerals)
    needed = level.attacks_with * (1 + have.attacks)
    if have.loop >= level.attacks_from_loop and have.idle_marines >= min(needed, 40):
        steps.append(Step.ATTACK)
    return steps
