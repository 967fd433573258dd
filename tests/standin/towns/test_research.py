"""Tests the research of each structure, its cost, and how observations show it."""

from __future__ import annotations

import pytest
from s2clientprotocol import debug_pb2 as debug_pb
from s2clientprotocol import error_pb2 as error_pb

from sc2standin.data.research import RESEARCH, UPGRADES
from sc2standin.data.tables import read
from sc2standin.data.unit_types.files import TYPE_BY_NAME
from sc2standin.data.upgrades import levels, variant
from tests.standin.sessions import PLACES, abilities, cheat, command, saved, step_until

TECH_LAB, BARRACKS, BAY, ARMORY, BARRACKS_LAB, MARINE = 5, 21, 22, 29, 37, 48
WEAPONS, WEAPONS_1, WEAPONS_2, ARMOR, ARMOR_1, HI_SEC = 3698, 652, 653, 3697, 656, 650
STIMPACK, SHIELD, LIFT, CANCEL_LAST, TRAIN_MARINE = 730, 731, 3679, 3671, 560
MARAUDER, ARCHON, STIM, MARINE_STIM = 51, 141, 3675, 380
NEEDS = error_pb.TechRequirementsNotMet


def _upgrades(session) -> list[int]:
    return list(session.observe().raw_data.player.upgrade_ids)


def test_an_upgrade_is_paid_and_takes_its_time(town):
    session = town(BAY)
    bay = session.one(BAY)
    before = saved(session)
    assert {WEAPONS_1, ARMOR_1, HI_SEC} <= abilities(session, bay)
    assert WEAPONS_2 not in abilities(session, bay)
    assert session.order(bay, WEAPONS_1) == 1
    session.step(1281)
    assert saved(session) == (before[0] - 100, before[1] - 100)
    (order,) = session.one(BAY).orders
    assert (order.ability_id, order.progress) == (WEAPONS_1, pytest.approx(0.5, abs=0.01))
    assert not _upgrades(session)
    session.step(1281)
    assert _upgrades(session) == [7]
    assert not session.one(BAY).orders
    assert WEAPONS_1 not in abilities(session, bay)
    assert session.order(bay, WEAPONS_1) == NEEDS


def test_levels_come_one_after_the_other(town):
    session = town(BAY, BAY)
    cheat(session, debug_pb.fast_build)
    bay, other = session.units(BAY)
    assert session.order(bay, WEAPONS) == 1
    session.step()
    assert [order.ability_id for order in session.units(BAY)[0].orders] == [WEAPONS_1]
    assert session.order(other, WEAPONS) == NEEDS
    session.step(20)
    assert _upgrades(session) == [7]
    assert session.order(bay, WEAPONS) == NEEDS
    session.create((ARMORY, 1, *PLACES[2]))
    assert WEAPONS_2 in abilities(session, bay)
    assert session.order(other, WEAPONS) == 1
    session.step(20)
    assert session.order(bay, WEAPONS) == 1
    session.step(20)
    assert _upgrades(session) == [7, 8, 9]
    assert session.order(bay, WEAPONS) == NEEDS


def test_research_is_queued_cancelled_and_refunded(town):
    session = town(BAY, BAY)
    bay, other = session.units(BAY)
    before = saved(session)
    assert session.act(command(bay, WEAPONS), command(bay, ARMOR)) == [1, 1]
    session.step()
    orders = [order.ability_id for order in session.units(BAY)[0].orders]
    assert orders == [WEAPONS_1, ARMOR_1]
    assert session.order(other, ARMOR_1) == NEEDS
    assert session.order(bay, CANCEL_LAST) == 1
    session.step()
    assert saved(session) == (before[0] - 100, before[1] - 100)
    assert session.order(other, ARMOR_1) == 1
    session.step()
    assert session.order([bay, other], CANCEL_LAST) == 1
    session.step()
    assert saved(session) == before
    session.state.game.economy.vespene = 0
    assert session.order(bay, WEAPONS) == error_pb.NotEnoughVespene
    assert WEAPONS_1 not in abilities(session, bay)


def test_two_structures_begin_an_upgrade_once(town):
    session = town(BAY, BAY)
    before = saved(session)
    assert session.order(session.units(BAY), WEAPONS_1) == 1
    session.step()
    assert saved(session) == (before[0] - 100, before[1] - 100)
    assert sum(len(bay.orders) for bay in session.units(BAY)) == 1


