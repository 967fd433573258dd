"""The rendered interface: screen and minimap as colour images.

They are drawn from above in plain colours; the real game renders its scene in perspective. The
geometry is that of the feature layers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from s2clientprotocol import common_pb2 as common
from s2clientprotocol import sc2api_pb2 as sc_pb
from s2clientprotocol import spatial_pb2 as spatial_pb

from sc2standin.layers import facts, window
from sc2standin.layers.raster import Discs
from sc2standin.layers.window import Window
from sc2standin.simulation.console import Console
from sc2standin.simulation.sight import Snapshot
from sc2standin.simulation.terrain import VISIBLE, Terrain
from sc2standin.simulation.units import NEUTRAL, Unit

Colours = NDArray[np.uint8]
_GROUND: Colours = np.array([[0, 0, 0], [24, 24, 24], [60, 56, 48], [110, 102, 88]], dtype=np.uint8)
"""Colours of what is off the map, hidden, fogged and visible."""
_OWN, _ENEMY, _NEUTRAL, _SELECTED = (40, 200, 60), (210, 50, 40), (70, 150, 220), (150, 255, 150)


class PicturesView:
    """The images of one episode."""

    def __init__(
        self,
        shown: spatial_pb.ObservationRender,
        setup: sc_pb.SpatialCameraSetup,
        terrain: Terrain,
    ) -> None:
        self._setup = setup
        self._all_lit = np.full((terrain.height, terrain.width), VISIBLE, dtype=np.uint8)
        self._map, self._minimap = shown.map, shown.minimap
        self._whole = window.minimap(setup, terrain)

    def update(
        self,
        units: Sequence[Unit | Snapshot],
        lit: NDArray[np.uint8] | None,
        selected: Sequence[Unit],
        console: Console,
    ) -> None:
        """Draw these units; `lit` is the visibility of each cell, if there is fog."""
        ground = (self._all_lit if lit is None else lit) + np.uint8(1)
        places = facts.places(units)
        colours = np.array(
            [_GROUND[0], *(_colour(unit, selected, console.player) for unit in units)], np.uint8
        )
        camera = window.screen(self._setup, console.camera)
        for image, seen in ((self._map, camera), (self._minimap, self._whole)):
            index, _density = Discs(seen, *places).index()
            picture = _GROUND[seen.sample(ground)]
            covered = index > 0
            picture[covered] = colours[index[covered]]
            _fill(image, seen, picture)


def _colour(seen: Unit | Snapshot, selected: Sequence[Unit], player: int) -> tuple[int, int, int]:
    if seen in selected:
        return _SELECTED
    owner = seen.unit.owner if isinstance(seen, Snapshot) else seen.owner
    if owner == player:
        return _OWN
    return _NEUTRAL if owner == NEUTRAL else _ENEMY


def _fill(image: common.ImageData, seen: Window, picture: Colours) -> None:
    image.bits_per_pixel = 24
    image.size.x, image.size.y = seen.width, seen.height
    image.data = picture.tobytes()
