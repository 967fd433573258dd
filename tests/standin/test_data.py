"""Tests that data tables agree with the simulation, and that `truth.py` reads catalogs correctly.

python-sc2 reads the data tables at the start of each game. Its helpers for costs and technology
fail with a KeyError if a row is missing.
"""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from data_tables import differences
from data_tables import read as read_recorded
from s2clientprotocol import data_pb2 as data_pb
from s2clientprotocol import sc2api_pb2 as sc_pb
from sc2.game_data import Cost, GameData
from sc2.ids.ability_id import AbilityId
from sc2.ids.unit_typeid import UnitTypeId
from sc2.ids.upgrade_id import UpgradeId
from truth import cards, catalog, duels, experiments, fields, spells, units, upgrades

from sc2standin.data.abilities import ABILITIES
from sc2standin.data.tables import TABLES, read, tables
from sc2standin.data.unit_types.files import DOES, NUMBERS_OF, TYPE_BY_NAME, UNIT_TYPES, combined

FUSION_CORE = 30
UNLISTED = {"Baneling", "Sentry", "VoidRay"}
"""Unit types whose weapons are not listed in the tables, because they are explosions or beams."""
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
    """This test compares only facts in the tables; `truth.py check` compares other facts."""
    ours = combined(NUMBERS_OF[name], DOES.get(name, {}))
    row = data.units[ours["id"]]
    told = units.from_tables(row)
    told["weapon"] = units.completed(told.get("weapon"), ours.get("weapon"))
    if told["weapon"]:
        told["weapon"] = ours["weapon"] | told["weapon"]
    if name == "Battlecruiser":  # a battlecruiser's row lists neither of its two requirements
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
    """The only missing rows are those that this patch's game lacks, or marks as not available."""
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


DEFAULTS = {
    "Unit": """<CUnit default="1"><Radius value="0.5"/><Mover value="Ground"/></CUnit>""",
    "Weapon": """
        <CWeapon default="1">
            <Range value="5"/><DisplayEffect value="##id##"/><RangeSlop value="1"/>
            <DamagePoint value="0.167"/><Backswing value="0.5"/>
        </CWeapon>
        <CWeaponLegacy default="1">
            <RandomDelayMin value="-0.0625"/><RandomDelayMax value="0.125"/>
        </CWeaponLegacy>""",
}
FIRST = {
    "Unit": """
        <CUnit id="Dog"> <!-- an animal -->
            <LifeMax value="35"/><LifeRegenRate value="0.2734"/><Speed value="2.9531"/>
            <Food value="-0.5"/><PlaneArray index="Ground" value="1"/>
            <Attributes index="Light" value="1"/><Attributes index="Armored" value="1"/>
            <CostResource index="Minerals" value="25"/>
            <WeaponArray Link="Teeth"/><WeaponArray Link="Show"/>
        </CUnit>
        <CUnit id="Puppy" parent="Dog"><LifeMax value="10"/></CUnit>
        <CUnit id="House">
            <Radius value="1.25"/><Footprint value="Contour"/><Food value="8"/>
            <Attributes index="Structure" value="1"/>
            <BehaviorArray Link="Watchful"/>
        </CUnit>
        <CUnit id="Bunker">
            <AbilArray Link="BuildInProgress"/><AbilArray Link="Rally"/>
            <AbilArray Link="BarracksTrain"/>
            <CardLayouts>
                <LayoutButtons AbilCmd="BuildInProgress,Halt"/>
                <LayoutButtons AbilCmd="Rally,Rally1"/>
                <LayoutButtons AbilCmd="attack,Execute"/> <!-- not its own -->
            </CardLayouts>
            <CardLayouts>
                <LayoutButtons AbilCmd="BarracksTrain,Train4"/><LayoutButtons Face="Passive"/>
            </CardLayouts>
        </CUnit>""",
    "Weapon": """
        <CWeaponLegacy id="Teeth">
            <Range value="0.1"/><Period value="0.696"/><TargetFilters value="Ground,Visible;-"/>
            <DisplayEffect value="Bite"/>
        </CWeaponLegacy>
        <CWeaponLegacy id="Show"><Options index="Disabled" value="1"/></CWeaponLegacy>""",
    "Effect": """
        <CEffectSet id="Bite"><EffectArray value="Harm"/></CEffectSet>
        <CEffectDamage id="Harm">
            <Amount value="5"/><AttributeBonus index="Armored" value="3"/>
        </CEffectDamage>""",
    "Behavior": """<CBehaviorBuff id="Watchful"><Modification Detect="11"/></CBehaviorBuff>""",
    "Upgrade": """
        <CUpgrade default="1" id="Teeth">
            <EffectArray Reference="Effect,Harm,Amount" Value="1"/>
            <EffectArray Reference="Effect,Harm,AttributeBonus[Armored]" Value="2"/>
            <EffectArray Reference="Effect,Harm,AttributeBonus[Light]" Value="4"/>
        </CUpgrade>
        <CUpgrade id="TeethLevel1" parent="Teeth">
            <EffectArray Operation="Set" Reference="Weapon,Teeth,Icon" Value="teeth.dds"/>
            <EffectArray index="1" Value="1"/>
        </CUpgrade>
        <CUpgrade id="Running">
            <EffectArray Operation="Set" Reference="Unit,Dog,Speed" Value="4"/>
            <EffectArray Reference="Unit,House,Speed" Value="1"/>
            <EffectArray Reference="Weapon,Teeth,RateMultiplier" Value="0.25"/>
            <EffectArray Reference="Weapon,Teeth,RateMultiplier" Value="0.25"/>
        </CUpgrade>""",
    "Footprint": """
        <CFootprint id="Contour">
            <Layers index="Place" Area="-1,-1,2,2"/><Shape><Radius value="1.803"/></Shape>
        </CFootprint>""",
}
SECOND = {
    "Unit": """
        <CUnit id="Dog">
            <LifeMax value="40"/><Attributes index="Armored" value="0"/>
            <WeaponArray index="1" removed="1"/>
        </CUnit>""",
    "Effect": """<CEffectDamage id="Harm"><Amount value="6"/></CEffectDamage>""",
}


