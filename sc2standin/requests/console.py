"""Actions of a client with a screen: clicks on the screen, and buttons of the user interface.

These actions change the client's console (camera, selection, control groups) or give a command.

Rules of the actions:
* An action on a screen that the client does not have is not supported. Buttons for larvae, warp
  gates, cargo or autocast have no effect, because the stand-in simulates none of these.
* A click hits what the screen shows after the client's earlier actions. An earlier camera move
  counts even before it takes effect.
* A command goes to the selected units that can carry it out. If several selected units can build or
  train, only one of them gets the order.
* A click on empty ground changes nothing. Only the client's own units can be selected together; a
  unit of another player is selected alone. If a rectangle contains own units that can move, only
  these units are selected, and no structures.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from s2clientprotocol import common_pb2 as common
from s2clientprotocol import error_pb2 as error_pb
from s2clientprotocol import raw_pb2 as raw_pb
from s2clientprotocol import sc2api_pb2 as sc_pb
from s2clientprotocol import spatial_pb2 as spatial_pb
from s2clientprotocol import ui_pb2 as ui_pb

from sc2standin.data import abilities
from sc2standin.data.abilities import KIND_BY_ABILITY, OrderKind
from sc2standin.data.unit_types.files import MULE
from sc2standin.data.unit_types.kinds import STRUCTURE
from sc2standin.layers import facts, window
from sc2standin.layers.layers import Discs
from sc2standin.layers.window import SCREENS, ClickPart, Window, as_clicks, camera_action
from sc2standin.process.state import State
from sc2standin.simulation.console import GROUPS, Console, Controls
from sc2standin.simulation.fights.cloak import is_hidden
from sc2standin.simulation.game import Game
from sc2standin.simulation.units import Unit

Command = raw_pb.ActionRawUnitCommand
Result: TypeAlias = error_pb.ActionResult.ValueType


def act(state: State, one: sc_pb.Action) -> Result | sc_pb.Action:
    """Carry out an action and return its result; a command is returned as a raw action instead."""
    if one.action_ui.HasField("production_panel"):
        return _cancel(state, one)
    if one.HasField("action_ui"):
        return _change(state, one, press(state.playing(), state.controls, one.action_ui))
    options = state.player_options
    for setup, part in SCREENS:
        if one.HasField(part) and options.HasField(setup):
            screen = Screen(state.playing(), state.controls, getattr(options, setup))
            read = read_click(screen, getattr(one, part))
            if isinstance(read, Command):
                return _as_raw(one, part, read)
            return _change(state, one, read)
    return error_pb.NotSupported


def move_camera(state: State, one: sc_pb.Action) -> Result:
    """Move the camera to a point of the map, by a raw action."""
    game, to = state.playing(), one.action_raw.camera_move.center_world_space
    if not game.terrain.on_map(to.x, to.y):
        return error_pb.Error
    camera = game.terrain.clamp(to.x, to.y)
    done = camera_action((to.x, to.y), state.player_options, game.terrain)
    done.action_raw.CopyFrom(one.action_raw)
    return _change(state, done, replace(state.controls.asked, camera=camera))


def with_clicks(state: State, one: sc_pb.Action) -> sc_pb.Action:
    """The report of a command, with a click for each of the client's screens."""
    options, command = state.player_options, one.action_raw.unit_command
    if not any(options.HasField(setup) for setup, _part in SCREENS):
        return one
    game, at = state.playing(), None
    target = game.world.by_tag.get(command.target_unit_tag)
    if target is not None:
        at = target.x, target.y
    elif command.HasField("target_world_space_pos"):
        point = command.target_world_space_pos  # an unused point may be off the map
        at = (point.x, point.y) if game.terrain.on_map(point.x, point.y) else None
    return as_clicks(one, at, options, state.controls.now.camera, game.terrain)


