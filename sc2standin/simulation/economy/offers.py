"""The abilities that a unit can use now, for commands, queries and the command card.

This file does not check places and targets: they are checked when a command is read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from s2clientprotocol import debug_pb2 as debug_pb
from s2clientprotocol import error_pb2 as error_pb

from sc2standin.data.abilities import (
    ABILITY_BY_ID,
    CANCEL_FORTRESS,
    CANCEL_ORBITAL,
    CANCEL_QUEUED,
    CANCEL_SITE,
    GENERAL_CANCEL_SITE,
    GENERAL_RESEARCH,
    HALT,
    HALT_SITE,
    KIND_BY_ABILITY,
    MORPH_TO_BANELING,
    OrderKind,
    available_to,
    specific,
    trained_by,
)
from sc2standin.data.research import RESEARCH_BY_ABILITY, Research
from sc2standin.data.spells import SPELL_BY_ABILITY
from sc2standin.data.unit_types.files import MODES, ORBITAL_COMMAND, PLANETARY_FORTRESS, UNIT_TYPES
from sc2standin.data.unit_types.kinds import UnitType
from sc2standin.data.upgrades import STIMPACK
from sc2standin.simulation import spells
from sc2standin.simulation.economy.economy import Economy, can_afford
from sc2standin.simulation.economy.structures import ENERGY, QUEUED
from sc2standin.simulation.units import Errand, Site, Unit

Result: TypeAlias = error_pb.ActionResult.ValueType

_BY_ITSELF = (OrderKind.UPGRADE, OrderKind.ADD_ON, OrderKind.LIFT)
"""The kinds of orders that a structure accepts only if it has no other order."""
_MAKES = (OrderKind.BUILD, *QUEUED, *_BY_ITSELF)
_TOO_EXPENSIVE = (
    error_pb.NotEnoughMinerals,
    error_pb.NotEnoughVespene,
    error_pb.NotEnoughFood,
    error_pb.NotEnoughEnergy,
)
MADE_BY: dict[int, UnitType] = {
    unit.build_ability_id: unit
    for unit in UNIT_TYPES
    if KIND_BY_ABILITY.get(unit.build_ability_id) in _MAKES
}
"""The product of each ability, by the ability's id."""


_CANCELS_UPGRADE = {CANCEL_ORBITAL: ORBITAL_COMMAND, CANCEL_FORTRESS: PLANETARY_FORTRESS}


def made_by(ability_id: int) -> UnitType | Research:
    """The product that an ability makes, or the upgrade that it researches."""
    return RESEARCH_BY_ABILITY.get(ability_id) or trained_by(ability_id) or MADE_BY[ability_id]


def meant(ability_id: int, unit: Unit, economy: Economy | None) -> int:
    """The specific ability that a client means by the id of a general or specific ability.

    A general ability to cancel depends on the unit's present activity. A general ability to
    research stands for the next level of an upgrade.
    """
    if economy is not None and ability_id in GENERAL_RESEARCH:
        level = economy.laboratory.next_level(unit, ability_id)
        return ability_id if level is None else level.build_ability_id
    if ability_id == GENERAL_CANCEL_SITE:
        for one in available_to(unit.type):
            if ABILITY_BY_ID[one].remaps_to == ability_id and _cancels(unit, one):
                return one
    return specific(ability_id, unit.type)


def can_use(
    economy: Economy | None, unit: Unit, ability_id: int, loop: int, *, free: bool = False
) -> bool:
    """True if a unit can use an ability in this loop; with `free`, its cost does not count."""
    spell = SPELL_BY_ABILITY.get(ability_id)
    if spell is not None:
        result = spells.refusal(unit, spell, loop)
        return result == error_pb.Success or (free and result in _TOO_EXPENSIVE)
    if KIND_BY_ABILITY.get(ability_id, OrderKind.MOVE) < OrderKind.LAND:
        return True
    if economy is None:
        return False
    result = refusal(economy, unit, ability_id)
    return result == error_pb.Success or (free and result in _TOO_EXPENSIVE)


