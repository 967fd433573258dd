"""Reads a map on which two players play a battle of SMAC: the client's team on both sides.

    {"format": "sc2pool-standin-scenario/1", "name": "3m_duel", "duel_of": "3m"}

Rules it keeps: size, ground and the units of player 1 are those of the bundled map that is named,
so no number is written twice; the units of player 2 are of the same types, at the same places after
half a turn of the map, so neither side has an advantage; no unit acts that is not ordered to.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import resources

from sc2standin.map_reader.fields import Fields
from sc2standin.map_reader.places import Cluster
from sc2standin.map_reader.scenario import (
    Battle,
    Group,
    Scenario,
    map_fields,
    parse_scenario,
    scenario_of,
)

_ORIGINALS = resources.files("sc2standin") / "maps" / "smac"
_SUFFIX = ".SC2Map"


def parse_map(content: bytes) -> Scenario:
    """The scenario in a map file of ours, a whole one or a duel; raises ScenarioError."""
    fields = map_fields(content)
    return _read_duel(fields) if fields.has("duel_of") else scenario_of(fields)


def _read_duel(fields: Fields) -> Scenario:
    name = fields.take("name", str)
    originals = {path.name.removesuffix(_SUFFIX): path for path in _ORIGINALS.iterdir()}
    original = fields.one_of("duel_of", originals)
    fields.finish()
    return duel_of(parse_scenario(original.read_bytes()), name)


def duel_of(scenario: Scenario, name: str) -> Scenario:
    """The team of a scenario on both sides of its map."""
    team = [group for group in scenario.units if group.owner == 1]
    others = [_opposite(group, scenario.size) for group in team]
    return replace(
        scenario, name=name, players=2, units=(*team, *others), rules=(Battle(attack=()),)
    )


def _opposite(group: Group, size: tuple[int, int]) -> Group:
    """The same units of player 2, after half a turn of the map."""
    place = group.place
    assert isinstance(place, Cluster), "all teams of the bundled maps stand in clusters"
    x, y = place.centre
    return replace(group, owner=2, place=Cluster((size[0] - x, size[1] - y)))