def select_tagged(state: State, tags: Iterable[int]) -> None:
    """Select the units with these tags, by a raw action."""
    by_tag, controls = state.playing().world.by_tag, state.controls
    controls.asked = select(controls.asked, [by_tag[tag] for tag in tags if tag in by_tag])
    state.ask(partial(controls.take_over, controls.asked))


def _change(state: State, one: sc_pb.Action, to: Console | Result) -> Result:
    """Let a new console take effect with the next loop; if `to` is a refusal, just return it."""
    if not isinstance(to, Console):
        return to
    state.controls.asked = to
    state.ask(partial(state.controls.take_over, to))
    state.ask(partial(state.was_done, one))
    return error_pb.Success


def _cancel(state: State, one: sc_pb.Action) -> Result:
    """Cancel an order in a structure's queue, if the structure alone is selected."""
    economy = state.playing().economies.get(state.player_id)
    controls = state.controls
    selected = controls.alive(controls.asked.selected)
    if economy is None or len(selected) != 1 or selected[0].owner != controls.asked.player:
        return error_pb.NotSupported
    factory, place = selected[0], one.action_ui.production_panel.unit_index

    def cancel() -> None:
        if controls.alive(selected) and economy.cancel(factory, place):
            state.was_done(one)

    state.ask(cancel)
    return error_pb.Success


def _as_raw(
    one: sc_pb.Action, part: ClickPart, command: raw_pb.ActionRawUnitCommand
) -> sc_pb.Action:
    action = sc_pb.Action(action_raw=raw_pb.ActionRaw(unit_command=command))
    clicked = getattr(action, part)
    clicked.CopyFrom(getattr(one, part))
    clicked.unit_command.ability_id = abilities.specific(command.ability_id)
    return action


def press(game: Game, controls: Controls, sent: ui_pb.ActionUI) -> Console | Result:
    """The console after an action, or the reason for a refusal."""
    console = controls.asked
    own = game.world.owned_by(console.player)
    match sent.WhichOneof("action"):
        case "select_army":
            return army(console, own, add=sent.select_army.selection_add)
        case "select_idle_worker":
            return idle_workers(console, own, sent.select_idle_worker.type)
        case "control_group":
            return control_group(controls, sent.control_group)
        case "multi_panel":
            return icon(controls, sent.multi_panel)
        case "select_warp_gates" | "select_larva" | "toggle_autocast":
            return console  # the stand-in simulates no warp gates, larvae or autocast
    return error_pb.NotSupported


# ---- clicks on the screen or the minimap ---------------------------------------------------------


_ALONE = (OrderKind.BUILD, OrderKind.TRAIN)


@dataclass(frozen=True)
class Screen:
    """The screen and the minimap to which a client's action refers."""

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

        The client's last observation is not used, because a replay has no observations.
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
        """For each pixel: the index of the topmost unit plus 1, or 0 without a unit."""
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
    """The console after a click, the command that the click gives, or the reason for a refusal."""
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
        return click(screen.console, screen.unit_at(pixel), on_screen, clicked.type)
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
    return rectangle(screen.console, units, add=drawn.selection_add)


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
    """The units that carry out a command: all, the nearest one, or the least busy structure."""
    kind = KIND_BY_ABILITY.get(abilities.specific(command.ability_id))
    if kind not in _ALONE:
        return units
    if kind == OrderKind.TRAIN:
        return [min(units, key=_queued)]
    point = command.target_world_space_pos
    return [min(units, key=lambda unit: (unit.x - point.x) ** 2 + (unit.y - point.y) ** 2)]


def _queued(factory: Unit) -> int:
    return len(factory.queue) + (factory.order.kind != OrderKind.IDLE)


# ---- selection: each function returns the next console -------------------------------------------


Click = spatial_pb.ActionSpatialUnitSelectionPoint
Group = ui_pb.ActionControlGroup
Icon = ui_pb.ActionMultiPanel
Worker = ui_pb.ActionSelectIdleWorker
Units = tuple[Unit, ...]


