"""Carries out the actions of a client with a screen: they change its console or give a command.

Rules it keeps: an action on a screen that the client does not have is not supported. Of the buttons
of the user interface, selections of larvae, warp gates and cargo, which the stand-in does not
simulate, and toggles of autocast have no effect.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from s2clientprotocol import error_pb2 as error_pb
from s2clientprotocol import raw_pb2 as raw_pb
from s2clientprotocol import sc2api_pb2 as sc_pb
from s2clientprotocol import ui_pb2 as ui_pb

from sc2standin.data import abilities
from sc2standin.layers.window import SCREENS, ClickPart, as_clicks, camera_action
from sc2standin.process.state import State
from sc2standin.requests.console import selecting, spatial
from sc2standin.simulation.console import GROUPS, Console, Controls
from sc2standin.simulation.game import Game

Result: TypeAlias = error_pb.ActionResult.ValueType


def act(state: State, one: sc_pb.Action) -> Result | sc_pb.Action:
    """Carry out an action and return its result; convert a command into a raw action instead."""
    if one.action_ui.HasField("production_panel"):
        return _cancel(state, one)
    if one.HasField("action_ui"):
        return _change(state, one, press(state.playing(), state.controls, one.action_ui))
    options = state.player_options
    for setup, part in SCREENS:
        if one.HasField(part) and options.HasField(setup):
            screen = spatial.Screen(state.playing(), state.controls, getattr(options, setup))
            read = spatial.read_click(screen, getattr(one, part))
            if isinstance(read, spatial.Command):
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
    """A command as all interfaces of the client show it."""
    options, command = state.player_options, one.action_raw.unit_command
    if not any(options.HasField(setup) for setup, _part in SCREENS):
        return one
    game, at = state.playing(), None
    target = game.world.by_tag.get(command.target_unit_tag)
    if target is not None:
        at = target.x, target.y
    elif command.HasField("target_world_space_pos"):
        point = command.target_world_space_pos  # may be off the map if the command needs no point
        at = (point.x, point.y) if game.terrain.on_map(point.x, point.y) else None
    return as_clicks(one, at, options, state.controls.now.camera, game.terrain)


def select_tagged(state: State, tags: Iterable[int]) -> None:
    """Select the units of a raw command."""
    by_tag, controls = state.playing().world.by_tag, state.controls
    controls.asked = selecting.select(
        controls.asked, [by_tag[tag] for tag in tags if tag in by_tag]
    )
    state.ask(partial(controls.take_over, controls.asked))


def _change(state: State, one: sc_pb.Action, to: Console | Result) -> Result:
    """Change the console with the next loop; or return the reason for a refusal."""
    if not isinstance(to, Console):
        return to
    state.controls.asked = to
    state.ask(partial(state.controls.take_over, to))
    state.ask(partial(state.was_done, one))
    return error_pb.Success


def _cancel(state: State, one: sc_pb.Action) -> Result:
    """Cancel a unit in the queue of a structure, if the structure alone is selected."""
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


_WITHOUT_EFFECT = ("select_warp_gates", "select_larva", "toggle_autocast")


def press(
    game: Game, controls: Controls, sent: ui_pb.ActionUI
) -> Console | error_pb.ActionResult.ValueType:
    """The console after an action, or the reason for a refusal."""
    console = controls.asked
    own = game.world.owned_by(console.player)
    kind = sent.WhichOneof("action")
    if kind == "select_army":
        add = sent.select_army.selection_add
        return selecting.army(console, own, add=add)
    if kind == "select_idle_worker":
        return selecting.idle_workers(console, own, sent.select_idle_worker.type)
    if kind == "control_group":
        return _control_group(controls, sent.control_group)
    if kind == "multi_panel":
        return _icon(controls, sent.multi_panel)
    return console if kind in _WITHOUT_EFFECT else error_pb.NotSupported


def _control_group(
    controls: Controls, sent: ui_pb.ActionControlGroup
) -> Console | error_pb.ActionResult.ValueType:
    console, alive = controls.asked, controls.alive
    number = sent.control_group_index
    if number >= GROUPS:
        return error_pb.Error
    members, selected = alive(console.groups[number]), alive(console.selected)
    return selecting.control_group(console, members, selected, number, sent.action)


def _icon(
    controls: Controls, sent: ui_pb.ActionMultiPanel
) -> Console | error_pb.ActionResult.ValueType:
    console = controls.asked
    selected = controls.alive(console.selected)
    if not 0 <= sent.unit_index < len(selected):
        return error_pb.Error
    return selecting.icon(console, selected, sent.unit_index, sent.type)