def test_a_tech_lab_researches_until_its_barracks_lifts_off(town):
    session = town(BARRACKS)
    cheat(session, debug_pb.fast_build)
    barracks = session.one(BARRACKS)
    session.order(barracks, 3682)
    session.step(20)
    cheat(session, debug_pb.fast_build)
    lab = session.one(BARRACKS_LAB)
    assert {STIMPACK, SHIELD} <= abilities(session, lab)
    before = saved(session)
    assert session.order(lab, STIMPACK) == 1
    assert session.order(barracks, TRAIN_MARINE) == 1
    session.step(410)
    assert len(session.units(MARINE)) == 1
    assert [order.ability_id for order in session.one(BARRACKS_LAB).orders] == [STIMPACK]
    session.order(barracks, LIFT)
    session.step(40)
    assert not session.one(TECH_LAB).orders
    assert saved(session) == (before[0] - 50, before[1])
    assert session.order(lab, STIMPACK) == error_pb.NotSupported


def test_debug_states_lift_rules(town):
    session = town(BAY, BARRACKS, money=0)
    bay, barracks = session.one(BAY), session.one(BARRACKS)
    assert session.order(bay, WEAPONS) == error_pb.NotEnoughMinerals
    before = saved(session)
    cheat(session, debug_pb.minerals, debug_pb.gas, debug_pb.all_resources)
    assert saved(session) == (before[0] + 10_000, before[1] + 10_000)
    session.state.game.world.minerals = session.state.game.economy.vespene = 0
    cheat(session, debug_pb.free, debug_pb.food, debug_pb.fast_build, debug_pb.tech_tree)
    for _ in range(5):
        assert session.order(barracks, TRAIN_MARINE) == 1
        session.step(18)
    assert len(session.units(MARINE)) == 5
    assert session.order(barracks, 563) == 1
    session.step(18)
    assert session.units(51)
    cheat(session, debug_pb.free)
    session.state.game.world.minerals = 0
    assert session.order(bay, WEAPONS) == error_pb.NotEnoughMinerals


def test_a_structure_that_is_built_fast_has_its_whole_life(town):
    session = town()
    cheat(session, debug_pb.fast_build)
    worker = session.units(45)[0]
    assert session.order(worker, 319, (36.0, 48.0)) == 1
    step_until(session, lambda: [one for one in session.units(19) if one.build_progress == 1])
    assert session.one(19).health == pytest.approx(400)


def test_without_an_economy_nothing_is_researched(offline):
    offline.arena((BAY, 1, 30.0, 30.0), (MARINE, 1, 20.0, 20.0))
    offline.step()
    bay = offline.one(BAY)
    assert offline.order(bay, WEAPONS_1) == error_pb.NotSupported
    assert not abilities(offline, bay)


def _after_research(town, ability_id: int, *kinds: int):
    """A town that has done this research in the first of the given structures."""
    session = town(*kinds)
    cheat(session, debug_pb.fast_build, debug_pb.tech_tree)
    assert session.order(session.units(kinds[0]), ability_id) == 1
    session.step(20)
    assert len(_upgrades(session)) == 1
    cheat(session, debug_pb.fast_build, debug_pb.tech_tree)
    return session


def test_levels_of_weapons_and_armor_count_in_fights(town):
    session = _after_research(town, WEAPONS, BAY)
    session.create((MARINE, 1, 30.0, 50.0), (ARCHON, 2, 33.0, 50.0))
    session.step(3)
    marine, archon = session.one(MARINE), session.one(ARCHON)
    assert (marine.attack_upgrade_level, marine.armor_upgrade_level) == (1, 0)
    assert archon.attack_upgrade_level == 0
    assert archon.shield == 350 - 7
    session.kill([marine, archon])
    cheat(session, debug_pb.fast_build)
    session.look()
    session.order(session.units(BAY), ARMOR)
    session.step(20)
    session.look()
    assert _upgrades(session) == [7, 11]
    session.create((MARINE, 1, 30.0, 50.0), (MARINE, 2, 33.0, 50.0))
    session.step(3)
    mine, other = sorted(session.units(MARINE), key=lambda one: one.owner)
    assert (mine.armor_upgrade_level, other.armor_upgrade_level) == (1, 0)
    assert (mine.health, other.health) == (40, 38)
    assert session.one(18).armor_upgrade_level == 0


def test_combat_shield_reaches_marines_that_are_there(town):
    session = town(BARRACKS)
    session.create((MARINE, 1, 30.0, 50.0), (MARINE, 2, 60.0, 50.0), (TECH_LAB, 1, 27.0, 45.0))
    session.step(2)
    assert session.one(MARINE).health_max == 45
    cheat(session, debug_pb.fast_build)
    session.look()
    assert session.order(session.units(BARRACKS_LAB), SHIELD) == 1
    session.step(20)
    session.look()
    assert (session.one(MARINE).health, session.one(MARINE).health_max) == (55, 55)
    assert session.order(session.units(BARRACKS), TRAIN_MARINE) == 1
    session.step(20)
    assert [one.health_max for one in session.units(MARINE)] == [55, 55]