def select(console: Console, units: Iterable[Unit], *, add: bool = False) -> Console:
    """Select these units; if `add`, add those that the client owns to the selection."""
    picked = tuple(units)
    if not picked:
        return console
    own = _own(console, picked)
    if add:
        before = _own(console, console.selected)
        return replace(console, selected=_merged(before, own)) if own else console
    return replace(console, selected=own or picked[:1])


def click(
    console: Console, unit: Unit | None, on_screen: Sequence[Unit], kind: Click.Type.ValueType
) -> Console:
    """Click on a unit, or on empty ground if `unit` is None."""
    if unit is None:
        return console
    if kind == Click.Toggle:
        if unit in console.selected:
            return _without(console, (unit,))
        return select(console, (unit,), add=True)
    if kind in (Click.AllType, Click.AddAllType):
        alike = [
            one for one in on_screen if one.owner == unit.owner and one.type.id == unit.type.id
        ]
        return select(console, alike, add=kind == Click.AddAllType)
    return select(console, (unit,))


def rectangle(console: Console, units: Sequence[Unit], *, add: bool) -> Console:
    """Of these units, select the client's movable ones, else its structures, else the first one."""
    own = _own(console, units)
    movable = [unit for unit in own if STRUCTURE not in unit.type.attributes]
    return select(console, movable or own or units[:1], add=add)


def army(console: Console, own: Sequence[Unit], *, add: bool) -> Console:
    """Select all units that are neither workers nor structures."""
    soldiers = [
        unit
        for unit in own
        if not (unit.type.works or unit.type is MULE or STRUCTURE in unit.type.attributes)
    ]
    return select(console, soldiers, add=add)


def idle_workers(console: Console, own: Sequence[Unit], kind: Worker.Type.ValueType) -> Console:
    """Select the next idle worker, or all idle workers."""
    idle = [unit for unit in own if unit.type.works and unit.order.kind == OrderKind.IDLE]
    if kind in (Worker.All, Worker.AddAll):
        return select(console, idle, add=kind == Worker.AddAll)
    last = next((i for i, unit in enumerate(idle) if unit in console.selected), -1)
    if kind == Worker.Add:
        following = [unit for unit in idle if unit not in console.selected][:1]
    else:
        following = idle[last + 1 : last + 2] or idle[:1]
    return select(console, following, add=kind == Worker.Add)


def control_group(controls: Controls, sent: Group) -> Console | Result:
    """Select a control group, or set its units."""
    console, number, kind = controls.asked, sent.control_group_index, sent.action
    if number >= GROUPS:
        return error_pb.Error
    members = controls.alive(console.groups[number])
    if kind == Group.Recall:
        return select(console, members)
    own = _own(console, controls.alive(console.selected))
    groups = list(console.groups)
    if kind in (Group.SetAndSteal, Group.AppendAndSteal):
        groups = [tuple(unit for unit in group if unit not in own) for group in groups]
    appended = kind in (Group.Append, Group.AppendAndSteal)
    groups[number] = _merged(members, own) if appended else own
    return replace(console, groups=tuple(groups))


def icon(controls: Controls, sent: Icon) -> Console | Result:
    """Click on an icon of the panel that shows several selected units."""
    console, kind = controls.asked, sent.type
    selected = controls.alive(console.selected)
    if not 0 <= sent.unit_index < len(selected):
        return error_pb.Error
    unit = selected[sent.unit_index]
    alike = tuple(one for one in selected if one.type.id == unit.type.id)
    if kind == Icon.DeselectUnit:
        return _without(console, (unit,))
    if kind == Icon.DeselectAllOfType:
        return _without(console, alike)
    return select(console, alike if kind == Icon.SelectAllOfType else (unit,))


def _own(console: Console, units: Iterable[Unit]) -> Units:
    return tuple(unit for unit in units if unit.owner == console.player)


def _merged(first: Units, then: Units) -> Units:
    return tuple(dict.fromkeys((*first, *then)))


def _without(console: Console, units: Units) -> Console:
    return replace(console, selected=tuple(u for u in console.selected if u not in units))
