"""Draws units, their orders, health and shields, and effects onto a picture of the ground.

    a disc with a nose: a unit and its facing          a square: a building
    a ring: planned, or a blip                         a pale disc: cloaked, burrowed, an illusion

Rules: the order of drawing is ground, buildings, units, flyers, bars, so flyers cover units below
them. Sizes have a minimum in pixels, because a worker would be invisible on a large map.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from PIL import ImageDraw
from s2clientprotocol import raw_pb2

from sc2pool.render import palette
from sc2pool.render.ground import View
from sc2pool.render.palette import Colour, shade

_BUILDING_RADIUS = 1.05
"""Units on the ground with a larger radius are buildings, because walking units are smaller."""
_LEAST_RADIUS_PX = 4.0
_SHARD_RADIUS = 0.4
"""The drawn radius of a mineral shard, whose own radius is too small to see."""
_NOSE_LEAST_PX = 7.0
_BARS_LEAST_PX = 9.0
"""Smaller units have bars only if one bar is not full."""
Corners = tuple[tuple[float, float], ...]
"""A polygon's corners, in radii from its centre; x to the right, y down."""
_FIELD: Corners = ((-0.9, 0), (-0.55, -0.45), (0.55, -0.45), (0.9, 0), (0.55, 0.45), (-0.55, 0.45))
"""The shape of a mineral field, whose radius reaches the corners of its two cells."""
_SHARD: Corners = ((0, -1), (0.7, 0), (0, 1), (-0.7, 0))

_HIDDEN = frozenset({raw_pb2.Cloaked, raw_pb2.CloakedDetected})


class Shape(NamedTuple):
    """A unit as it is drawn; positions and sizes are in pixels."""

    unit: raw_pb2.Unit
    x: float
    y: float
    radius: float
    colour: Colour
    is_building: bool


def draw_units(draw: ImageDraw.ImageDraw, raw: raw_pb2.ObservationRaw, view: View) -> None:
    """Draw everything in the raw observation except the ground.

    Args:
        draw: a drawing context in mode RGBA, for transparent colours.
    """
    shapes = sorted((shape_of(unit, view) for unit in raw.units), key=_height)
    places = {shape.unit.tag: (shape.x, shape.y) for shape in shapes}
    _draw_effects(draw, raw, view)
    for shape in shapes:
        if shape.unit.orders:
            _draw_orders(draw, shape, places, view)
    for shape in shapes:
        _draw_body(draw, shape)
    for shape in shapes:
        _draw_bars(draw, shape)


def shape_of(unit: raw_pb2.Unit, view: View) -> Shape:
    """The shape of a unit."""
    position = unit.pos
    x, y = view.point(position.x, position.y)
    is_shard = unit.unit_type in palette.MINERAL_SHARD_TYPES
    radius = _SHARD_RADIUS if is_shard else unit.radius or 0.5
    colour = _colour_of(unit)
    is_building = radius > _BUILDING_RADIUS and not unit.is_flying
    return Shape(unit, x, y, view.length(radius, _LEAST_RADIUS_PX), colour, is_building)


def _colour_of(unit: raw_pb2.Unit) -> Colour:
    if unit.alliance == raw_pb2.Neutral:
        kind = unit.unit_type
        if kind in palette.MINERAL_FIELD_TYPES or kind in palette.MINERAL_SHARD_TYPES:
            return palette.MINERALS
        if kind in palette.GEYSER_TYPES:
            return palette.GAS
        if kind in palette.BEACON_TYPES:
            return palette.BEACON
    return palette.SIDES.get(unit.alliance, palette.SIDES[raw_pb2.Neutral])


def _height(shape: Shape) -> tuple[bool, bool, bool]:
    unit = shape.unit
    return unit.is_flying, unit.alliance != raw_pb2.Neutral, not shape.is_building


def _draw_body(draw: ImageDraw.ImageDraw, shape: Shape) -> None:
    unit, x, y, radius = shape.unit, shape.x, shape.y, shape.radius
    kind = unit.unit_type
    edge = shade(shape.colour, 0.45)
    if unit.alliance == raw_pb2.Neutral:
        if kind in palette.BEACON_TYPES:
            _draw_beacon(draw, shape)
            return
        if kind in palette.MINERAL_FIELD_TYPES:
            _draw_polygon(draw, shape, _FIELD, edge)
            return
        if kind in palette.MINERAL_SHARD_TYPES:
            _draw_polygon(draw, shape, _SHARD, edge)
            return
    fill: tuple[int, ...] | None = shape.colour
    if unit.cloak in _HIDDEN or unit.is_burrowed or unit.is_hallucination:
        fill = (*shape.colour, 70)
        edge = shape.colour
    elif unit.display_type == raw_pb2.Placeholder or unit.is_blip:
        fill, edge = None, shape.colour
    width = 2 if radius < 12 else 3
    if unit.is_selected:
        _circle(draw, (x, y), radius + 5, edge=(255, 255, 255))
    if shape.is_building and unit.alliance != raw_pb2.Neutral:
        half = radius * 0.86
        box = (x - half, y - half, x + half, y + half)
        draw.rounded_rectangle(box, half * 0.3, fill, edge, width)
        return
    is_side = unit.alliance != raw_pb2.Neutral
    if is_side and radius >= _NOSE_LEAST_PX and math.isfinite(unit.facing):
        _draw_nose(draw, shape)
    _circle(draw, (x, y), radius, fill=fill, edge=edge, width=width)


