"""The next steps of a town. A task's actions are some of these steps.

Rules: an impossible step is masked and gives no commands. Some tasks also mask a step that is
possible but useless now. If a policy chooses it nevertheless, it gives its commands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sc2pool import commands
from sc2pool.commands import Commands
from sc2pool.tasks.minigames.town import (
    BARRACKS,
    COMMAND_CENTER,
    MINERAL_FIELD,
    REFINERY,
    SUPPLY_DEPOT,
    Town,
)

N_GEYSERS = 4
SUPPLY_AHEAD = 3
"""Enough free supply for each structure that trains units. The structure uses up less while a
supply depot is built, including its builder's walk."""


class TownStep(NamedTuple):
    """A step of a town."""

    is_possible: Callable[[Town], bool]
    orders: Callable[[Town], Commands]
    is_useful: Callable[[Town], bool] = lambda _: True


def needs_depot(town: Town) -> bool:
    """True without a supply depot, or if supply may be used up before another is built."""
    depots = len(town.finished(SUPPLY_DEPOT)) + town.coming(SUPPLY_DEPOT)
    return not depots or town.free_supply < SUPPLY_AHEAD * town.factories


WAIT = TownStep(lambda _: True, lambda _: [])
GATHER_MINERALS = TownStep(
    lambda town: bool(town.idle and town.all(MINERAL_FIELD)), lambda town: town.gather_minerals()
)
TRAIN_SCV = TownStep(
    lambda town: town.can_train(COMMAND_CENTER),
    lambda town: town.train(commands.TRAIN_SCV, COMMAND_CENTER),
)
BUILD_DEPOT = TownStep(
    lambda town: town.can_pay(SUPPLY_DEPOT), lambda town: town.build(commands.BUILD_SUPPLY_DEPOT)
)
BUILD_BARRACKS = TownStep(
    lambda town: town.can_pay(BARRACKS) and bool(town.finished(SUPPLY_DEPOT)),
    lambda town: town.build(commands.BUILD_BARRACKS),
)
BUILD_DEPOT_IN_TIME = BUILD_DEPOT._replace(is_useful=needs_depot)
TRAIN_MARINE = TownStep(
    lambda town: town.can_train(BARRACKS),
    lambda town: town.train(commands.TRAIN_MARINE, BARRACKS),
)
BUILD_REFINERY = TownStep(
    lambda town: (
        town.can_pay(REFINERY) and len(town.all(REFINERY)) + town.coming(REFINERY) < N_GEYSERS
    ),
    lambda town: town.build_refinery(),
)
GATHER_GAS = TownStep(
    lambda town: town.needs_gas_worker() is not None, lambda town: town.gather_gas()
)


def take(step: TownStep, town: Town) -> Commands:
    """The commands of a step; empty if the step is impossible."""
    return step.orders(town) if step.is_possible(town) else []


def masks(steps: Iterable[TownStep], town: Town) -> NDArray[np.bool_]:
    """Which steps are possible and useful."""
    return np.array([step.is_possible(town) and step.is_useful(town) for step in steps])
