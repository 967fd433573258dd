"""SMAC's scenarios for two players: maps that derive from those for one."""

from __future__ import annotations

import json

import numpy as np
import pytest
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.map_reader.real_map import read_scenario
from tests.standin.maps.test_smac import COPY, MAPS

FILES = sorted(MAPS.with_name("smac_duels").iterdir())
ATTACK = 23
DUELS = pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)


def duel(name: str) -> sc_pb.LocalMap:
    return sc_pb.LocalMap(map_path=f"SMAC_Duels/{name}.SC2Map")


@DUELS
def test_a_file_names_its_original_and_nothing_more(file):
    content = json.loads(file.read_text())
    assert content.pop("format") == "sc2pool-standin-scenario/1"
    assert content == {"name": file.stem, "duel_of": file.stem.removesuffix("_duel")}


@DUELS
def test_both_sides_have_the_teams_units_and_half_a_turn_changes_nothing(file):
    duel = read_scenario(file.read_bytes())
    original = read_scenario((MAPS / f"{file.stem.removesuffix('_duel')}.SC2Map").read_bytes())
    assert (duel.name, duel.players) == (file.stem, 2)
    assert (duel.size, duel.time_limit_loops) == (original.size, original.time_limit_loops)
    team = [group for group in original.units if group.owner == 1]
    assert [group for group in duel.units if group.owner == 1] == team
    others = [group for group in duel.units if group.owner == 2]
    assert [(one.type, one.count) for one in others] == [(one.type, one.count) for one in team]
    assert original.ground is not None and duel.ground is not None
    assert np.array_equal(duel.ground.walkable, original.ground.walkable)
    for grid in (duel.ground.walkable, duel.ground.height):
        np.testing.assert_array_equal(grid, np.flip(grid), "neither side has better ground")


def places(units: list, owner: int) -> list[tuple[int, float, float]]:
    return sorted((u.unit_type, u.pos.x, u.pos.y) for u in units if u.owner == owner)


@pytest.mark.parametrize("name", ["8m_duel", "1c3s5z_duel", "MMM_duel", "bane_vs_bane_duel"])
def test_units_stand_as_after_half_a_turn(pair, name):
    pair.begin(duel(name))
    first, second = pair.observe()
    units = list(first.observation.raw_data.units)
    turned = sorted((kind, 32 - x, 32 - y) for kind, x, y in places(units, 2))
    assert places(units, 1) == turned
    assert {unit.unit_type for unit in units} <= set(COPY.values())
    seen_by_second = list(second.observation.raw_data.units)
    for owner in (1, 2):
        assert places(seen_by_second, owner) == places(units, owner), "there is no fog"


def test_nobody_acts_without_an_order_and_all_act_on_one(pair):
    pair.begin(duel("3m_duel"))
    before = [list(one.observation.raw_data.units) for one in pair.observe()]
    pair.step(80)
    after = [list(one.observation.raw_data.units) for one in pair.observe()]
    assert places(before[0], 1) + places(before[0], 2) == places(after[0], 1) + places(after[0], 2)
    for wire, units, owner in zip(pair.wires, after, (1, 2), strict=True):
        own = [unit for unit in units if unit.owner == owner]
        target = next(unit for unit in units if unit.owner != owner)
        assert wire.order(own, ATTACK, target=target) == 1
    pair.step(160)
    lives = [sum(u.health for u in one.observation.raw_data.units) for one in pair.observe()]
    assert lives[0] == lives[1] < 6 * 45


def test_they_are_installed(installation):
    placed = installation / "Maps" / "SMAC_Duels"
    assert {path.stem for path in placed.iterdir()} == {file.stem for file in FILES}