def _draw_nose(draw: ImageDraw.ImageDraw, shape: Shape) -> None:
    """Draw a nose in the direction of the unit's facing; the disc will cover its base."""
    x, y, radius, facing = shape.x, shape.y, shape.radius, shape.unit.facing
    corners = [
        (x + length * radius * math.cos(angle), y - length * radius * math.sin(angle))
        for length, angle in ((1.0, facing - 0.65), (1.65, facing), (1.0, facing + 0.65))
    ]
    draw.polygon(corners, shape.colour)


def _draw_beacon(draw: ImageDraw.ImageDraw, shape: Shape) -> None:
    middle, radius, colour = (shape.x, shape.y), shape.radius, shape.colour
    _circle(draw, middle, radius, fill=(*colour, 50), edge=colour, width=4)
    _circle(draw, middle, radius * 0.55, edge=(*colour, 150), width=3)
    _circle(draw, middle, 4, fill=colour)


def _draw_orders(
    draw: ImageDraw.ImageDraw,
    shape: Shape,
    places: dict[int, tuple[float, float]],
    view: View,
) -> None:
    """Draw a line from the unit to its first target, and further lines to queued targets."""
    here = (shape.x, shape.y)
    for order in shape.unit.orders:
        target = order.WhichOneof("target")
        if target == "target_unit_tag":
            there = places.get(order.target_unit_tag)
        elif target == "target_world_space_pos":
            point = order.target_world_space_pos
            there = view.point(point.x, point.y)
        else:
            there = None
        if there is None:  # no target, or a unit that is not visible
            continue
        colour = palette.order_colour(order.ability_id)
        draw.line((here, there), (*colour, 130), 3)
        _circle(draw, there, 5, fill=(*colour, 190))
        here = there


def _draw_effects(draw: ImageDraw.ImageDraw, raw: raw_pb2.ObservationRaw, view: View) -> None:
    for source in raw.player.power_sources:
        middle = view.point(source.pos.x, source.pos.y)
        _circle(draw, middle, view.length(source.radius), fill=(*palette.POWER, 28))
    for ring in raw.radar:
        middle = view.point(ring.pos.x, ring.pos.y)
        _circle(draw, middle, view.length(ring.radius), edge=(*palette.RADAR, 70))
    for effect in raw.effects:
        for position in effect.pos:
            middle = view.point(position.x, position.y)
            radius = view.length(effect.radius or 1.0, _LEAST_RADIUS_PX)
            inside, edge = (*palette.EFFECT, 80), (*palette.EFFECT, 200)
            _circle(draw, middle, radius, fill=inside, edge=edge)


def _draw_bars(draw: ImageDraw.ImageDraw, shape: Shape) -> None:
    unit = shape.unit
    if unit.alliance == raw_pb2.Neutral or not unit.health_max:
        return
    shares: list[tuple[float, Colour]] = []
    if unit.shield_max:
        shares.append((unit.shield / unit.shield_max, palette.SHIELD))
    health = unit.health / unit.health_max
    shares.append((health, palette.health_colour(health)))
    if unit.build_progress and unit.build_progress < 1.0:
        shares.append((unit.build_progress, palette.PROGRESS))
    if shape.radius < _BARS_LEAST_PX and all(share >= 1.0 for share, _ in shares):
        return
    half, thickness = max(shape.radius, 7.0), 6 if shape.radius >= _BARS_LEAST_PX else 4
    top = shape.y - shape.radius - thickness * len(shares) - 5
    left = round(shape.x - half)
    right = round(shape.x + half)
    for row, (share, colour) in enumerate(shares):
        above = round(top) + row * thickness
        draw.rectangle((left, above, right, above + thickness - 1), (0, 0, 0, 190))
        length = round((right - left - 2) * min(max(0.0, share), 1.0))
        if length > 0:
            draw.rectangle((left + 1, above + 1, left + 1 + length, above + thickness - 2), colour)


def _circle(
    draw: ImageDraw.ImageDraw,
    middle: tuple[float, float],
    radius: float,
    *,
    fill: tuple[int, ...] | None = None,
    edge: tuple[int, ...] | None = None,
    width: int = 2,
) -> None:
    x, y = middle
    draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill, edge, width)


def _draw_polygon(draw: ImageDraw.ImageDraw, shape: Shape, corners: Corners, edge: Colour) -> None:
    x, y, radius = shape.x, shape.y, shape.radius
    points = [(x + radius * right, y + radius * down) for right, down in corners]
    draw.polygon(points, shape.colour)
    # Pillow's own outline, if wider than a pixel, would allocate masks of the picture's size.
    draw.line((*points, points[0]), edge, 2)
