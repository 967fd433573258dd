"""Buttons of the user interface: the army, idle workers, control groups, icons of units.

Selections of larvae, warp gates and cargo, which the stand-in does not simulate, and toggles of
autocast have no effect.
"""

from __future__ import annotations

from s2clientprotocol import error_pb2 as error_pb
from s2clientprotocol import ui_pb2 as ui_pb

from sc2standin.requests.console import selecting
from sc2standin.simulation.console import GROUPS, Console, Controls
from sc2standin.simulation.game import Game

_WITHOUT_EFFECT = ("select_warp_gates", "select_larva", "toggle_autocast")


def read(
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
