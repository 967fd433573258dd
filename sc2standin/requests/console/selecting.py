"""Selection by clicks and buttons: each function returns the next console.

Rules it keeps: a click on empty ground changes nothing. Several selected units are always the
client's own; a unit of another player is selected alone. A rectangle around own units that can move
selects only these, and no structures.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

from s2clientprotocol import spatial_pb2 as spatial_pb
from s2clientprotocol import ui_pb2 as ui_pb

from sc2standin.data.abilities import OrderKind
from sc2standin.data.unit_types import MULE, STRUCTURE
from sc2standin.simulation.console import Console
from sc2standin.simulation.units import Unit

Click = spatial_pb.ActionSpatialUnitSelectionPoint
Group = ui_pb.ActionControlGroup
GroupAction: TypeAlias = Group.ControlGroupAction.ValueType
Icon = ui_pb.ActionMultiPanel
Worker = ui_pb.ActionSelectIdleWorker
Units = tuple[Unit, ...]


def select(console: Console, units: Iterable[Unit], *, add: bool = False) -> Console:
    """Select these units, or add the client's own among them to the selection."""
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
    """Click on a unit; None for a click on empty ground."""
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
    """Draw a rectangle around these units."""
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
    """Select the next idle worker, or all of them."""
    idle = [unit for unit in own if unit.type.works and unit.order.kind == OrderKind.IDLE]
    if kind in (Worker.All, Worker.AddAll):
        return select(console, idle, add=kind == Worker.AddAll)
    last = next((i for i, unit in enumerate(idle) if unit in console.selected), -1)
    if kind == Worker.Add:
        following = [unit for unit in idle if unit not in console.selected][:1]
    else:
        following = idle[last + 1 : last + 2] or idle[:1]
    return select(console, following, add=kind == Worker.Add)


def control_group(
    console: Console, members: Units, selected: Units, number: int, kind: GroupAction
) -> Console:
    """Use a control group.

    Args:
        members: the living units of the group.
        selected: the living units of the selection.
    """
    if kind == Group.Recall:
        return select(console, members)
    own = _own(console, selected)
    groups = list(console.groups)
    if kind in (Group.SetAndSteal, Group.AppendAndSteal):
        groups = [tuple(unit for unit in group if unit not in own) for group in groups]
    appended = kind in (Group.Append, Group.AppendAndSteal)
    groups[number] = _merged(members, own) if appended else own
    return replace(console, groups=tuple(groups))


def icon(console: Console, selected: Units, number: int, kind: Icon.Type.ValueType) -> Console:
    """Click on an icon of the panel of several units.

    Args:
        selected: the units on the panel.
    """
    unit = selected[number]
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