@pytest.fixture
def game(mods: Path) -> catalog.GameData:
    return catalog.GameData(mods, ("core", "first"))


@pytest.fixture
def mods(tmp_path: Path) -> Path:
    for name, entries in (("core", DEFAULTS), ("first", FIRST), ("second", SECOND)):
        folder = tmp_path / f"{name}.sc2mod" / "base.sc2data" / "GameData"
        folder.mkdir(parents=True)
        for kind in catalog.KINDS:
            text = f"<Catalog>{entries.get(kind, '')}</Catalog>"
            (folder / f"{kind}Data.xml").write_text(text)
    return tmp_path


def test_a_later_mod_changes_what_it_names(mods, game):
    first = units.from_catalogs(game, "Dog")
    both = units.from_catalogs(catalog.GameData(mods, ("core", "first", "second")), "Dog")
    changed = {field for field in both if both[field] != first[field]}
    assert changed == {"life", "attributes", "weapon"}
    assert (both["life"], both["attributes"]) == (40, ["Light"])
    assert both["weapon"] == {
        "damage": 6,
        "range": 0.100097656,
        "cooldown_s": 0.696044922,
        "bonus": ["Armored", 3],
    }


def test_numbers_are_those_that_the_game_computes_with(game):
    dog = units.from_catalogs(game, "Dog")
    assert (dog["life_per_s"], dog["speed_per_s"]) == (0.2734375, 2.953125)
    assert (dog["food"], dog["food_provided"], dog["radius"]) == (0.5, 0, 0.5)


def test_an_entry_has_what_its_parent_has(game):
    puppy = units.from_catalogs(game, "Puppy")
    assert (puppy["life"], puppy["minerals"], puppy["weapon"]["damage"]) == (10, 25, 5)


def test_a_structure_is_as_large_as_its_outline(game):
    house = units.from_catalogs(game, "House")
    assert (house["radius"], house["footprint"]) == (1.8125, [1.5, 1.5])
    assert (house["food_provided"], house["detection"]) == (8, 11)


def test_what_the_tables_say_goes_first_in_a_melee(game):
    row = data_pb.UnitTypeData(unit_id=7, name="Dog", mineral_cost=20, race=2, sight_range=8)
    facts = units.in_melee(game, row)
    assert (facts["id"], facts["race"], facts["minerals"]) == (7, "Zerg", 20)
    assert (facts["sight"], facts["life"], facts["weapon"]["damage"]) == (8, 35, 5)
    assert units.elsewhere(game, row)["minerals"] == 25


