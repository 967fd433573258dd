"""`draw`: a frame from a game's messages.

    game_info ──► ground ─┐
    observation ─► creep ─► units, orders, bars ─► half the size ─► fog ─► beside it the panel

Rules: a pure function of its arguments, without requests to the game, so the real game and the
stand-in look the same; the map is drawn at twice its size and then halved, which smooths edges.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.render import MAP_PX, PANEL_PX
from sc2pool.render.ground import ground, lay_creep, lay_fog
from sc2pool.render.panel import draw_panel
from sc2pool.render.units import draw_units
from sc2pool.render.view import playable, view_of

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
        figures: more lines for the panel: label to value.

    Returns:
        uint8, (480, 640, 3): the playable area in the left 480 columns, the panel beside it.
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
