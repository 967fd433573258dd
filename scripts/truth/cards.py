"""Reads the command cards of Terran units from the game's catalogs.

A card consists of a unit's buttons that name one of the unit's own abilities. Buttons without an
ability id in the data tables, such as those of passive abilities, are not compared.
"""

from __future__ import annotations

from collections.abc import Iterator

from s2clientprotocol import common_pb2 as common

from sc2standin.data import tables
from sc2standin.data.abilities import available_to, refused_to
from sc2standin.data.unit_types.files import TYPE_BY_NAME
from sc2standin.data.unit_types.kinds import UnitType
from truth.catalog import GameData

_PLACES = {
    **{"Execute": 0, "On": 0, "Off": 1, "Stop": 0, "Rally": 0, "Ammo": 0, "CancelLast": 0},
    **{"Move": 0, "Patrol": 1, "HoldPos": 2, "AcquireMove": 3, "Gather": 0, "Return": 1},
    **{"Load": 0, "UnloadAll": 1, "UnloadAt": 2, "LoadAll": 4},
}
"""A dict from the name of a command to the index of the command within its ability."""
_OF_SITES = {"Cancel": 0, "Halt": 1}
"""The indices of further commands of the ability `BuildInProgress`."""
_ELSEWHERE = {"Cancel": 1, "Halt": 30}
"""The indices of further commands of all abilities but `BuildInProgress`."""
_ABILITIES = {(row.link_name, row.link_index): row for row in tables.kept().abilities}


def general(ability_id: int) -> int:
    """An ability's general id, which is the same for all unit types that have the ability."""
    return tables.kept().abilities[ability_id].remaps_to_ability_id or ability_id


def ours(kind: UnitType) -> set[int]:
    """The general ids of a type's abilities in the stand-in, both usable and refused ones."""
    return {general(one) for one in (*available_to(kind), *refused_to(kind))}


def in_catalogs(game: GameData, kind: UnitType) -> set[int]:
    """The general ids of the abilities on a unit type's command card."""
    unit = game["Unit"][kind.name]
    own = {one.attributes.get("Link") for one in unit.items("AbilArray")}
    buttons = (one for card in unit.items("CardLayouts") for one in card.items("LayoutButtons"))
    found = set()
    for button in buttons:
        link, _, command = button.attributes.get("AbilCmd", "").partition(",")
        if link not in own or (link == "BuildInProgress" and kind.made_from is not None):
            continue  # a structure of this type comes from another structure, without construction
        name = command.rstrip("0123456789")
        places = _PLACES | (_OF_SITES if link == "BuildInProgress" else _ELSEWHERE)
        place = places[name] if name in places else int(command[len(name) :]) - 1
        row = _ABILITIES.get((link, place))
        if row is not None and row.available:
            found.add(general(row.ability_id))
    return found


def missing(game: GameData) -> Iterator[str]:
    """A line for each ability on a Terran unit's card that the stand-in's unit type lacks."""
    for kind in TYPE_BY_NAME.values():
        if kind.race == common.Terran and kind.name in game["Unit"]:
            for one in sorted(in_catalogs(game, kind) - ours(kind)):
                row = tables.kept().abilities[one]
                yield f"+ card of {kind.name}: {one} {row.friendly_name}"
