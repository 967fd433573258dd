"""The layers of screen and minimap in the observation.

Sizes and bits per pixel are those of recorded messages. Layers of features that the stand-in does
not have, such as blips, have only zeros. The minimap's layer of unit types has only zeros unless
the client asks for `allow_cheating_layers`. Layers that depend only on the camera are drawn again
when the camera has moved.

Units are drawn as discs: an image has, for each pixel, the index of the unit on it. Each layer
replaces the indices by the units' values. As in recorded images of the real game, a unit's disc is
centred on the pixel on which the unit stands. The disc's radius is a number of whole pixels plus a
half, so the smallest unit is one pixel. `unit_density` counts the discs on each pixel.
`unit_density_aa` divides each pixel into sixteen parts, and counts those whose centre is in the
unit's exact disc.

Of two overlapping units, the stand-in shows the smaller; we do not know the real game's choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from s2clientprotocol import common_pb2 as common
from s2clientprotocol import sc2api_pb2 as sc_pb
from s2clientprotocol import spatial_pb2 as spatial_pb

from sc2standin.layers import facts, window
from sc2standin.layers.window import Window
from sc2standin.simulation.console import Console
from sc2standin.simulation.sight import Snapshot
from sc2standin.simulation.terrain import VISIBLE, Terrain
from sc2standin.simulation.units import Unit
from sc2standin.simulation.world import Effect

Cells = NDArray[np.uint8]


class Ground(NamedTuple):
    """The things besides units that a client sees on the ground.

    Attributes:
        effects: the effects of spells and scans.
        creep: the cells on which the client sees or remembers creep; None without creep.
        power: the circles in which structures have power, as x, y and radius in cells.
    """

    effects: list[Effect]
    creep: NDArray[np.bool_] | None
    power: list[tuple[float, float, float]]


SCREEN: Final = {
    **dict.fromkeys(("height_map", "visibility_map"), 8),
    **dict.fromkeys(("creep", "power"), 1),
    **{"player_id": 8, "unit_type": 32, "selected": 1},
    **{"unit_hit_points": 32, "unit_hit_points_ratio": 8},
    **{"unit_energy": 32, "unit_energy_ratio": 8, "unit_shields": 32, "unit_shields_ratio": 8},
    **{"player_relative": 8, "unit_density_aa": 8, "unit_density": 8, "effects": 8},
    **dict.fromkeys(("hallucinations", "cloaked", "blip"), 1),
    **{"buffs": 32, "buff_duration": 8, "active": 1, "build_progress": 8},
    **dict.fromkeys(("buildable", "pathable", "placeholder"), 1),
}
MINIMAP: Final = {
    **{"height_map": 8, "visibility_map": 8, "creep": 1, "camera": 1},
    **{"player_id": 8, "player_relative": 8, "selected": 1, "unit_type": 32, "alerts": 8},
    **dict.fromkeys(("buildable", "pathable"), 1),
}
"""The bits per pixel of each layer, of the screen (SCREEN) and of the minimap (MINIMAP)."""
_TYPES = {1: np.uint8, 8: np.uint8, 32: np.int32}
_ON_MINIMAP = ("player_id", "player_relative", "selected")


class LayersView:
    """The layers of one episode."""

    def __init__(
        self,
        shown: spatial_pb.ObservationFeatureLayer,
        setup: sc_pb.SpatialCameraSetup,
        terrain: Terrain,
    ) -> None:
        self._setup = setup
        self._screen = _Image(shown.renders, SCREEN, terrain)
        self._minimap = _Image(shown.minimap_renders, MINIMAP, terrain)
        self._minimap.move_to(window.minimap(setup, terrain))
        cheating = ("unit_type",) if setup.allow_cheating_layers else ()
        self._on_minimap = (*_ON_MINIMAP, *cheating)

    def update(
        self,
        units: Sequence[Unit | Snapshot],
        lit: Cells | None,
        selected: Sequence[Unit],
        console: Console,
        loop: int,
        *,
        ground: Ground,
    ) -> None:
        """Draw these units, and the effects, creep and power on the ground.

        Args:
            lit: The visibility of each cell; None if all cells are visible.
        """
        screen, minimap = self._screen, self._minimap
        camera = window.screen(self._setup, console.camera)
        if screen.move_to(camera):
            minimap.draw("camera", _covered(minimap.window, camera))
        table = facts.rows(units, frozenset(unit.tag for unit in selected), console.player, loop)
        places = facts.places(units)
        discs = Discs(screen.window, *places)
        index, density = discs.index()
        screen.draw_units(facts.COLUMNS, table, index)
        screen.draw("unit_density", density)
        screen.draw("unit_density_aa", discs.smooth_density())
        screen.draw_effects(ground.effects)
        screen.draw_power(ground.power)
        index, _ = Discs(minimap.window, *places).index()
        minimap.draw_units(self._on_minimap, table, index)
        for image in (screen, minimap):
            image.draw_visibility(lit)
            image.draw_creep(ground.creep)


class _Image:
    """The layers of the screen or of the minimap."""

    def __init__(self, message: Any, layers: dict[str, int], terrain: Terrain) -> None:
        self._layers = layers
        self._open = terrain.open_cells
        heights = np.frombuffer(terrain.height_bytes, dtype=np.uint8)
        self._heights = heights.reshape(self._open.shape)
        self._planes: dict[str, common.ImageData] = {
            name: getattr(message, name) for name in layers
        }
        self._zeros = set(layers)
        """The names of the layers that have only zeros now."""
        self._lit: Cells | None = None
        self._lit_drawn = False
        self.window = Window(0.0, 0.0, 0.0, 0, 0)

    def move_to(self, seen: Window) -> bool:
        """Show this part of the map; returns False if it is shown already."""
        if seen == self.window:
            return False
        if (seen.width, seen.height) != (self.window.width, self.window.height):
            for plane, bits in zip(self._planes.values(), self._layers.values(), strict=True):
                plane.bits_per_pixel = bits
                plane.size.x, plane.size.y = seen.width, seen.height
                plane.data = bytes((seen.width * seen.height * bits + 7) // 8)
        self.window = seen
        self._lit_drawn = False
        self.draw("height_map", seen.sample(self._heights))
        self.draw("pathable", seen.sample(self._open))
        self.draw("buildable", seen.sample(self._open))
        return True

    def draw_visibility(self, lit: Cells | None) -> None:
        """Show the visibility of the cells; None if the whole map is visible."""
        if lit is None and self._lit is None and self._lit_drawn:
            return
        self._lit, self._lit_drawn = lit, True
        cells = np.full(self._open.shape, VISIBLE, dtype=np.uint8) if lit is None else lit
        self.draw("visibility_map", self.window.sample(cells))

    def draw_creep(self, creep: NDArray[np.bool_] | None) -> None:
        """Show the cells with creep; None without creep."""
        if creep is not None:
            self.draw("creep", self.window.sample(creep.view(np.uint8)))
        else:
            self._clear("creep")

    def draw_power(self, circles: list[tuple[float, float, float]]) -> None:
        """Show the circles with power."""
        if circles:
            index, _ = Discs(self.window, *np.array(circles).T).index()
            self.draw("power", index > 0)
        else:
            self._clear("power")

    def draw_units(
        self, names: tuple[str, ...], table: NDArray[np.int32], index: NDArray[np.intp]
    ) -> None:
        """Draw the layers with these names: each pixel gets the value of the unit on it."""
        for name in names:
            column = table[:, facts.COLUMNS.index(name)]
            if column.any():
                self.draw(name, column.astype(_TYPES[self._layers[name]])[index])
            else:
                self._clear(name)

    def draw_effects(self, effects: list[Effect]) -> None:
        """Draw the id of the effect at each pixel. Smaller effects cover larger effects."""
        if effects:
            x, y, radius = np.array([(one.x, one.y, one.radius) for one in effects]).T
            index, _ = Discs(self.window, x, y, radius).index()
            self.draw("effects", np.array([0, *(one.id for one in effects)])[index])
        else:
            self._clear("effects")

    def _clear(self, name: str) -> None:
        """Fill a layer with zeros."""
        if name not in self._zeros:
            self._zeros.add(name)
            plane = self._planes[name]
            plane.data = bytes(len(plane.data))

    def draw(self, name: str, image: NDArray[Any]) -> None:
        """Show an image on a layer."""
        self._zeros.discard(name)
        bits = self._layers[name]
        pixels = np.packbits(image) if bits == 1 else image.astype(_TYPES[bits], copy=False)
        self._planes[name].data = pixels.tobytes()


def _covered(seen: Window, camera: Window) -> NDArray[np.uint8]:
    """The pixels that show the screen's area in a window (the minimap)."""
    left, top = seen.pixel_at(camera.left, camera.top)
    right, bottom = seen.pixel_at(camera.right, camera.bottom)
    image = np.zeros((seen.height, seen.width), dtype=np.uint8)
    image[max(top, 0) : max(bottom, 0), max(left, 0) : max(right, 0)] = 1
    return image


Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
_PARTS = 4
"""The number of parts into which a pixel is divided along each axis."""


