"""Unit commands for `Task.act`: one small function per order.

A target is a point `(x, y)` in map coordinates, or a unit's tag (an int). The general ability ids
are the game's own (`RequestData`, abilities that others remap to).
"""

from __future__ import annotations

from collections.abc import Iterable

from s2clientprotocol import common_pb2, raw_pb2

Target = tuple[float, float] | int

SMART = 1
STOP = 3665
ATTACK = 3674
HOLD_POSITION = 3793
MOVE = 3794


def command(
    ability_id: int, tags: Iterable[int], target: Target | None = None, *, queued: bool = False
) -> raw_pb2.ActionRawUnitCommand:
    """Order the units with these tags to use an ability, on a target where it takes one."""
    message = raw_pb2.ActionRawUnitCommand(
        ability_id=ability_id, unit_tags=tags, queue_command=queued
    )
    if isinstance(target, int):
        message.target_unit_tag = target
    elif target is not None:
        message.target_world_space_pos.CopyFrom(common_pb2.Point2D(x=target[0], y=target[1]))
    return message


def move(
    tags: Iterable[int], target: Target, *, queued: bool = False
) -> raw_pb2.ActionRawUnitCommand:
    """Move without fighting."""
    return command(MOVE, tags, target, queued=queued)


def attack(
    tags: Iterable[int], target: Target, *, queued: bool = False
) -> raw_pb2.ActionRawUnitCommand:
    """Attack a unit, or move to a point and attack whatever is met."""
    return command(ATTACK, tags, target, queued=queued)


def smart(
    tags: Iterable[int], target: Target, *, queued: bool = False
) -> raw_pb2.ActionRawUnitCommand:
    """What a right click does: attack enemies, gather resources, move elsewhere."""
    return command(SMART, tags, target, queued=queued)


def stop(tags: Iterable[int]) -> raw_pb2.ActionRawUnitCommand:
    """Drop all orders."""
    return command(STOP, tags)


def hold_position(tags: Iterable[int]) -> raw_pb2.ActionRawUnitCommand:
    """Stand still and attack only what is in range."""
    return command(HOLD_POSITION, tags)
