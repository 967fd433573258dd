"""The panels at the bottom of the screen: what is selected, and the control groups.

Rules it keeps: who has died, and whom the client sees no more, is on no panel; a structure that
trains has a panel of its own if it alone is selected.
"""

from __future__ import annotations

from collections.abc import Sequence

from s2clientprotocol import ui_pb2 as ui_pb

from sc2standin.data.unit_types import UnitType
from sc2standin.layers.facts import buffs_of, is_producing, order_progress, progress, relative
from sc2standin.simulation.console import Controls
from sc2standin.simulation.units import Site, Unit
from sc2standin.simulation.world import World


def fill(
    shown: ui_pb.ObservationUI, selected: Sequence[Unit], controls: Controls, world: World
) -> None:
    """Fill the panels.

    Args:
        selected: the selected units that the client sees.
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