def refusal(economy: Economy, unit: Unit, ability_id: int) -> Result:
    """Success if a unit can use an ability of an economy now; else the reason for a refusal."""
    kind = KIND_BY_ABILITY[ability_id]
    if kind in (OrderKind.CANCEL, OrderKind.HALT):
        cancels = _cancels(unit, ability_id)
        return error_pb.Success if cancels else error_pb.CantFindCancelOrder
    if isinstance(unit.job, Site):
        return error_pb.BuildingIsUnderConstruction
    refused = _REFUSALS.get(kind)
    return error_pb.Success if refused is None else refused(economy, unit, ability_id)


def _refusal_to_stim(economy: Economy, unit: Unit, _ability_id: int) -> Result:
    if not economy.laboratory.has(STIMPACK) and not economy.lifts(debug_pb.tech_tree):
        return error_pb.TechRequirementsNotMet
    return error_pb.Success if can_afford(unit) else error_pb.NotEnoughLife


def _refusal_to_change_mode(economy: Economy, unit: Unit, _ability_id: int) -> Result:
    has_tech = economy.has_tech_for(MODES[unit.type.name].into)
    if not has_tech and not economy.lifts(debug_pb.tech_tree):
        return error_pb.TechRequirementsNotMet
    return error_pb.Success


def _refusal_to_return(_economy: Economy, unit: Unit, _ability_id: int) -> Result:
    return error_pb.Success if any(unit.cargo) else error_pb.Error


def _refusal_to_call(_economy: Economy, unit: Unit, _ability_id: int) -> Result:
    return error_pb.Success if unit.energy >= ENERGY else error_pb.NotEnoughEnergy


def _refusal_to_morph(economy: Economy, _unit: Unit, ability_id: int) -> Result:
    return economy.morphs.allows() if ability_id == MORPH_TO_BANELING else error_pb.Success


def _refusal_to_salvage(economy: Economy, unit: Unit, _ability_id: int) -> Result:
    twice = economy.building.salvages(unit)
    return error_pb.CantQueueThatOrder if twice else error_pb.Success


def _refusal_to_make(economy: Economy, unit: Unit, ability_id: int) -> Result:
    kind, made = KIND_BY_ABILITY[ability_id], made_by(ability_id)
    result = economy.allows(made)
    if result == error_pb.NotSupported:
        return result
    needs_lab = isinstance(made, UnitType) and made.needs_tech_lab
    any_tech = economy.lifts(debug_pb.tech_tree)
    if needs_lab and not any_tech and not economy.production.has_tech_lab(unit):
        return error_pb.TechRequirementsNotMet
    busy_with = unit.order.kind if unit.order.makes is not None else None
    alone = kind in _BY_ITSELF or busy_with in _BY_ITSELF
    if kind != OrderKind.BUILD and busy_with is not None and alone:
        return error_pb.CantQueueThatOrder
    return result


_REFUSALS: dict[OrderKind, Callable[[Economy, Unit, int], Result]] = {
    OrderKind.STIM: _refusal_to_stim,
    OrderKind.CHANGE_MODE: _refusal_to_change_mode,
    OrderKind.RETURN: _refusal_to_return,
    OrderKind.CALL_MULE: _refusal_to_call,
    OrderKind.SCAN: _refusal_to_call,
    OrderKind.MORPH: _refusal_to_morph,
    OrderKind.SALVAGE: _refusal_to_salvage,
    **dict.fromkeys(_MAKES, _refusal_to_make),
}
"""The check for each kind of order that needs one: it returns Success or the refusal."""


def _cancels(unit: Unit, ability_id: int) -> bool:
    """True if the unit is doing the activity that this ability cancels or halts."""
    job, kind = unit.job, unit.order.kind
    if ability_id == HALT:
        return isinstance(job, Errand) and job.constructing
    if ability_id == HALT_SITE:
        return isinstance(job, Site) and job.builder != 0
    if ability_id == CANCEL_SITE:
        return isinstance(job, Site)
    if ability_id == CANCEL_QUEUED:
        return kind in QUEUED
    if ability_id in _CANCELS_UPGRADE:
        return unit.order.makes is _CANCELS_UPGRADE[ability_id]
    return kind == OrderKind.ADD_ON
