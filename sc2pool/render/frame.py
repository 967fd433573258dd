"""`draw` makes a frame from a game's messages. The frame has the map and a panel beside the map.

`draw` draws the ground from game_info. `draw` adds creep, units, orders and bars from the
observation. Next, `draw` halves the picture's size to smooth edges, and adds fog and the panel.
`draw` is a pure function of its arguments, without requests to the game, so real game and stand-in
look the same. The panel has the title, the time played, score, resources and units, with one line
per figure, in a fixed order. A figure that is missing in the message is left out.

`draw_units` draws units, their orders, health and shields, and effects onto the ground's picture. A
disc is a unit, and its nose shows the unit's facing. A square is a building. A ring is a planned
building, or a blip. A pale disc is a unit that is cloaked, burrowed or an illusion. The order of
drawing is ground, buildings, units, flyers, bars, so flyers cover units below them. Sizes have a
minimum in pixels, because a worker would be invisible on a large map.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from s2clientprotocol import raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.protocol import LOOPS_PER_S
from sc2pool.render import MAP_PX, PANEL_PX, palette
from sc2pool.render.ground import View, ground, lay_creep, lay_fog, playable, view_of
from sc2pool.render.palette import Colour, shade

Frame = NDArray[np.uint8]

_OVERSIZE = 2


def draw(
    game_info: sc_pb.ResponseGameInfo,
    observation: sc_pb.Observation,
    *,
    title: str = "",
    max_loops: int | None = None,
    figures: Mapping[str, object] | None = None,
) -> Frame:
    """A frame of one game at one moment.

    Args:
        game_info: The map's description.
        observation: The player's observation, with raw data.
        title: The panel's title. An empty title becomes the map's name.
        max_loops: The episode's time limit in game loops, or None.
        figures: The values of more lines of the panel, by label.

    Returns:
        The frame, uint8, (480, 640, 3). The map is in the 480 columns on the left, and
        the panel is in the 160 columns on the right.
    """
    view = view_of(playable(game_info), MAP_PX * _OVERSIZE)
    raw = observation.raw_data
    picture = ground(game_info, view)
    lay_creep(picture, raw.map_state, view)
    draw_units(ImageDraw.Draw(picture, "RGBA"), raw, view)
    picture = picture.reduce(_OVERSIZE)
    frame = Image.new("RGB", (MAP_PX + PANEL_PX, MAP_PX))
    frame.paste(lay_fog(picture, raw.map_state, view._replace(side_px=MAP_PX)))
    draw_panel(frame, title or game_info.map_name, observation, max_loops, figures or {})
    return np.array(frame)


_MARGIN_PX = 12
_LINE_PX = 19
_TEXT_SIZE_PX = 13
_TITLE_SIZES_PX = (16, 15, 14, 13, 12)
_LEGEND = (  # text, colour, and whether the sign is a line (otherwise a disc)
    ("own", palette.SIDES[raw_pb2.Self], False),
    ("enemy", palette.SIDES[raw_pb2.Enemy], False),
    ("neutral", palette.SIDES[raw_pb2.Neutral], False),
    ("moves to", palette.ORDER_MOVE, True),
    ("attacks", palette.ORDER_ATTACK, True),
    ("other orders", palette.ORDER_OTHER, True),
)


def draw_panel(
    frame: Image.Image,
    title: str,
    observation: sc_pb.Observation,
    max_loops: int | None,
    figures: Mapping[str, object],
) -> None:
    """Draw the panel onto the part of the frame to the right of the map."""
    width, height = frame.size
    draw = ImageDraw.Draw(frame)
    draw.rectangle((MAP_PX, 0, width, height), palette.PANEL)
    draw.line((MAP_PX, 0, MAP_PX, height), palette.PANEL_EDGE)
    x, right, y = MAP_PX + _MARGIN_PX, width - _MARGIN_PX, _MARGIN_PX
    size_px = _title_size_px(title, right - x)
    for line in _wrapped(title, right - x, size_px):
        _write(frame, (x, y), line, palette.TEXT, size_px=size_px)
        y += _LINE_PX
    y += 6
    draw.rectangle((x, y, right, y + 3), palette.PANEL_EDGE)
    loop = observation.game_loop
    if max_loops:
        share = min(loop / max_loops, 1.0)
        draw.rectangle((x, y, x + round((right - x) * share), y + 3), palette.SIDES[raw_pb2.Self])
    y += 14
    for label, figure in (*_figures(observation, max_loops), *figures.items()):
        _write(frame, (x, y), label, palette.LABEL)
        _write(frame, (right, y), str(figure), palette.TEXT, from_right=True)
        y += _LINE_PX
    y = height - _MARGIN_PX - _LINE_PX * len(_LEGEND)
    for text, colour, is_line in _LEGEND:
        if is_line:
            draw.line((x, y + 9, x + 12, y + 9), colour, 2)
        else:
            draw.ellipse((x + 1, y + 4, x + 11, y + 14), colour)
        _write(frame, (x + 20, y), text, palette.LABEL)
        y += _LINE_PX


def _figures(observation: sc_pb.Observation, max_loops: int | None) -> Iterator[tuple[str, str]]:
    loop = observation.game_loop
    yield "loop", f"{loop:,}" + (f" / {max_loops:,}" if max_loops else "")
    minutes, seconds = divmod(int(loop / LOOPS_PER_S), 60)
    yield "game time", f"{minutes}:{seconds:02}"
    if observation.HasField("score"):
        yield "score", f"{observation.score.score:,}"
    player = observation.player_common
    if player.food_workers or player.minerals or player.vespene:
        yield "minerals", f"{player.minerals:,}"
        yield "gas", f"{player.vespene:,}"
        yield "workers", f"{player.food_workers}"
    if player.food_cap:
        yield "supply", f"{player.food_used} / {player.food_cap}"
    sides = [unit.alliance for unit in observation.raw_data.units]
    yield "own units", str(sides.count(raw_pb2.Self))
    yield "enemies seen", str(sides.count(raw_pb2.Enemy))


def _write(
    frame: Image.Image,
    corner: tuple[int, int],
    text: str,
    colour: palette.Colour,
    *,
    size_px: int = _TEXT_SIZE_PX,
    from_right: bool = False,
) -> None:
    """Write one line. `corner` is the line's upper left corner, or upper right if `from_right`."""
    x, y = corner
    mask = _mask(text, size_px)
    frame.paste(colour, (x - mask.width if from_right else x, y), mask)


