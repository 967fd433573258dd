"""Tests the costs, spells, morphs and training of all races, with units from debug commands."""

from __future__ import annotations

import pytest
from s2clientprotocol import common_pb2 as common
from s2clientprotocol import debug_pb2 as debug_pb
from s2clientprotocol import error_pb2 as error_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

from tests.standin.sessions import abilities, command, options, step_until

ROACH, IMMORTAL, CANNON, HATCHERY, LARVA = 110, 83, 66, 86, 151
BURROWED_ROACH, OVERSEER, MARINE = 118, 129, 48
SCV, PROBE, DRONE, ATTACK = 45, 84, 104, 23
MISSILE, BRIDGE = 802, 748


@pytest.mark.parametrize("worker", [SCV, PROBE, DRONE])
def test_a_worker_attacks_only_if_it_is_ordered_to(offline, worker):
    offline.arena((worker, 1, 20, 30), (OVERSEER, 2, 20, 34), (IMMORTAL, 2, 21.2, 30))
    offline.toggle(debug_pb.god)
    offline.step(10)
    (immortal,) = offline.units(IMMORTAL)
    assert immortal.shield == 100
    offline.order(offline.units(worker), ATTACK, target=immortal)
    offline.step(4)
    assert offline.units(IMMORTAL)[0].shield == 100 - 5
    assert offline.units(worker)[0].weapon_cooldown > 20


def test_a_structure_fires_and_stands(offline):
    offline.arena(
        (CANNON, 1, 20, 30), (HATCHERY, 1, 40, 40), (ROACH, 2, 26, 30), (LARVA, 1, 40, 36)
    )
    offline.step(20)
    (roach,) = offline.units(ROACH)
    assert roach.health < roach.health_max
    (hatchery,) = offline.units(HATCHERY)
    assert (hatchery.health, hatchery.build_progress) == (1500, 1)
    assert offline.observe().player_common.food_cap == 6


def test_burrowed_units_are_hidden_from_who_does_not_detect_them(offline):
    offline.arena((MARINE, 1, 20, 30), (BURROWED_ROACH, 2, 24, 30))
    offline.step()
    assert not offline.units(BURROWED_ROACH)
    offline.create((OVERSEER, 1, 20, 34))
    offline.step(2)
    assert offline.one(BURROWED_ROACH).is_burrowed


@pytest.mark.parametrize("unit_type", [MISSILE, BRIDGE, 0, 4_000_000])
def test_other_types_than_units_are_refused(offline, unit_type):
    offline.arena((MARINE, 1, 20, 30))
    create = debug_pb.DebugCreateUnit(unit_type=unit_type, owner=1, pos=common.Point2D(x=20, y=20))
    commands = [debug_pb.DebugCommand(create_unit=create)]
    reply = offline.ask(debug=sc_pb.RequestDebug(debug=commands))
    assert f"Unknown unit type {unit_type}" in reply.error[0]


REAPER, ZEALOT, SENTRY = 49, 73, 77
GHOST, RAVEN, TEMPLAR, PHOENIX, NEXUS, INFESTOR, QUEEN, RAVAGER = 50, 56, 75, 78, 59, 111, 126, 688
DARK_TEMPLAR, ARCHON, ZERGLING, COCOON, BANELING, NEST = 76, 141, 105, 8, 9, 96
GATEWAY, SPAWNING_POOL, STALKER, OBSERVER = 62, 89, 74, 82
HALLUCINATION_OF_STALKERS = 158
ARCHON_WARP, MORPH_TO_BANELING, TRAIN_QUEEN, TRAIN_ZEALOT = 1766, 80, 1632, 916
TURRET, CHARGE_ON_THE_GROUND = 31, 830
CHARGE, BILE, ANTI_ARMOR_MISSILE, AUTO_TURRET, SNIPE, EMP = 2588, 2338, 3753, 1764, 2714, 1628
SHIELD, BEAM, STORM, FEEDBACK, CHRONO, TRANSFUSION = 76, 173, 1036, 140, 3755, 1664


def _give_energy(session, *unit_types: int) -> None:
    for unit_type in unit_types:
        session.set_value(session.one(unit_type), "Energy", 200)
    session.state.playing().do_asked()


