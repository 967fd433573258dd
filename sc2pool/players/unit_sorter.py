"""`UnitSorter`: sorts an observation's units into a bot's groups, like python-sc2 but faster.

    kind of a unit ─► python-sc2 sorts one such unit ─► its groups     once
    each unit ─► its kind ─► the groups                                every step

`BotAI._prepare_units` decides for each unit in each step, although all units of a kind belong to
the same groups. Here python-sc2 decides once for each kind: it sorts a single unit for a bot that
does nothing. Rules: the groups are python-sc2's own, and its rules are not repeated here. If the
groups may depend on more than the kind, python-sc2 sorts by itself. Such cases are blips, effects,
distances, a bot that overrides the sorting, and a release that reads further fields of a unit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import compress, count, repeat
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, Final

from s2clientprotocol import raw_pb2
from sc2.bot_ai import BotAI
from sc2.data import Race
from sc2.game_data import GameData
from sc2.game_state import GameState
from sc2.unit import Unit
from sc2.units import Units

_SORT: Final = BotAI._prepare_units
_NAMES: Final = frozenset(
    "is_blip unit_type display_type alliance tag "
    "type_id is_structure "  # of the type
    "vespene_contents mineral_ids geyser_ids race_townhalls "
    "state observation_raw effects race base_build "
    "distance_calculation_method _pdist _cdist "
    "append add set".split()
)
"""The lower-case names in python-sc2's sorting code, except those of a bot's groups. Another name
may mean that a release reads a further field."""
_KIND: Final = ("unit_type", "alliance", "display_type", "is_blip")
"""The fields that define the kind of a unit."""
_kind_of: Final = attrgetter(*_KIND)

Kind = tuple[Any, ...]


@dataclass(eq=False)  # hashed often, so by identity
class Place:
    """The groups to which the units of a kind belong.

    Attributes:
        groups: the names of the bot's `Units` that contain them.
        tags: the names of the bot's sets that contain their tags.
        type_data: the data of the unit's type, if python-sc2 looks them up.
        with_gas: the place of units with gas, if it differs.
    """

    groups: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    type_data: Any = None
    with_gas: Place | None = None


class UnitSorter:
    """Sorts the units of one game's bots."""

    def __init__(self, data: GameData) -> None:
        self._data = data
        self._places: dict[Race, dict[Kind, Place]] = defaultdict(dict)
        """For each race of a bot, the place of each kind. python-sc2 must sort kinds without
        groups."""
        empty = self._sorted(Race.Terran)
        self._groups = tuple(name for name, value in empty.items() if type(value) is Units)
        self._sets = tuple(name for name, value in empty.items() if type(value) is set)
        names = {name for name in _SORT.__code__.co_names if name.islower()}
        self._is_known = names <= {*_NAMES, *self._groups, *self._sets}
        """True if this release of python-sc2 sorts only by the known names."""

    def can_sort_for(self, bot: BotAI) -> bool:
        """True if `sort` has the same effect as the bot's own method."""
        return (
            self._is_known
            and bot.game_data is self._data
            and bot.distance_calculation_method == 0
            and getattr(bot._prepare_units, "__func__", None) is _SORT
        )

    def sort(self, bot: BotAI, state: GameState) -> None:
        """Sort the state's units, like `bot._prepare_units()`."""
        messages = list(state.observation_raw.units)
        places = self._places_of(bot.race, messages)
        members: dict[str, set[Place]] = {name: set() for name in (*self._groups, *self._sets)}
        for place in set(places):
            if not place.groups:
                _SORT(bot)
                return
            for name in (*place.groups, *place.tags):
                members[name].add(place)
        units = list(map(Unit, messages, repeat(bot), count(), repeat(bot.base_build)))
        # python-sc2 would read each unit's tag in the next step, and some units' type data now.
        for unit, message, place in zip(units, messages, places, strict=True):
            unit.tag = message.tag
            if place.type_data is not None:
                unit._type_data = place.type_data
        for name in self._groups:
            setattr(bot, name, Units(_of(members[name], places, units), bot))
        for name in self._sets:
            setattr(bot, name, {unit.tag for unit in _of(members[name], places, units)})

    def _places_of(self, race: Race, messages: list[raw_pb2.Unit]) -> list[Place]:
        known = self._places[race]
        kinds = list(map(_kind_of, messages))
        try:
            places = list(map(known.__getitem__, kinds))
        except KeyError:
            for kind in set(kinds).difference(known):
                known[kind] = self._place_of(race, kind)
            places = list(map(known.__getitem__, kinds))
        if any(place.with_gas is not None for place in set(places)):
            return [
                place.with_gas if place.with_gas and message.vespene_contents else place
                for place, message in zip(places, messages, strict=True)
            ]
        return places

    def _place_of(self, race: Race, kind: Kind) -> Place:
        """The place of units of this kind."""
        fields = dict(zip(_KIND, kind, strict=True))
        place = self._shown(race, raw_pb2.Unit(**fields, tag=1))
        with_gas = self._shown(race, raw_pb2.Unit(**fields, tag=1, vespene_contents=1))
        if (place.groups, place.tags) != (with_gas.groups, with_gas.tags):
            place.with_gas = with_gas
        return place

    def _shown(self, race: Race, shown: raw_pb2.Unit) -> Place:
        """The place into which python-sc2 sorts this unit."""
        found = self._sorted(race, shown)
        groups = tuple(name for name in self._groups if found[name])
        if not groups:
            return Place()
        unit = found[groups[0]][0]
        tags = tuple(name for name in self._sets if shown.tag in found[name])
        return Place(groups, tags, vars(unit).get("_type_data"))

    def _sorted(self, race: Race, *shown: raw_pb2.Unit) -> dict[str, Any]:
        """The attributes that python-sc2 sets on a bot that sees these units."""
        bot = Nobody()
        bot.race, bot.game_data, bot.distance_calculation_method = race, self._data, 0
        raw = SimpleNamespace(units=shown)
        bot.state = SimpleNamespace(observation_raw=raw, effects=set(), game_loop=0)  # type: ignore[assignment]
        before = dict(vars(bot))
        bot._prepare_units()
        return {
            name: value
            for name, value in vars(bot).items()
            if value is not before.get(name, _NOTHING)
        }


def _of(wanted: set[Place], places: list[Place], units: list[Unit]) -> Iterable[Unit]:
    """The units whose place is wanted."""
    return compress(units, map(wanted.__contains__, places)) if wanted else ()


_NOTHING: Final = object()


class Nobody(BotAI):
    """A bot that does nothing, used to test how python-sc2 reads a message."""

    async def on_step(self, iteration: int) -> None:
        """Never called."""