def test_a_stimpack_costs_life_and_makes_faster(town):
    session = town(BARRACKS)
    session.create((MARINE, 1, 30.0, 50.0), (MARAUDER, 1, 32.0, 50.0), (TECH_LAB, 1, 27.0, 45.0))
    session.step(2)
    marine, marauder = session.one(MARINE), session.one(MARAUDER)
    assert session.order(marine, STIM) == NEEDS
    assert MARINE_STIM not in abilities(session, marine)
    cheat(session, debug_pb.fast_build)
    session.order(session.units(BARRACKS_LAB), STIMPACK)
    session.step(20)
    assert MARINE_STIM in abilities(session, marine)
    session.order(marine, 16, (30.0, 38.0))
    session.step(2)
    slow = session.one(MARINE).pos.y
    session.step(8)
    slow -= session.one(MARINE).pos.y
    assert session.order([marine, marauder], STIM) == 1
    session.step()
    fast = session.one(MARINE).pos.y
    session.step(8)
    fast -= session.one(MARINE).pos.y
    assert fast == pytest.approx(slow * 1.5, rel=1e-3)
    marine, marauder = session.one(MARINE), session.one(MARAUDER)
    assert (marine.health, list(marine.buff_ids)) == (35, [27])
    assert (marauder.health, list(marauder.buff_ids)) == (105, [24])
    for _ in range(3):
        assert session.order(marine, STIM) == 1
        session.step()
    assert session.order(marine, STIM) == error_pb.NotEnoughLife
    session.step(242)
    assert not session.one(MARINE).buff_ids
    assert session.one(MARINE).health == 5


def test_a_client_may_have_all_upgrades(town):
    session = town()
    for level in (1, 2, 3, 3):
        cheat(session, debug_pb.upgrade)
        session.create((MARINE, 1, 30.0, 50.0))
        marine = session.units(MARINE)[0]
        assert (marine.attack_upgrade_level, marine.armor_upgrade_level) == (level, level)
    upgrades = _upgrades(session)
    assert len(upgrades) == len(set(upgrades))


def test_research_agrees_with_the_tables():
    tables = read()
    abilities = {row.ability_id: row for row in tables.abilities}
    upgrades = {row.upgrade_id: row for row in tables.upgrades}
    names = {row.name for row in tables.units}
    for one in RESEARCH:
        row = abilities[one.build_ability_id]
        assert (row.available, row.remaps_to_ability_id) == (True, one.general_id), one
        assert one.cost == (upgrades[one.id].mineral_cost, upgrades[one.id].vespene_cost)
        assert min(*one.cost, one.build_time_loops) > 0
        assert set(one.by) | set(one.needs) <= names
    assert len({one.id for one in RESEARCH}) == len(RESEARCH)
    for name, entry in UPGRADES.items():
        first = f"{name}Level1" if "general_id" in entry else name
        assert upgrades[entry["id"]].name == first
        assert {
            *entry.get("changes", ()),
            *entry.get("damage", ()),
            *entry.get("armor_of", ()),
        } <= names, name


def test_an_upgrade_changes_each_type_as_much_as_the_game_does():
    def changed(name: str):
        return variant(TYPE_BY_NAME[name], frozenset(one.id for one in RESEARCH))

    adept, before = changed("Adept").weapon, TYPE_BY_NAME["Adept"].weapon
    assert adept.cooldown_s == pytest.approx(before.cooldown_s / 1.45)
    assert changed("Overlord").speed_per_s == pytest.approx(1.879, abs=1e-3)
    assert changed("Overseer").speed_per_s == pytest.approx(3.375)
    assert changed("Observer").acceleration == pytest.approx(3.1875)


@pytest.mark.parametrize("name", ["ThorAP", "LiberatorAG", "LurkerMPBurrowed"])
def test_levels_count_in_each_mode(name):
    found = levels(TYPE_BY_NAME[name], frozenset(one.id for one in RESEARCH))
    assert (found.attack, found.armor) == (3, 3)


def test_a_score_counts_what_upgrades_cost(town):
    session = _after_research(town, WEAPONS, BAY)
    details = session.observe().score.score_details
    assert (details.used_minerals.upgrade, details.used_vespene.upgrade) == (100, 100)
