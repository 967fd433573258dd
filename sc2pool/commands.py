"""Unit commands for `Task.act`: one small function per order.

A target is a point `(x, y)` in map coordinates, or a unit's tag (an int). Numpy's arrays and
scalars are also accepted. The ability ids here are the general ids in the game's data; the game
maps specific ids to general ids. `as_actions` checks the result of `act` and converts it for the
game.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray
from s2clientprotocol import raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.errors import UserCodeError

Command = raw_pb2.ActionRawUnitCommand
Commands = Iterable[Command]
Target = Sequence[float] | NDArray[Any] | int | np.integer[Any]

SMART = 1
BUILD_SUPPLY_DEPOT, BUILD_REFINERY, BUILD_BARRACKS = 319, 320, 321
TRAIN_SCV, TRAIN_MARINE = 524, 560
GATHER = 3666
STOP = 3665
ATTACK = 3674
HOLD_POSITION = 3793
MOVE = 3794


def command(
    ability_id: int, tags: Iterable[int], target: Target | None = None, *, queued: bool = False
) -> Command:
    """Order the units with these tags to use an ability, on a target if the ability needs one.

    Raises:
        UserCodeError: an argument has a wrong type, or the target is a point that is not finite
            (games react to such a point in different ways).
    """
    message = Command()  # keyword arguments would double the time of this call
    try:
        message.ability_id = ability_id
        message.queue_command = queued
    except (TypeError, ValueError) as error:
        raise UserCodeError(
            f"an ability's id must be a whole number, and queued True or False, got "
            f"{ability_id!r:.80} and {queued!r:.80}"
        ) from error
    try:
        message.unit_tags.extend(tags)
    except (TypeError, ValueError) as error:
        expected = "a list or an array of units' tags"
        raise UserCodeError(f"tags must be {expected}, got {tags!r:.80}") from error
    if target is None:
        return message
    try:
        if isinstance(target, int | np.integer):
            message.target_unit_tag = int(target)
            return message
        point = message.target_world_space_pos
        x, y = target
        point.x, point.y = x, y
    except (TypeError, ValueError, OverflowError) as error:
        raise UserCodeError(
            f"the target of ability {ability_id} must be a point (x, y) or a unit's tag, got "
            f"{target!r:.80}"
        ) from error
    if not isfinite(point.x + point.y):  # the conversion to 32 bits may overflow
        raise UserCodeError(f"the target ({x}, {y}) of ability {ability_id} is not finite")
    return message


def move(tags: Iterable[int], target: Target, *, queued: bool = False) -> Command:
    """Move the units without fighting."""
    return command(MOVE, tags, target, queued=queued)


def attack(tags: Iterable[int], target: Target, *, queued: bool = False) -> Command:
    """Attack a unit, or move to a point and attack the enemies on the way."""
    return command(ATTACK, tags, target, queued=queued)


def smart(tags: Iterable[int], target: Target, *, queued: bool = False) -> Command:
    """Do the same as a right click: attack an enemy, gather a resource, or else move."""
    return command(SMART, tags, target, queued=queued)


def stop(tags: Iterable[int]) -> Command:
    """Cancel all orders of the units."""
    return command(STOP, tags)


def gather(tags: Iterable[int], target: int, *, queued: bool = False) -> Command:
    """Gather from a mineral field or a refinery."""
    return command(GATHER, tags, target, queued=queued)


def hold_position(tags: Iterable[int]) -> Command:
    """Let the units stand still and attack only enemies in range."""
    return command(HOLD_POSITION, tags)


def as_actions(commands: object) -> list[sc_pb.Action]:
    """Convert the result of a task's `act` to the API's actions.

    Args:
        commands: an iterable of unit commands, or None for no command.

    Raises:
        UserCodeError: the type of `commands` is wrong.
    """
    if commands is None:
        return []
    if type(commands) is not list and not isinstance(commands, Iterable):
        raise UserCodeError(f"{_EXPECTED}; got {commands!r}")
    actions = []
    for i, unit_command in enumerate(commands):
        if not isinstance(unit_command, Command):
            raise UserCodeError(f"{_EXPECTED}; item {i} is {unit_command!r}")
        action = sc_pb.Action()
        action.action_raw.unit_command.CopyFrom(unit_command)
        actions.append(action)
    return actions


_EXPECTED = "act must return a list of raw_pb2.ActionRawUnitCommand (see sc2pool.commands)"
