"""The part of an observation for a client with a screen: layers, pictures and panels.

The panels at the bottom of the screen show the selected units and the control groups. A unit that
has died, or that the client no longer sees, is not on a panel. If the only selected unit is a
structure that makes something, the panel shows the structure's queue.

The rendered interface shows screen and minimap as colour images. The stand-in draws them from above
in plain colours, with the geometry of the feature layers. The real game draws them in perspective.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from s2clientprotocol import common_pb2 as common
from s2clientprotocol import sc2api_pb2 as sc_pb
from s2clientprotocol import spatial_pb2 as spatial_pb
from s2clientprotocol import ui_pb2 as ui_pb

from sc2standin.data.unit_types.kinds import UnitType
from sc2standin.layers import facts, window
from sc2standin.layers.facts import buffs_of, is_producing, order_progress, progress, relative
from sc2standin.layers.layers import Discs, Ground, LayersView
from sc2standin.layers.window import Window
from sc2standin.simulation.console import Console, Controls
from sc2standin.simulation.game import Game
from sc2standin.simulation.sight import Snapshot
from sc2standin.simulation.terrain import VISIBLE, Terrain
from sc2standin.simulation.units import NEUTRAL, Site, Unit
from sc2standin.simulation.world import World


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
            units: the units that the client sees or remembers.
            lit: the visibility of each cell; None without fog.
            selected: the living selected units.
        """
        now, loop = self._controls.now, self._game.world.loop
        shown = [unit for unit in selected if unit.owner == now.player or unit in units]
        if self._layers is not None:
            self._layers.update(units, lit, shown, now, loop, ground=ground)
        if self._pictures is not None:
            self._pictures.update(units, lit, shown, now)
        fill_panels(self._seen.ui_data, shown, self._controls, self._game.world)


def fill_panels(
    shown: ui_pb.ObservationUI, selected: Sequence[Unit], controls: Controls, world: World
) -> None:
    """Fill the panels of selected units and control groups.

    Args:
        selected: The selected units that the client sees.
    """
    shown.Clear()
    player, loop = controls.now.player, world.loop
    for number, members in enumerate(controls.now.groups):
        alive = controls.alive(members)
        if alive:
            shown.groups.add(
                control_group_index=number, leader_unit_type=alive[0].type.id, count=len(alive)
            )
    if len(selected) > 1:
        shown.multi.units.extend(_info(unit, player, loop) for unit in selected)
    elif selected and is_producing(selected[0]):
        _fill_production(shown.production, selected[0], player, loop)
    elif selected:
        unit, panel = selected[0], shown.single
        panel.unit.CopyFrom(_info(unit, player, loop))
        levels = world.upgrades.levels_of(unit.owner, unit.type)
        panel.attack_upgrade_level, panel.armor_upgrade_level = levels.attack, levels.armor
        panel.shield_upgrade_level = levels.shields
        panel.buffs.extend(buffs_of(unit, loop, mine=unit.owner == player))


def _fill_production(panel: ui_pb.ProductionPanel, factory: Unit, player: int, loop: int) -> None:
    panel.unit.CopyFrom(_info(factory, player, loop))
    for place, order in enumerate((factory.order, *factory.queue)):
        made = order.makes
        if made is None:
            continue
        done = order_progress(factory, order, place, loop)
        unit_type = made.id if isinstance(made, UnitType) else 0
        panel.build_queue.add(
            unit_type=unit_type,
            player_relative=relative(factory.owner, player),
            build_progress=done,
        )
        panel.production_queue.add(ability_id=made.build_ability_id, build_progress=done)


def _info(unit: Unit, player: int, loop: int) -> ui_pb.UnitInfo:
    kind = unit.type
    return ui_pb.UnitInfo(
        unit_type=kind.id,
        player_relative=relative(unit.owner, player),
        health=max(0, int(unit.life)),
        shields=int(unit.shields),
        energy=int(unit.energy),
        transport_slots_taken=0,
        build_progress=progress(unit, loop) if isinstance(unit.job, Site) else 0.0,
        max_health=int(kind.life),
        max_shields=int(kind.shields),
        max_energy=int(kind.energy),
    )


Colours = NDArray[np.uint8]
_GROUND: Colours = np.array([[0, 0, 0], [24, 24, 24], [60, 56, 48], [110, 102, 88]], dtype=np.uint8)
"""The colours of pixels off the map, of hidden cells, of fogged cells, and of visible cells."""
_OWN, _ENEMY, _NEUTRAL, _SELECTED = (40, 200, 60), (210, 50, 40), (70, 150, 220), (150, 255, 150)


class PicturesView:
    """The colour images of one episode."""

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
        """Draw these units; `lit` is the visibility of each cell, or None without fog."""
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
