"""An observation's part for a client with a screen: layers, pictures and panels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.layers import panels, window
from sc2standin.layers.layers import Ground, LayersView
from sc2standin.layers.pictures import PicturesView
from sc2standin.layers.window import Window
from sc2standin.simulation.game import Game
from sc2standin.simulation.sight import Snapshot
from sc2standin.simulation.units import Unit


class ScreensView:
    """The screens of one episode."""

    def __init__(
        self, seen: sc_pb.Observation, game: Game, options: sc_pb.InterfaceOptions
    ) -> None:
        self._seen, self._game, self._controls = seen, game, game.controls[game.viewer]
        layers, pictures = options.feature_layer, options.render
        has_layers = options.HasField("feature_layer")
        self._setup = layers if has_layers else pictures
        self._layers = (
            LayersView(seen.feature_layer_data, layers, game.terrain) if has_layers else None
        )
        self._pictures = (
            PicturesView(seen.render_data, pictures, game.terrain)
            if options.HasField("render")
            else None
        )

    @property
    def window(self) -> Window:
        """The part of the map that the screen shows."""
        return window.screen(self._setup, self._controls.now.camera)

    def update(
        self,
        units: Sequence[Unit | Snapshot],
        lit: NDArray[np.uint8] | None,
        selected: tuple[Unit, ...],
        ground: Ground,
    ) -> None:
        """Show the current loop.

        Args:
            units: what the client sees and remembers.
            lit: the visibility of each cell, if there is fog.
            selected: the selected units that live.
        """
        now, loop = self._controls.now, self._game.world.loop
        shown = [unit for unit in selected if unit.owner == now.player or unit in units]
        if self._layers is not None:
            self._layers.update(units, lit, shown, now, loop, ground=ground)
        if self._pictures is not None:
            self._pictures.update(units, lit, shown, now)
        panels.fill(self._seen.ui_data, shown, self._controls, self._game.world)