def _effects(session) -> list[int]:
    return [effect.effect_id for effect in session.observe().raw_data.effects]


def test_a_charge_lies_there_and_explodes(offline):
    offline.arena((REAPER, 1, 20, 30), (ROACH, 2, 40, 30))
    assert offline.order(offline.units(REAPER), CHARGE, (30, 30)) == 1
    step_until(offline, lambda: offline.units(CHARGE_ON_THE_GROUND), each=2)
    reaper, charge = offline.one(REAPER), offline.one(CHARGE_ON_THE_GROUND)
    assert (charge.pos.x, charge.pos.y) == (30, 30)
    assert 24 < reaper.pos.x < 25.5  # the reaper walked into the spell's range, and no farther
    assert offline.order(reaper, CHARGE, (30, 30)) == error_pb.Cooldown
    assert CHARGE not in abilities(offline, reaper)
    offline.step(46)
    assert not offline.units(CHARGE_ON_THE_GROUND)
    offline.step(314)
    assert CHARGE in abilities(offline, reaper)


def test_a_bile_hits_friend_and_foe_where_it_lands(offline):
    offline.arena((RAVAGER, 1, 20, 30), (MARINE, 1, 28, 30), (ZEALOT, 2, 28, 31))
    # Without this cheat the units would kill each other.
    offline.state.playing().world.cheats |= {(1, debug_pb.god), (2, debug_pb.god)}
    offline.order(offline.units(RAVAGER), BILE, (28, 30.5))
    offline.step(3)
    assert _effects(offline) == [11]
    offline.state.playing().world.cheats.clear()
    offline.step(56)
    assert _effects(offline) == []
    assert not offline.units(MARINE)


def test_energy_is_needed_and_paid(offline):
    offline.arena((RAVEN, 1, 20, 30), (INFESTOR, 2, 26, 30))
    raven, infestor = offline.one(RAVEN), offline.one(INFESTOR)
    assert offline.order(raven, ANTI_ARMOR_MISSILE, target=infestor) == error_pb.NotEnoughEnergy
    _give_energy(offline, RAVEN)
    assert offline.order(raven, ANTI_ARMOR_MISSILE, target=raven) == error_pb.CantTargetThatUnit
    assert offline.order(raven, ANTI_ARMOR_MISSILE) == error_pb.MustTargetUnit
    assert offline.order(raven, ANTI_ARMOR_MISSILE, target=infestor) == 1
    offline.step(40)  # an accelerating missile takes 36 loops for 10 cells
    assert list(offline.one(INFESTOR).buff_ids) == [279, 280]
    assert offline.one(RAVEN).energy == pytest.approx(125, abs=2)
    offline.step(480)
    assert not offline.one(INFESTOR).buff_ids


def test_a_summoned_unit_fights_and_goes(offline):
    offline.arena((RAVEN, 1, 20, 30), (ROACH, 2, 28, 30))
    offline.order(offline.units(RAVEN), AUTO_TURRET, (22, 30))
    offline.step(60)
    assert offline.units(TURRET)
    assert offline.one(ROACH).health < 145
    offline.step(120)
    assert offline.units(TURRET)
    offline.step(60)
    assert not offline.units(TURRET)  # the turret is gone after 224 loops


def test_a_shield_goes_with_its_sentry(offline):
    offline.arena(
        (SENTRY, 1, 20, 30), (MARINE, 1, 20, 33), (MARINE, 1, 40, 30), (ZEALOT, 2, 50, 50)
    )
    _give_energy(offline, SENTRY)
    offline.order(offline.units(SENTRY), SHIELD)
    offline.step(3)
    assert _effects(offline) == [2]
    assert sorted(list(unit.buff_ids) for unit in offline.units(MARINE)) == [[], [18]]
    assert list(offline.one(SENTRY).buff_ids) == [18]
    offline.order(offline.units(SENTRY), 16, (36, 30))
    offline.step(120)
    (effect,) = offline.observe().raw_data.effects
    assert effect.pos[0].x == pytest.approx(offline.one(SENTRY).pos.x, abs=0.2)
    assert [list(unit.buff_ids) for unit in offline.units(MARINE)] == [[], [18]]
    offline.step(140)
    assert _effects(offline) == []
    assert not any(unit.buff_ids for unit in offline.units(MARINE))