class Discs:
    """The units in a window, drawn as discs of pixels.

    Args:
        x, y, radius: the places and radii of all units, in cells.
    """

    def __init__(self, window: Window, x: Floats, y: Floats, radius: Floats) -> None:
        self._shape = window.height, window.width
        columns, rows = (x - window.left) / window.pixel, (window.top - y) / window.pixel
        sizes = radius / window.pixel
        reach = sizes + 1.0
        in_image = (columns > -reach) & (columns < window.width + reach)
        in_image &= (rows > -reach) & (rows < window.height + reach)
        numbers = np.flatnonzero(in_image)
        whole = sizes[numbers].astype(np.intp)
        sorted_sizes = sorted(set(whole.tolist()), reverse=True)
        self._groups = [(size, numbers[whole == size]) for size in sorted_sizes]
        self._columns, self._rows, self._sizes = columns, rows, sizes

    def index(self) -> tuple[Ints, NDArray[np.uint8]]:
        """For each pixel, the topmost unit's index plus 1 (0 for none), and the number of units."""
        index = np.zeros(self._shape, dtype=np.intp)
        density = np.zeros(self._shape, dtype=np.intp)
        for size, numbers in self._groups:
            across, down = _disc(size)
            columns = np.trunc(self._columns[numbers]).astype(np.intp)[:, None] + across
            rows = np.trunc(self._rows[numbers]).astype(np.intp)[:, None] + down
            inside = self._inside(columns, rows)
            places = rows[inside], columns[inside]
            # If two units of the same size cover a pixel, the later one in the list is on top.
            index[places] = np.broadcast_to(numbers[:, None] + 1, columns.shape)[inside]
            np.add.at(density, places, 1)
        return index, density.clip(max=255).astype(np.uint8)

    def smooth_density(self) -> NDArray[np.uint8]:
        """For each pixel, how many of its sixteen parts each unit covers, summed over all units."""
        density = np.zeros(self._shape, dtype=np.intp)
        for size, numbers in self._groups:
            offsets = np.arange(-size - 2, size + 3)
            parts = (np.arange(len(offsets) * _PARTS) + 0.5) / _PARTS + offsets[0]
            columns, rows = np.trunc(self._columns[numbers]), np.trunc(self._rows[numbers])
            across = (parts + (columns - self._columns[numbers])[:, None]) ** 2
            down = (parts + (rows - self._rows[numbers])[:, None]) ** 2
            limit = (self._sizes[numbers] ** 2)[:, None, None]
            covered = down[:, :, None] + across[:, None, :] <= limit
            # Add slices, because numpy's sum over two short axes takes three times as long.
            counted = covered.view(np.uint8)
            by_row = sum(counted[:, i::_PARTS] for i in range(_PARTS))
            counts = sum(by_row[:, :, i::_PARTS] for i in range(_PARTS))
            at_columns = columns.astype(np.intp)[:, None, None] + offsets
            at_rows = rows.astype(np.intp)[:, None, None] + offsets[:, None]
            at_columns, at_rows = np.broadcast_arrays(at_columns, at_rows)
            inside = self._inside(at_columns, at_rows)
            np.add.at(density, (at_rows[inside], at_columns[inside]), counts[inside])
        return density.clip(max=255).astype(np.uint8)

    def _inside(self, columns: Ints, rows: Ints) -> NDArray[np.bool_]:
        height, width = self._shape
        inside: NDArray[np.bool_] = (
            (columns >= 0) & (columns < width) & (rows >= 0) & (rows < height)
        )
        return inside


@lru_cache(maxsize=64)
def _disc(size: int) -> tuple[Ints, Ints]:
    """The columns and rows of a disc's pixels, relative to the disc's centre."""
    offsets = np.arange(-size, size + 1)
    rows, columns = np.nonzero(offsets**2 + offsets[:, None] ** 2 <= (size + 0.5) ** 2)
    return offsets[columns], offsets[rows]
