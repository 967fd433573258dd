"""`draw`: a frame from a game's messages, with the panel beside the map.

    game_info ──► ground ─┐
    observation ─► creep ─► units, orders, bars ─► half the size ─► fog ─► beside it the panel

Rules: `draw` is a pure function of its arguments, without requests to the game, so the real game
and the stand-in look the same. The map is drawn at twice its size and then halved, which smooths
edges. The panel has the title, the time played, score, resources and units: one line per figure, in
a fixed order. Figures that are missing in the message are left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from s2clientprotocol import raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.protocol.game_time import LOOPS_PER_S
from sc2pool.render import MAP_PX, PANEL_PX, palette
from sc2pool.render.ground import ground, lay_creep, lay_fog, playable, view_of
from sc2pool.render.units import draw_units

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
        game_info: the map's description.
        observation: the player's observation, with its raw data.
        title: the panel's title; if empty, the map's name.
        max_loops: the episode's time limit in game loops, or None.
        figures: values of further lines of the panel, by label.

    Returns:
        uint8, (480, 640, 3): the playable area in the left 480 columns, the panel in the others.
    """
    view = view_of(playable(game_info), MAP_PX * _OVERSIZE)
    raw = observation.raw_data
    picture = ground(game_info, view)
    lay_creep(picture, raw.map_state, view)
    draw_units(ImageDraw.Draw(picture, "RGBA"), raw, view)
    picture = picture.reduce(_OVERSIZE)
    frame = Image.new("RGB", (MAP_PX + PANEL_PX, MAP_PX))
    frame.paste(lay_fog(picture, raw.map_state, view._replace(side_px=MAP_PX)))
    draw_panel(
        frame,
        MAP_PX,
        title or game_info.map_name,
        observation,
        max_loops=max_loops,
        figures=figures or {},
    )
    return np.array(frame)


_MARGIN_PX = 12
_LINE_PX = 19
_TEXT_SIZE_PX = 13
_TITLE_SIZES_PX = (16, 15, 14, 13, 12)
_LEGEND = (  # text, colour, True for a line instead of a disc
    ("own", palette.SIDES[raw_pb2.Self], False),
    ("enemy", palette.SIDES[raw_pb2.Enemy], False),
    ("neutral", palette.SIDES[raw_pb2.Neutral], False),
    ("moves to", palette.ORDER_MOVE, True),
    ("attacks", palette.ORDER_ATTACK, True),
    ("other orders", palette.ORDER_OTHER, True),
)


def draw_panel(
    frame: Image.Image,
    left: int,
    title: str,
    observation: sc_pb.Observation,
    *,
    max_loops: int | None,
    figures: Mapping[str, object],
) -> None:
    """Draw the panel onto the part of the frame to the right of `left`."""
    width, height = frame.size
    draw = ImageDraw.Draw(frame)
    draw.rectangle((left, 0, width, height), palette.PANEL)
    draw.line((left, 0, left, height), palette.PANEL_EDGE)
    x, right, y = left + _MARGIN_PX, width - _MARGIN_PX, _MARGIN_PX
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
    """Write one line, whose upper left (or `from_right` its upper right) corner is `corner`."""
    x, y = corner
    mask = _mask(text, size_px)
    frame.paste(colour, (x - mask.width if from_right else x, y), mask)


@lru_cache(maxsize=256)
def _mask(text: str, size_px: int) -> Image.Image:
    """A line of text as a mask; cached, because most lines are the same in the next frame."""
    font = _font(size_px)
    mask = Image.new("L", (max(math.ceil(font.getlength(text)), 1), size_px + 6))
    ImageDraw.Draw(mask).text((0, 0), text, 255, font)
    return mask


@lru_cache(maxsize=4)
def _font(size_px: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size_px)


@lru_cache(maxsize=16)
def _title_size_px(title: str, width_px: int) -> int:
    """The largest size in which each word fits on a line, or the smallest size."""
    fitting = (
        size_px
        for size_px in _TITLE_SIZES_PX
        if all(_font(size_px).getlength(word) <= width_px for word in title.split())
    )
    return next(fitting, _TITLE_SIZES_PX[-1])


@lru_cache(maxsize=16)
def _wrapped(title: str, width_px: int, size_px: int) -> tuple[str, ...]:
    """The title's lines; a word that does not fit on a line is broken."""
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