def test_a_storm_hurts_all_within_it(offline):
    offline.arena((TEMPLAR, 1, 20, 30), (ROACH, 2, 28, 30), (ROACH, 2, 28, 45))
    _give_energy(offline, TEMPLAR)
    offline.state.playing().world.cheats.add((1, debug_pb.god))
    offline.order(offline.units(TEMPLAR), STORM, (28, 30))
    offline.step(3)
    assert _effects(offline) == [1]
    offline.step(90)
    struck, other = offline.units(ROACH)
    assert other.health == other.health_max
    assert struck.health < struck.health_max - 20
    assert _effects(offline) == []


def test_feedback_snipe_and_emp(offline):
    offline.arena(
        (TEMPLAR, 1, 20, 30), (GHOST, 1, 20, 34), (INFESTOR, 2, 27, 30), (ZEALOT, 2, 27, 36)
    )
    _give_energy(offline, TEMPLAR, GHOST, INFESTOR)
    templar, ghost = offline.one(TEMPLAR), offline.one(GHOST)
    infestor, zealot = offline.one(INFESTOR), offline.one(ZEALOT)
    assert offline.order(templar, FEEDBACK, target=zealot) == error_pb.MustTargetUnitWithEnergy
    offline.order(ghost, EMP, (27, 36))
    offline.step(14)
    assert offline.one(ZEALOT).shield == 0
    offline.order(templar, FEEDBACK, target=infestor)
    offline.step(3)
    assert not offline.units(INFESTOR)  # the infestor loses 200 energy, and so 100 life
    offline.order(ghost, SNIPE, target=offline.one(ZEALOT))
    offline.step(40)
    assert not offline.units(ZEALOT)


def test_an_emp_takes_a_part_of_the_energy(offline):
    offline.arena((GHOST, 1, 20, 30), (INFESTOR, 2, 27, 30))
    _give_energy(offline, GHOST, INFESTOR)
    offline.order(offline.units(GHOST), EMP, (27, 30))
    offline.step(14)
    assert offline.one(INFESTOR).energy == pytest.approx(100, abs=1)


def test_each_spell_has_a_cooldown_of_its_own(offline):
    offline.arena((SENTRY, 1, 20, 30), (ZEALOT, 2, 50, 50))
    _give_energy(offline, SENTRY)
    offline.order(offline.units(SENTRY), SHIELD)
    offline.step(2)
    sentry = offline.one(SENTRY)
    assert offline.order(sentry, SHIELD) == error_pb.Cooldown
    assert offline.order(sentry, HALLUCINATION_OF_STALKERS) == 1
    offline.step(2)
    assert len(offline.units(STALKER)) == 2


def test_transfusion_heals_and_chrono_boost_shows(offline):
    offline.arena((QUEEN, 1, 20, 30), (ROACH, 1, 24, 30), (NEXUS, 1, 45, 45), (MARINE, 2, 9, 9))
    _give_energy(offline, QUEEN)
    roach, nexus = offline.one(ROACH), offline.one(NEXUS)
    offline.state.playing().world.by_tag[roach.tag].life = 20
    assert (
        offline.order(offline.units(QUEEN), TRANSFUSION, target=nexus)
        == error_pb.CantTargetThatUnit
    )
    offline.order(offline.units(QUEEN), TRANSFUSION, target=roach)
    assert offline.order(nexus, CHRONO, target=nexus) == 1
    offline.step(3)
    assert offline.one(ROACH).health == pytest.approx(95, abs=2)
    assert list(offline.one(NEXUS).buff_ids) == [281]
    assert offline.one(NEXUS).energy == pytest.approx(0, abs=1)


