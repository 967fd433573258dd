"""The colours of sides, neutral units, orders and bars.

A colour is (red, green, blue). Neutral units with special colours are identified by their type's
id, because no request to the game asks for the names of unit types.
"""

from __future__ import annotations

from functools import lru_cache

from s2clientprotocol import raw_pb2

Colour = tuple[int, int, int]

SIDES: dict[int, Colour] = {
    raw_pb2.Self: (74, 158, 255),
    raw_pb2.Ally: (74, 214, 190),
    raw_pb2.Neutral: (148, 142, 130),
    raw_pb2.Enemy: (240, 78, 74),
}
"""The colours of units, by the units' alliance."""

MINERALS: Colour = (126, 216, 240)
GAS: Colour = (110, 206, 120)
BEACON: Colour = (236, 214, 110)

MINERAL_FIELD_TYPES = frozenset(
    {146, 147, 341, 483, 665, 666, 796, 797, 884, 885, 886, 887, 1996, 1997, 1998}
)
"""Ids of all variants of mineral fields, which are two cells wide."""
MINERAL_SHARD_TYPES = frozenset({1680})
BEACON_TYPES = frozenset({317})
NEUTRALS: dict[int, Colour] = {
    **dict.fromkeys(MINERAL_FIELD_TYPES | MINERAL_SHARD_TYPES, MINERALS),
    **dict.fromkeys((342, 343, 344, 608, 880, 881), GAS),
    **dict.fromkeys(BEACON_TYPES, BEACON),
}
"""The colours of special neutral units, by the id of the unit type."""

ORDER_ATTACK: Colour = (255, 104, 92)
ORDER_MOVE: Colour = (120, 232, 140)
ORDER_OTHER: Colour = (246, 214, 110)
ORDERS: dict[int, Colour] = {
    **dict.fromkeys((23, 3674), ORDER_ATTACK),
    # The specific ids of move, patrol and hold position, and the general ids that replace them.
    **dict.fromkeys((16, 17, 18, 3793, 3794, 3795), ORDER_MOVE),
}
"""The colours of attacks and moves, by the id of the ability."""

HEALTH_FULL: Colour = (92, 214, 92)
HEALTH_HALF: Colour = (240, 200, 64)
HEALTH_LOW: Colour = (240, 78, 60)
SHIELD: Colour = (110, 170, 255)
PROGRESS: Colour = (236, 236, 236)

EFFECT: Colour = (255, 168, 60)
POWER: Colour = (90, 150, 255)
RADAR: Colour = (255, 255, 255)

PANEL: Colour = (22, 25, 31)
PANEL_EDGE: Colour = (52, 58, 70)
TEXT: Colour = (232, 235, 240)
LABEL: Colour = (142, 150, 164)


@lru_cache(maxsize=64)
def shade(colour: Colour, brightness: float) -> Colour:
    """The colour, darker if `brightness` is below 1, and brighter if `brightness` is above 1."""
    red, green, blue = (min(round(part * brightness), 255) for part in colour)
    return red, green, blue


def health_colour(share: float) -> Colour:
    """The colour of a health bar, by the share of health that the unit still has."""
    if share > 0.6:
        return HEALTH_FULL
    return HEALTH_HALF if share > 0.3 else HEALTH_LOW
