"""The data tables: whole, as recorded, and in agreement with what the stand-in simulates.

python-sc2 reads them at the start of each game; its helpers for costs and technology fail with a
KeyError if a row is missing.
"""

from __future__ import annotations

import pytest
from data_tables import differences
from data_tables import read as read_recorded
from s2clientprotocol import sc2api_pb2 as sc_pb
from sc2.game_data import Cost, GameData
from sc2.ids.ability_id import AbilityId
from sc2.ids.unit_typeid import UnitTypeId
from sc2.ids.upgrade_id import UpgradeId
from truth import units

from sc2standin.data.abilities import ABILITIES
from sc2standin.data.tables import TABLES, read, tables
from sc2standin.data.unit_types import UNIT_TYPES
from sc2standin.data.unit_types.files import DOES, NUMBERS_OF, combined

FUSION_CORE = 30
UNLISTED = {"Baneling", "Sentry", "VoidRay"}
"""Types whose weapon the tables do not have: an explosion, beams."""
FLAGS = {
    "abilities": "ability_id",
    "units": "unit_type_id",
    "upgrades": "upgrade_id",
    "buffs": "buff_id",
    "effects": "effect_id",
}
WHOLE = sc_pb.RequestData(**dict.fromkeys(FLAGS.values(), True))
NOT_IN_THE_GAME = {UpgradeId.PSIONICAMPLIFIERS, UpgradeId.SECRETEDCOATING}
NOT_IN_THE_GAME |= {UpgradeId.ENHANCEDSHOCKWAVES}
"""The upgrades that python-sc2 lists under ids of a later patch."""


@pytest.fixture(scope="module")
def data() -> sc_pb.ResponseData:
    return sc_pb.ResponseData.FromString(b"".join(tables().values()))


@pytest.fixture(scope="module")
def game_data(data: sc_pb.ResponseData) -> GameData:
    return GameData(data)


@pytest.mark.parametrize("name", TABLES)
def test_only_what_was_asked_for_is_sent(offline, data, name):
    offline.start()
    reply = offline.ask(data=sc_pb.RequestData(**{FLAGS[name]: True})).data
    assert [field.name for field, _rows in reply.ListFields()] == [name]
    assert getattr(reply, name) == getattr(data, name)


def test_all_and_nothing_can_be_asked_for(offline, data):
    offline.start()
    assert offline.ask(data=WHOLE).data == data
    nothing = offline.ask(data=sc_pb.RequestData())
    assert nothing.HasField("data")
    assert nothing.data == sc_pb.ResponseData()


def test_a_game_reads_the_tables_when_it_is_asked(offline):
    tables.cache_clear()
    offline.start()
    offline.step()
    assert tables.cache_info().currsize == 0
    offline.ask(data=WHOLE)
    offline.ask(data=WHOLE)
    assert tables.cache_info().misses == 1


def test_the_tables_equal_all_recorded_ones(recorded_dir):
    paths = sorted(recorded_dir.glob("*.data.pb.xz"))
    if not paths:
        pytest.skip(f"no recorded tables in {recorded_dir}")
    assert [line for path in paths for line in differences(read_recorded(path))] == []


def test_a_difference_is_found():
    changed = read()
    changed.units[48].mineral_cost = 45
    del changed.effects[-1]
    assert [line.partition(":")[0] for line in differences(changed)] == ["units", "effects"]


@pytest.mark.parametrize("name", NUMBERS_OF)
def test_simulated_units_agree_with_the_tables(data, name):
    """What the tables lack is compared by `truth.py check`."""
    ours = combined(NUMBERS_OF[name], DOES.get(name, {}))
    row = data.units[ours["id"]]
    told = units.from_tables(row)
    told["weapon"] = units.completed(told.get("weapon"), ours.get("weapon"))
    if told["weapon"]:
        told["weapon"] = ours["weapon"] | told["weapon"]
    if name == "Battlecruiser":  # a row has no requirement if there are two
        told |= {"tech_requirement_id": FUSION_CORE, "needs_tech_lab": True}
    shown = units.named(row, told)
    assert (row.unit_id, row.name) == (ours["id"], name)
    assert bool(row.weapons) == (bool(ours.get("weapon")) and name not in UNLISTED)
    assert {field: ours[field] for field in ours if field in told | shown} == shown


def test_types_of_maps_are_in_the_tables(data):
    for kind in UNIT_TYPES:
        row = data.units[kind.id]
        told = (row.name, row.available, row.has_minerals)
        assert told == (kind.name, True, kind.has_minerals)


def test_simulated_abilities_agree_with_the_tables(data):
    rows = {one.id: data.abilities[one.id] for one in ABILITIES}
    told = {id_: (row.target, row.available, row.remaps_to_ability_id) for id_, row in rows.items()}
    assert told == {one.id: (one.target, True, one.remaps_to) for one in ABILITIES}


def test_python_sc2_finds_upgrades_and_technology(game_data):
    stimpack = game_data.upgrades[UpgradeId.STIMPACK.value]
    assert stimpack.cost == Cost(100, 100)
    assert stimpack.research_ability.exact_id == AbilityId.BARRACKSTECHLABRESEARCH_STIMPACK
    assert game_data.calculate_ability_cost(AbilityId.BARRACKSTECHLABRESEARCH_STIMPACK)
    assert game_data.units[UnitTypeId.BARRACKS.value].tech_requirement == UnitTypeId.SUPPLYDEPOT
    assert game_data.units[UnitTypeId.BARRACKS.value].footprint_radius == 1.5
    assert game_data.units[UnitTypeId.HIVE.value].tech_alias == [
        UnitTypeId.HATCHERY,
        UnitTypeId.LAIR,
    ]


def test_every_id_of_python_sc2_is_in_the_tables(data, game_data):
    """Apart from what the game of this patch does not have, or does not have available."""
    available = {row.unit_id for row in data.units if row.available}
    assert set(game_data.units) == available
    assert {one.value for one in UnitTypeId} - {row.unit_id for row in data.units} == set()
    assert {one.value for one in AbilityId} - {row.ability_id for row in data.abilities} == set()
    assert {one for one in UpgradeId if one.value not in game_data.upgrades} == NOT_IN_THE_GAME
    for ability in game_data.abilities.values():
        assert ability.cost is not None
    for unit in game_data.units.values():
        assert (unit.cost, unit.tech_alias, unit.unit_alias, unit.creation_ability) is not None
        unit.morph_cost  # noqa: B018  no KeyError
    for upgrade in game_data.upgrades.values():
        assert upgrade.cost is not None