def test_a_hallucination_looks_real_until_it_is_detected(offline):
    offline.arena((SENTRY, 1, 20, 30), (ROACH, 2, 27, 30))
    _give_energy(offline, SENTRY)
    offline.order(offline.units(SENTRY), HALLUCINATION_OF_STALKERS)
    offline.step(2)
    stalkers = offline.units(STALKER)
    assert [one.is_hallucination for one in stalkers] == [True, True]
    assert offline.observe().player_common.food_used == 2  # only the sentry needs food
    offline.kill(offline.one(SENTRY))
    offline.step(60)
    roach = offline.one(ROACH)
    assert roach.health == roach.health_max
    offline.kill(roach)
    offline.step(970)
    assert not offline.units(STALKER)


def test_an_effect_is_on_the_screen(offline):
    small = common.Size2DI(x=48, y=48)
    offline.arena((SENTRY, 1, 32, 29), (ZEALOT, 2, 50, 50), interface=options(resolution=small))
    _give_energy(offline, SENTRY)
    offline.order(offline.units(SENTRY), SHIELD)
    offline.step(2)
    plane = offline.observe().feature_layer_data.renders.effects.data
    assert set(plane) == {0, 2}
    assert 200 < plane.count(2) < 320  # a circle 9 cells (18 pixels) wide
    offline.step(260)
    assert set(offline.observe().feature_layer_data.renders.effects.data) == {0}


def test_a_queued_spell_follows_a_move(offline):
    offline.arena((PHOENIX, 1, 20, 30), (ZEALOT, 2, 40, 30))
    (zealot,) = offline.units(ZEALOT)
    offline.order(offline.units(PHOENIX), 16, (20, 40))
    offline.order(offline.units(PHOENIX), BEAM, target=zealot, queued=True)
    offline.step(22)
    assert offline.one(PHOENIX).pos.y > 33
    offline.step(100)
    assert list(offline.one(ZEALOT).buff_ids) == [5]


def test_two_templars_become_an_archon(melee):
    session = melee(None)
    session.create((TEMPLAR, 1, 40, 48), (DARK_TEMPLAR, 1, 45, 48))
    session.step(4)
    templars = [*session.units(TEMPLAR), *session.units(DARK_TEMPLAR)]
    assert session.order(templars[:1], ARCHON_WARP) == error_pb.CantFindEnoughTargets
    assert session.order(templars, ARCHON_WARP) == 1
    session.step(4)
    assert [order.ability_id for order in session.one(TEMPLAR).orders] == [1767]
    step_until(session, lambda: session.units(ARCHON))
    assert not session.units(TEMPLAR)
    assert not session.units(DARK_TEMPLAR)
    assert session.one(ARCHON).build_progress < 0.1
    session.step(100)
    assert session.one(ARCHON).build_progress == pytest.approx(0.5, abs=0.08)
    session.step(96)
    assert session.one(ARCHON).build_progress == 1


def test_zerglings_become_banelings(melee):
    session = melee(None)
    session.create((ZERGLING, 1, 40, 48, 3))
    session.state.game.world.minerals = session.state.game.economy.vespene = 60
    session.step()
    morph = command(session.units(ZERGLING), MORPH_TO_BANELING)
    assert session.act(morph) == [error_pb.TechRequirementsNotMet]
    session.create((NEST, 1, 45, 52))
    assert session.act(morph) == [1]
    session.step(2)
    assert len(session.units(COCOON)) == 2  # the money is enough for two units
    assert len(session.units(ZERGLING)) == 1
    session.step(322)
    assert [unit.health for unit in session.units(BANELING)] == [30, 30]


def test_structures_of_other_races_train(melee):
    session = melee(None)
    session.create((HATCHERY, 1, 41.5, 48.5), (GATEWAY, 1, 50.5, 52.5))
    session.state.game.world.minerals = 300
    session.step()
    hatchery, gateway = session.one(HATCHERY), session.one(GATEWAY)
    assert session.order(hatchery, TRAIN_QUEEN) == error_pb.TechRequirementsNotMet
    session.create((SPAWNING_POOL, 1, 41.5, 55.5))
    assert session.act(command(hatchery, TRAIN_QUEEN), command(gateway, TRAIN_ZEALOT)) == [1, 1]
    session.step(802)
    assert (len(session.units(QUEEN)), len(session.units(ZEALOT))) == (1, 1)