def test_an_element_has_its_place_after_those_that_its_entry_inherits(game):
    level = game["Upgrade"]["TeethLevel1"]
    values = [one.attributes["Value"] for one in level.items("EffectArray")]
    assert values == ["1", "1", "4", "teeth.dds"]


def test_a_level_adds_damage_and_to_the_bonus_that_is_there(game):
    dog, level = game["Unit"]["Dog"], game["Upgrade"]["TeethLevel1"]
    assert upgrades.changes(game, level, dog, by_level=True) == {"damage": [1, 1]}


def test_an_upgrade_sets_and_adds(game):
    upgrade, unit = game["Upgrade"]["Running"], game["Unit"]
    dog = upgrades.changes(game, upgrade, unit["Dog"], by_level=False)
    assert dog == {"speed_per_s": 1.046875, "rate": 0.5}
    assert not upgrades.changes(game, upgrade, unit["House"], by_level=False)


def test_a_card_has_the_buttons_of_the_unit_s_own_abilities(game):
    halt, rally_units, train_marauder = 3660, 3673, 563
    found = cards.in_catalogs(game, TYPE_BY_NAME["Bunker"])
    assert found == {halt, rally_units, train_marauder}
    assert list(cards.missing(game)) == [f"+ card of Bunker: {train_marauder} Train Marauder"]


def test_a_missile_speeds_up_from_rest():
    delay = spells.SOURCES["EMP Round"]["delay_s"]
    assert not isinstance(delay, str)
    numbers = {"Abil/EMP/Range": 9.0, "Mover/EMP2Weapon/MotionPhases.Acceleration": 2.0}
    slow, fast = (numbers | {"Mover/EMP2Weapon/MotionPhases.MaxSpeed": top} for top in (2.0, 8.0))
    assert (delay(slow.__getitem__), delay(fast.__getitem__)) == (5.0, 3.0)


def test_every_number_of_a_spell_has_a_source():
    for name, facts in spells.ours().items():
        assert facts.keys() - {"range", "energy", "cooldown_s"} <= spells.SOURCES[name].keys(), name


def test_an_attack_takes_shields_first_and_armor_from_each_blow():
    zealot, marauder = (TYPE_BY_NAME[name] for name in ("Zealot", "Marauder"))
    target = duels.Fighter(zealot, 2, 0.0, 0.0, zealot.life, 5.0)
    target.take(marauder)
    assert (target.shields, target.life) == (0.0, 100.0 - (10.0 - 5.0 - 1.0))
    target.take(zealot)  # a zealot attacks with two hits of 8 damage each
    assert target.life == 96.0 - 2 * 7.0
    roach = TYPE_BY_NAME["Roach"]
    armored = duels.Fighter(roach, 2, 0.0, 0.0, roach.life, 0.0)
    armored.take(marauder)
    assert armored.life == 145.0 - (20.0 - 1.0)


@pytest.mark.parametrize(
    ("groups", "wins"),
    [
        (("Marine", 12, "Hydralisk", 4), True),
        (("Marine", 12, "Roach", 6), False),
        (("Marauder", 7, "Stalker", 5), True),
    ],
)
def test_a_battle_ends_as_the_numbers_say(installation, groups, wins):
    rng = random.Random(1)
    places = duels.lines_of(groups, rng)
    assert duels.Reckoning(places, rng).first_wins() is wins
    assert duels.played(experiments.OfflineSession(installation), places) is wins


NOT_YET = {"minerals a minute, an SCV near", "minerals a minute, 6 SCVs"}
"""Facts from which the stand-in deviates by more than 2 %; its README has the deviations."""


def test_the_stand_in_is_as_true_as_it_was(installation):
    wrong = {
        fact.name for fact, ours in experiments.measured(installation) if not fact.agrees(ours)
    }
    assert wrong == NOT_YET


@pytest.fixture(scope="module")
def never_filled(installation) -> set[str]:
    """The fields that the stand-in never fills."""
    return fields.never_filled(fields.count(fields.tour(installation)))


def test_there_is_a_reason_for_each_field_that_is_never_filled(never_filled):
    assert {path for path in never_filled if not fields.reason(path)} == set()
    unused = [one for one in fields.WHY if not any(re.search(one, path) for path in never_filled)]
    assert unused == []


def test_the_stand_in_fills_each_field_that_a_recorded_observation_fills(
    never_filled, recorded_dir
):
    theirs = fields.count(fields.recorded(recorded_dir))
    assert {path for path in never_filled if theirs[path].filled} == set()
