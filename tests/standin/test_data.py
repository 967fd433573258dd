"""The data tables: whole, as recorded, and in agreement with what the stand-in simulates.

python-sc2 reads them at the start of each game; its helpers for costs and technology fail with a
KeyError if a row is missing.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from s2clientprotocol import common_pb2 as common
from s2clientprotocol import sc2api_pb2 as sc_pb
from sc2.game_data import Cost, GameData
from sc2.ids.ability_id import AbilityId
from sc2.ids.unit_typeid import UnitTypeId
from sc2.ids.upgrade_id import UpgradeId

from sc2standin.data.abilities import ABILITIES
from sc2standin.data.tables import TABLES, read, tables
from sc2standin.data.unit_types import UNIT_TYPES, UnitType

SCRIPT = Path(__file__).parents[2] / "scripts" / "data_tables.py"
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


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("data_tables", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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


def test_the_tables_equal_all_recorded_ones(recorded_dir, script):
    paths = sorted(recorded_dir.glob("*.data.pb.xz"))
    if not paths:
        pytest.skip(f"no recorded tables in {recorded_dir}")
    assert [line for path in paths for line in script.differences(script.read(path))] == []


def test_a_difference_is_found(script):
    changed = read()
    changed.units[48].mineral_cost = 45
    del changed.effects[-1]
    assert [line.partition(":")[0] for line in script.differences(changed)] == ["units", "effects"]


@pytest.mark.parametrize("kind", UNIT_TYPES, ids=lambda kind: kind.name)
def test_simulated_units_agree_with_the_tables(data, kind: UnitType):
    row = data.units[kind.id]
    assert (row.unit_id, row.name, row.available) == (kind.id, kind.name, True)
    assert (row.race, sorted(row.attributes)) == (kind.race, sorted(kind.attributes))
    assert row.movement_speed == pytest.approx(kind.speed_per_s)
    assert (row.armor, row.sight_range) == (kind.armor, kind.sight)
    cost = (row.mineral_cost, row.vespene_cost, row.food_required, row.build_time, row.ability_id)
    assert cost == (
        kind.minerals,
        kind.vespene,
        kind.food,
        kind.build_time_loops,
        kind.build_ability_id,
    )
    assert (row.cargo_size, row.has_minerals) == (kind.cargo_size, kind.has_minerals)
    assert row.food_provided == kind.food_provided
    assert list(row.tech_alias) == [kind.tech_alias_id] * bool(kind.tech_alias_id)
    # A row has room for one requirement, and has none if there are two.
    if kind.race == common.Terran and kind.name != "Battlecruiser":
        needed = 5 if kind.needs_tech_lab else kind.tech_requirement_id
        assert (row.tech_requirement, row.require_attached) == (needed, kind.needs_tech_lab)
    # A unit's own explosion and a sentry's beam are listed nowhere.
    if kind.weapon is not None and kind.name not in ("Baneling", "Sentry"):
        assert row.weapons
    for weapon in row.weapons:
        ours = kind.weapon
        assert (weapon.damage, weapon.attacks, weapon.type) == (
            ours.damage,
            ours.attacks,
            ours.targets,
        )
        assert (weapon.range, weapon.speed) == pytest.approx(
            (ours.range, ours.cooldown_s), rel=1e-3
        )
        bonuses = [(bonus.attribute, bonus.bonus) for bonus in weapon.damage_bonus]
        assert bonuses == ([] if ours.bonus is None else [ours.bonus])


def test_simulated_abilities_agree_with_the_tables(data):
    rows = {one.id: data.abilities[one.id] for one in ABILITIES}
    told = {id_: (row.target, row.available, row.remaps_to_ability_id) for id_, row in rows.items()}
    assert told == {one.id: (one.target, True, one.remaps_to) for one in ABILITIES}


@pytest.mark.parametrize(
    ("unit", "cost"),
    [
        (UnitTypeId.MARINE, Cost(50, 0)),
        (UnitTypeId.ORBITALCOMMAND, Cost(150, 0)),
        (UnitTypeId.ZERGLING, Cost(50, 0)),
        (UnitTypeId.BANELING, Cost(25, 25)),
        (UnitTypeId.EXTRACTOR, Cost(25, 0)),
        (UnitTypeId.HIVE, Cost(200, 150)),
        (UnitTypeId.COLOSSUS, Cost(300, 200)),
    ],
    ids=lambda given: getattr(given, "name", ""),
)
def test_python_sc2_calculates_costs(game_data, unit, cost):
    assert game_data.calculate_ability_cost(game_data.units[unit.value].creation_ability) == cost


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