@lru_cache(maxsize=256)
def _mask(text: str, size_px: int) -> Image.Image:
    """A line of text as a mask. Masks are cached, because most lines recur in the next frame."""
    font = _font(size_px)
    mask = Image.new("L", (max(math.ceil(font.getlength(text)), 1), size_px + 6))
    ImageDraw.Draw(mask).text((0, 0), text, 255, font)
    return mask


@lru_cache(maxsize=4)
def _font(size_px: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size_px)


@lru_cache(maxsize=16)
def _title_size_px(title: str, width_px: int) -> int:
    """The largest font size in which every word fits on a line; the smallest if no size fits."""
    fitting = (
        size_px
        for size_px in _TITLE_SIZES_PX
        if all(_font(size_px).getlength(word) <= width_px for word in title.split())
    )
    return next(fitting, _TITLE_SIZES_PX[-1])


@lru_cache(maxsize=16)
def _wrapped(title: str, width_px: int, size_px: int) -> tuple[str, ...]:
    """The lines of the title. A word that is longer than a line is broken."""
    font = _font(size_px)
    lines = [""]
    for word in title.split():
        joined = f"{lines[-1]} {word}".strip()
        if font.getlength(joined) <= width_px:
            lines[-1] = joined
            continue
        lines.append("")
        for letter in word:
            if font.getlength(lines[-1] + letter) > width_px:
                lines.append("")
            lines[-1] += letter
    return tuple(line for line in lines if line)


_BUILDING_RADIUS = 1.05
"""A unit on the ground is drawn as a building if its radius is larger than this, in cells."""
_LEAST_RADIUS_PX = 4.0
_SHARD_RADIUS = 0.4
"""The radius, in cells, of a mineral shard as it is drawn. The real radius is too small to see."""
_NOSE_LEAST_PX = 7.0
_BARS_LEAST_PX = 9.0
"""A unit with a radius smaller than this, in pixels, gets bars only if one bar is not full."""
Corners = tuple[tuple[float, float], ...]
"""The corners of a polygon, as x (right) and y (down) from its centre, in units of its radius."""
_FIELD: Corners = ((-0.9, 0), (-0.55, -0.45), (0.55, -0.45), (0.9, 0), (0.55, 0.45), (-0.55, 0.45))
"""The shape of a mineral field. The radius of a field reaches the corners of its two cells."""
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
    """Draw everything except the ground; `draw` has the mode RGBA, for transparent colours."""
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
    colour = palette.SIDES.get(unit.alliance, palette.SIDES[raw_pb2.Neutral])
    if unit.alliance == raw_pb2.Neutral:
        colour = palette.NEUTRALS.get(unit.unit_type, colour)
    is_building = radius > _BUILDING_RADIUS and not unit.is_flying
    return Shape(unit, x, y, view.length(radius, _LEAST_RADIUS_PX), colour, is_building)


def _height(shape: Shape) -> tuple[bool, bool, bool]:
    unit = shape.unit
    return unit.is_flying, unit.alliance != raw_pb2.Neutral, not shape.is_building


def _draw_body(draw: ImageDraw.ImageDraw, shape: Shape) -> None:
    unit, x, y, radius = shape.unit, shape.x, shape.y, shape.radius
    kind = unit.unit_type
    edge = shade(shape.colour, 0.45)
    is_neutral = unit.alliance == raw_pb2.Neutral
    if is_neutral:
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
    if shape.is_building and not is_neutral:
        half = radius * 0.86
        box = (x - half, y - half, x + half, y + half)
        draw.rounded_rectangle(box, half * 0.3, fill, edge, width)
        return
    if not is_neutral and radius >= _NOSE_LEAST_PX and math.isfinite(unit.facing):
        _draw_nose(draw, shape)
    _circle(draw, (x, y), radius, fill=fill, edge=edge, width=width)


def _draw_nose(draw: ImageDraw.ImageDraw, shape: Shape) -> None:
    """Draw a nose that shows the unit's facing. The disc, drawn later, covers the nose's base."""
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
        if there is None:  # no target, or the target is not visible
            continue
        colour = palette.ORDERS.get(order.ability_id, palette.ORDER_OTHER)
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
    # Pillow's `polygon` would allocate masks of the picture's size for an outline of two pixels.
    draw.line((*points, points[0]), edge, 2)
