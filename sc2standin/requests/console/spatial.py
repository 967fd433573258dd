"""Clicks on the screen or the minimap: selections and commands.

Rules it keeps: a click goes to the part of the map that the client sees, so the camera of the last
action counts. A command goes to the selected units that can carry it out. If several units could
build or train, one of them does so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from s2clientprotocol import common_pb2 as common
from s2clientprotocol import error_pb2 as error_pb
from s2clientprotocol import raw_pb2 as raw_pb
from s2clientprotocol import sc2api_pb2 as sc_pb
from s2clientprotocol import spatial_pb2 as spatial_pb

from sc2standin.data import abilities
from sc2standin.data.abilities import KIND_BY_ABILITY, OrderKind
from sc2standin.layers import facts, window
from sc2standin.layers.layers import Discs
from sc2standin.layers.window import Window
from sc2standin.requests.console import selecting
from sc2standin.simulation.console import Console, Controls
from sc2standin.simulation.fights.cloak import is_hidden
from sc2standin.simulation.game import Game
from sc2standin.simulation.units import Unit

Command = raw_pb.ActionRawUnitCommand
Result: TypeAlias = error_pb.ActionResult.ValueType
_ALONE = (OrderKind.BUILD, OrderKind.TRAIN)


@dataclass(frozen=True)
class Screen:
    """The client's view when it acts."""

    game: Game
    controls: Controls
    setup: sc_pb.SpatialCameraSetup

    @property
    def console(self) -> Console:
        return self.controls.asked

    @cached_property
    def window(self) -> Window:
        return window.screen(self.setup, self.console.camera)

    @cached_property
    def minimap(self) -> Window:
        return window.minimap(self.setup, self.game.terrain)

    @cached_property
    def units(self) -> Sequence[Unit]:
        """The units that the client sees, on the screen or not.

        They must not depend on the client's last observation, because a replay has no observations.
        """
        if not self.game.world.cloaked:
            return self._lit
        return [unit for unit in self._lit if not is_hidden(unit, self.console.player)]

    @property
    def _lit(self) -> Sequence[Unit]:
        """The units that are not in the fog."""
        game, player = self.game, self.console.player
        if game.sight is None:
            return game.world.units
        eyes = ((unit.x, unit.y, unit.type.sight) for unit in game.world.owned_by(player))
        lit = game.terrain.seen_from(eyes)
        height, width = lit.shape
        return [
            unit
            for unit in game.world.units
            if unit.owner == player
            or lit[min(int(unit.y), height - 1), min(int(unit.x), width - 1)]
        ]

    @cached_property
    def index(self) -> NDArray[np.intp]:
        """For each pixel 1 + the index of the unit on top, or 0."""
        index, _density = Discs(self.window, *facts.places(self.units)).index()
        return index

    def unit_at(self, pixel: common.PointI) -> Unit | None:
        """The unit at a pixel of the screen."""
        number = int(self.index[pixel.y, pixel.x])
        return self.units[number - 1] if number else None

    def units_in(self, columns: slice, rows: slice) -> list[Unit]:
        """The units in a part of the screen, in the order of creation."""
        return [self.units[number - 1] for number in np.unique(self.index[rows, columns]) if number]


def read_click(screen: Screen, sent: spatial_pb.ActionSpatial) -> Console | Command | Result:
    """The console after an action, or the command that it gives, or the reason for a refusal."""
    kind = sent.WhichOneof("action")
    if kind == "unit_command":
        return _command(screen, sent.unit_command)
    if kind == "camera_move":
        return _camera_at(screen, sent.camera_move.center_minimap)
    if kind == "unit_selection_point":
        clicked = sent.unit_selection_point
        pixel = clicked.selection_screen_coord
        if not screen.window.has(pixel.x, pixel.y):
            return error_pb.Error
        on_screen = screen.units_in(slice(None), slice(None))
        return selecting.click(screen.console, screen.unit_at(pixel), on_screen, clicked.type)
    if kind == "unit_selection_rect":
        return _select_in(screen, sent.unit_selection_rect)
    return error_pb.Error


def _camera_at(screen: Screen, pixel: common.PointI) -> Console | Result:
    if not screen.minimap.has(pixel.x, pixel.y):
        return error_pb.Error
    point = screen.game.terrain.clamp(*screen.minimap.point(pixel.x, pixel.y))
    return replace(screen.console, camera=point)


def _select_in(screen: Screen, drawn: spatial_pb.ActionSpatialUnitSelectionRect) -> Console:
    units: list[Unit] = []
    for corners in drawn.selection_screen_coord:
        left, right = sorted((corners.p0.x, corners.p1.x))
        top, bottom = sorted((corners.p0.y, corners.p1.y))
        units += screen.units_in(slice(max(left, 0), right + 1), slice(max(top, 0), bottom + 1))
    return selecting.rectangle(screen.console, units, add=drawn.selection_add)


def _command(screen: Screen, sent: spatial_pb.ActionSpatialUnitCommand) -> Command | Result:
    command = Command(ability_id=sent.ability_id, queue_command=sent.queue_command)
    target = sent.WhichOneof("target")
    if target is not None:
        pixel = getattr(sent, target)
        on_screen = target == "target_screen_coord"
        image = screen.window if on_screen else screen.minimap
        if not image.has(pixel.x, pixel.y):
            return error_pb.Error
        unit = screen.unit_at(pixel) if on_screen else None
        if unit is not None and _is_target(sent.ability_id):
            command.target_unit_tag = unit.tag
        else:
            point = command.target_world_space_pos
            point.x, point.y = image.point(pixel.x, pixel.y)
    workable = _workable(screen, sent.ability_id)
    if not workable:
        return error_pb.NotSupported
    command.unit_tags.extend(unit.tag for unit in _executors(workable, command))
    return command


def _is_target(ability_id: int) -> bool:
    """True if the ability may be used on a unit."""
    known = abilities.ABILITY_BY_ID.get(ability_id)
    return known is None or known.target != abilities.POINT


def _workable(screen: Screen, ability_id: int) -> list[Unit]:
    """The selected units that have an ability."""
    return [
        unit
        for unit in screen.controls.alive(screen.console.selected)
        if unit.owner == screen.console.player
        and abilities.specific(ability_id, unit.type) in abilities.available_to(unit.type)
    ]


def _executors(units: list[Unit], command: Command) -> list[Unit]:
    """The units that carry a command out: all, the nearest worker, or the least busy structure."""
    kind = KIND_BY_ABILITY.get(abilities.specific(command.ability_id))
    if kind not in _ALONE:
        return units
    if kind == OrderKind.TRAIN:
        return [min(units, key=_queued)]
    point = command.target_world_space_pos
    return [min(units, key=lambda unit: (unit.x - point.x) ** 2 + (unit.y - point.y) ** 2)]


def _queued(factory: Unit) -> int:
    return len(factory.queue) + (factory.order.kind != OrderKind.IDLE)
