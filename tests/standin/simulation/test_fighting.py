"""Tests of damage, armor, shields, cooldowns, targets, and the effects of cloak and detectors."""

from __future__ import annotations

import itertools

import pytest
from s2clientprotocol import debug_pb2 as debug_pb
from s2clientprotocol import error_pb2 as error_pb
from s2clientprotocol import raw_pb2 as raw_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

from tests.standin.sessions import options

STOP, MOVE, HOLD, ATTACK = 4, 16, 18, 23
MARINE, ROACH, ZEALOT, ZERGLING, BANELING = 48, 110, 73, 105, 9
IMMORTAL, STALKER, QUEEN, TEMPEST, PHOENIX, VIKING = 83, 74, 126, 496, 78, 35
MEDIVAC, COLOSSUS, BATTLECRUISER = 54, 4, 57
HELLION, HYDRALISK, SPINE, MULE, REAPER, THOR = 53, 107, 98, 268, 49, 52
WEAPONS, AIR_WEAPONS, SHIELDS = 7, 78, 45
A_LOOPS_SHIELDS = 0.125
"""The number of shield points that a unit regains in a loop."""


def _enemy_life(session) -> list[float]:
    return [u.health for u in session.observe().raw_data.units if u.owner == 2]


LIFE_PER_LOOP = 0.2734375 / 16
"""The number of hit points that a roach regains in a loop."""
LATEST_HIT_LOOPS = 24
"""The latest loop of a fight's first hit, after the damage point and a missile's flight."""


def _first_hit(session, unit_type):
    """Play at most LATEST_HIT_LOOPS until a unit of this type is hit; returns the unit."""
    for _ in range(LATEST_HIT_LOOPS):
        session.step()
        (unit,) = session.units(unit_type)
        if unit.health + unit.shield < unit.health_max + unit.shield_max - 1:
            break
    return unit


def test_damage_armor_cooldown(offline):
    offline.arena((MARINE, 1, 20, 20), (ROACH, 2, 25, 20))
    (marine,), (roach,) = offline.units(MARINE), offline.units(ROACH)
    offline.order(marine, HOLD)
    offline.step()
    assert _enemy_life(offline) == [145], "who has just appeared does not fire yet"
    assert offline.units(MARINE)[0].engaged_target_tag == roach.tag
    offline.step()
    assert _enemy_life(offline) == [145], "the damage comes 0.05 s after the attack begins"
    offline.step()
    assert _enemy_life(offline) == [145 - 5]
    offline.step()
    assert _enemy_life(offline) == [145 - 5 + LIFE_PER_LOOP]
    (marine,) = offline.units(MARINE)
    assert 11 < marine.weapon_cooldown < 16
    shots = []
    for loop in range(5, 140):
        offline.set_value(marine, "Life", 45)
        before = _enemy_life(offline)
        offline.step()
        if _enemy_life(offline) < before:
            shots.append(loop)
    periods = [after - before for before, after in itertools.pairwise(shots)]
    cooldown = 0.8608 * 16
    assert all(cooldown - 2 < period < cooldown + 3 for period in periods)
    assert len(set(periods)) > 1, "a part of each cooldown is random"
    details = offline.observe().score.score_details
    assert details.total_damage_dealt.life == 5 * (len(shots) + 1)
    assert details.total_damage_taken.life % 16 == 0


@pytest.mark.parametrize(
    ("attacker", "x", "shields", "loops", "through"),
    [
        (IMMORTAL, 24, 20, 5, 20 + 30 - (20 + 4 * A_LOOPS_SHIELDS) - 1),
        (ZEALOT, 21.2, 8, 2, 8 - 1),  # this hit is the second of two hits of an attack
    ],
)
def test_each_blow_meets_armor_under_the_shields(  # noqa: PLR0917
    offline, attacker, x, shields, loops, through
):
    offline.arena((attacker, 1, 20, 20), (STALKER, 2, x, 20))
    offline.set_value(offline.one(STALKER), "Shields", shields)
    offline.step(loops)
    stalker = offline.one(STALKER)
    assert (stalker.shield, stalker.health) == (0, pytest.approx(80 - through, abs=A_LOOPS_SHIELDS))


@pytest.mark.parametrize(
    ("levels", "attacker", "target", "damage"),
    [
        ((), QUEEN, ROACH, 2 * (4 - 1)),
        ((), QUEEN, MEDIVAC, 9 - 1),
        ((), QUEEN, COLOSSUS, 9),
        ((), TEMPEST, ROACH, 40 - 1),
        ((), TEMPEST, BATTLECRUISER, 30 + 22 - 3),
        ((), PHOENIX, COLOSSUS, 2 * 5),
        ((), VIKING, COLOSSUS, 2 * (10 + 4)),
        ((), PHOENIX, ROACH, 0),
        ((), ROACH, MEDIVAC, 0),
        ((1, WEAPONS), MARINE, ZEALOT, 6 + 1),
        ((2, SHIELDS), MARINE, ZEALOT, 6 - 1),
        ((1, AIR_WEAPONS), TEMPEST, ROACH, 40 + 4 - 1),
        ((2, SHIELDS), MARINE, ROACH, 6 - 1),
        ((1, AIR_WEAPONS), TEMPEST, BATTLECRUISER, 30 + 3 + 22 + 2 - 3),
    ],
)
def test_the_weapon_that_hits_the_target_is_fired_with_its_levels(
    offline, levels, attacker, target, damage
):
    offline.arena((attacker, 1, 20, 20), (target, 2, 24.5, 20), (MARINE, 1, 50, 50))
    offline.toggle(debug_pb.god)
    if levels:
        offline.state.game.world.upgrade(*levels)
    unit = _first_hit(offline, target)
    lost = unit.health_max + unit.shield_max - unit.health - unit.shield
    assert lost == pytest.approx(damage, abs=0.1)  # a roach regenerates some of the damage


def test_who_holds_does_not_walk_though_its_other_weapon_reaches_as_far(offline):
    offline.arena((QUEEN, 1, 20, 20), (ROACH, 2, 28, 20))
    offline.order(offline.units(QUEEN), HOLD)
    offline.toggle(debug_pb.god)
    offline.step(3)
    (queen,) = offline.units(QUEEN)
    assert (queen.pos.x, queen.weapon_cooldown) == (20, 0)


def test_shields_come_back_when_no_hit_has_come_for_a_while(session_for):
    """Shields regain 1/8 point per loop from the 161st loop after a hit, in steps of any size."""

    def play(step):
        session = session_for()
        session.arena((MARINE, 1, 20, 20), (ZEALOT, 2, 24, 20))
        session.order(session.units(MARINE), HOLD)
        session.step(3)
        session.kill(session.units(MARINE)[0])
        session.create((MARINE, 1, 50, 50))
        for _ in range(160 // step):
            session.step(step)
        (hit,) = session.units(ZEALOT)
        for _ in range(40 // step):
            session.step(step)
        (calm,) = session.units(ZEALOT)
        session.step(400)
        return hit.shield, calm.shield, session.units(ZEALOT)[0].shield

    assert play(1) == play(8) == play(40) == (44, 49, 50)


@pytest.mark.parametrize(
    ("ability", "fires", "walks"),
    [(None, True, False), (STOP, True, False), (HOLD, True, False), (MOVE, False, True)],
)
def test_who_fires_with_an_enemy_in_range(offline, ability, fires, walks):
    offline.arena((MARINE, 1, 20, 20), (ROACH, 2, 25, 20))
    (marine,) = offline.units(MARINE)
    if ability is not None:
        point = (10, 20) if ability == MOVE else None
        assert offline.order(marine, ability, point) == 1
    offline.step(4)
    assert (_enemy_life(offline) < [145]) == fires
    assert (offline.units(MARINE)[0].pos.x != 20) == walks


def test_attack_move_walks_fires_and_walks_on(offline):
    offline.arena((MARINE, 1, 20, 20, 6), (ROACH, 2, 36, 20))
    offline.order(offline.units(MARINE), ATTACK, (50, 20))
    while offline.units(ROACH):
        offline.step(8)
        assert offline.state.status.name == "IN_GAME"
    offline.step(300)
    assert all(m.pos.x > 47 for m in offline.units(MARINE))


def test_enemies_attack_seen_units_and_wait_otherwise(offline):
    offline.arena((MARINE, 1, 20, 20), (ROACH, 2, 31, 20))
    offline.step(50)
    assert offline.units(ROACH)[0].pos.x == 31
    offline.create((MARINE, 1, 22, 20))
    offline.step(500)
    assert not offline.units(MARINE)
    assert offline.state.status.name == "ENDED"


def test_a_baneling_explodes_at_its_target_and_hits_all_around(offline):
    near, far = [(MARINE, 1, 20, 20), (MARINE, 1, 21.5, 20)], [(MARINE, 1, 20, 26)]
    offline.arena(*near, *far, (BANELING, 2, 19, 20), (ZERGLING, 2, 40, 40))
    offline.step(3)
    assert not offline.units(BANELING)
    assert [u.health for u in offline.units(MARINE)] == [10, 10, 45]
    assert [u.health for u in offline.units(ZERGLING)] == [35], "it hurts no friend"


def test_a_baneling_that_is_shot_explodes_where_it_is(offline):
    offline.arena((MARINE, 1, 20, 20, 5), (MARINE, 1, 23.5, 20), (BANELING, 2, 25.5, 20))
    offline.order(offline.units(MARINE), HOLD)
    offline.step(3)
    assert not offline.units(BANELING), "five shots and one more kill it before it is there"
    assert [u.health for u in offline.units(MARINE)] == [45] * 5 + [10]
    assert offline.observe().score.score_details.total_damage_dealt.life == 30


def test_equal_fights_differ_by_their_seed_only(session_for):
    def lives(seed: int) -> list[list[float]]:
        session = session_for()
        session.start("DefeatRoaches", seed=seed)
        session.kill(session.observe().raw_data.units)
        session.create((MARINE, 1, 30, 45, 9), (ROACH, 2, 36, 45, 4))
        session.step(120)
        return [[u.health for u in session.units(kind)] for kind in (MARINE, ROACH)]

    assert lives(1) == lives(1)
    assert lives(1) != lives(2)


def test_a_reaper_heals_when_no_hit_has_come_for_a_while(offline):
    """A reaper regains 2 hit points per 16 loops, beginning 160 loops after it was last hit."""
    offline.arena((REAPER, 1, 20, 20), (MARINE, 2, 24, 20))
    hit = _first_hit(offline, REAPER)
    offline.kill(offline.units(MARINE)[0])
    offline.create((MARINE, 2, 60, 60))
    offline.step(160)
    assert offline.units(REAPER)[0].health == hit.health
    offline.step(16)
    assert offline.units(REAPER)[0].health == hit.health + 2


def test_an_attack_that_is_broken_off_costs_nothing(offline):
    offline.arena((HELLION, 1, 20, 20), (ROACH, 2, 25, 20), (ROACH, 2, 60, 60))
    offline.toggle(debug_pb.god)
    offline.step(4)  # the damage point comes 4 loops after the first loop
    offline.order(offline.units(HELLION), MOVE, (10, 20))
    offline.step(4)
    (hellion,) = offline.units(HELLION)
    assert _enemy_life(offline) == [145, 145]
    assert hellion.weapon_cooldown == 0


def test_who_is_told_to_attack_in_every_loop_fires_as_fast(offline):
    offline.arena((HELLION, 1, 20, 20), (ROACH, 2, 25, 20), (ROACH, 2, 60, 60))
    offline.toggle(debug_pb.god)
    for loop in range(6):
        offline.order(offline.units(HELLION), ATTACK, (30, 20 + loop))
        offline.step()
    assert min(_enemy_life(offline)) == 145 - 7


def test_a_missile_flies_to_its_target_wherever_that_goes(offline):
    """The launch takes 2.7 loops (0.167 s); flying 4.4 cells at 18.75 cells/s takes 3.8 loops."""
    offline.arena((MARINE, 1, 20, 20), (ROACH, 2, 24.8, 20))
    lives = []
    for loop in range(10):
        if loop == 4:
            offline.order(offline.units(MARINE), MOVE, (10, 20))
        offline.step()
        lives.append(offline.units(MARINE)[0].health)
    assert lives == [45] * 8 + [45 - 16] * 2


@pytest.mark.parametrize(("attacker", "hits"), [(HYDRALISK, True), (SPINE, False), (THOR, False)])
def test_a_target_may_go_away_as_far_as_the_weapons_slop(offline, attacker, hits):
    # The thor's anti-air weapon has a longer range, which must not count here.
    reach = {HYDRALISK: 5 + 0.625, SPINE: 7 + 1.125, THOR: 7 + 1}[attacker] + 0.375
    offline.arena((attacker, 2, 30, 20), (MARINE, 1, 30 - reach + 0.3, 20), (MARINE, 1, 60, 60))
    runner = min(offline.units(MARINE), key=lambda one: one.pos.x)
    offline.order(runner, MOVE, (10, 20))
    offline.step(20)
    life = sum(one.health for one in offline.units(MARINE))  # a dead marine's life counts as 0
    assert (life < 2 * 45) == hits


def test_a_unit_stands_after_its_shot(offline):
    """A marine's backswing lasts 12 loops (0.75 s), after which it walks to the next enemy."""
    offline.arena((MARINE, 1, 20, 20), (ZERGLING, 2, 24, 20), (MULE, 2, 26.2, 20))
    offline.set_value(offline.one(ZERGLING), "Life", 1)
    offline.step(13)
    assert not offline.units(ZERGLING)
    assert offline.units(MARINE)[0].pos.x == 20
    offline.step(4)
    assert offline.units(MARINE)[0].pos.x > 20


SCAN_MOVE, GENERAL_ATTACK = 19, 3674
TEMPLAR, SENTRY, OBSERVER = 76, 77, 82
SHOWN = sc_pb.InterfaceOptions(raw=True, show_cloaked=True)


def _layers(*, show_cloaked: bool) -> sc_pb.InterfaceOptions:
    interface = options()
    interface.show_cloaked = show_cloaked
    return interface


def test_an_own_cloaked_unit_is_seen_whole(offline):
    offline.arena((TEMPLAR, 1, 30, 30))
    (templar,) = offline.units(TEMPLAR)
    assert (templar.display_type, templar.cloak) == (raw_pb.Visible, raw_pb.CloakedAllied)
    assert (templar.health, templar.shield) == (40, 80)


def test_an_enemy_is_shown_without_details_or_not_at_all(session_for):
    for interface, count in ((SHOWN, 1), (sc_pb.InterfaceOptions(raw=True), 0)):
        session = session_for()
        session.arena((MARINE, 1, 20, 30), (TEMPLAR, 2, 40, 30), interface=interface)
        session.step()
        templars = session.units(TEMPLAR)
        assert len(templars) == count
        for templar in templars:
            assert (templar.display_type, templar.cloak) == (raw_pb.Hidden, raw_pb.Cloaked)
            assert not templar.HasField("health")
            assert not templar.HasField("shield_max")


def test_a_detector_shows_it_within_its_range_and_hides_it_again(offline):
    offline.arena(
        (OBSERVER, 1, 20, 30), (SENTRY, 2, 40, 20), (TEMPLAR, 2, 36, 30), (MARINE, 1, 9, 9)
    )
    offline.step()
    assert not offline.units(TEMPLAR)
    offline.order(offline.units(OBSERVER), SCAN_MOVE, (26, 30))
    offline.step(60)
    (templar,) = offline.units(TEMPLAR)
    assert (templar.cloak, templar.health) == (raw_pb.CloakedDetected, 40)
    offline.order(offline.units(OBSERVER), SCAN_MOVE, (20, 30))
    offline.step(60)
    assert not offline.units(TEMPLAR)


def test_unseen_units_are_not_attacked(offline):
    offline.arena((MARINE, 1, 30, 30), (TEMPLAR, 2, 31, 30), interface=SHOWN)
    offline.toggle(debug_pb.god)
    offline.step(40)
    (marine,), (templar,) = offline.units(MARINE), offline.units(TEMPLAR)
    assert offline.order(marine, ATTACK, target=templar) == error_pb.MustTargetVisibleUnit
    assert (marine.health, marine.engaged_target_tag) == (45, 0)


def test_an_attack_ends_when_the_target_is_no_longer_detected(offline):
    offline.arena((MARINE, 1, 30, 30), (OBSERVER, 1, 30, 31), (TEMPLAR, 2, 34, 30), interface=SHOWN)
    offline.toggle(debug_pb.god)
    offline.step()
    marines, (templar,) = offline.units(MARINE), offline.units(TEMPLAR)
    offline.order(marines, ATTACK, target=templar)
    offline.step(4)
    assert offline.units(MARINE)[0].orders[0].target_unit_tag == templar.tag
    assert offline.units(TEMPLAR)[0].shield < 80
    offline.kill(offline.units(OBSERVER)[0])
    offline.step(2)
    (marine,), (templar,) = offline.units(MARINE), offline.units(TEMPLAR)
    assert not marine.orders
    assert marine.engaged_target_tag == 0
    assert templar.display_type == raw_pb.Hidden


def test_explosions_hit_unseen_units(offline):
    offline.arena((TEMPLAR, 1, 30, 30), (SENTRY, 1, 30.5, 30), (BANELING, 2, 33, 30))
    offline.step(40)
    assert not offline.units(BANELING)
    assert offline.one(TEMPLAR).shield < 80


@pytest.mark.parametrize("show_cloaked", [True, False])
def test_layers_show_that_something_is_cloaked(offline, show_cloaked):
    offline.arena(
        (SENTRY, 1, 20, 24), (TEMPLAR, 2, 32, 24), interface=_layers(show_cloaked=show_cloaked)
    )
    offline.step()
    renders = offline.observe().feature_layer_data.renders
    assert any(renders.cloaked.data) == show_cloaked
    assert any(renders.unit_shields.data)  # the sentry's


def test_a_click_selects_no_unit_that_is_hidden(offline):
    offline.arena((SENTRY, 1, 12, 24), (TEMPLAR, 2, 32, 24), interface=_layers(show_cloaked=True))
    offline.step()
    action = sc_pb.Action()
    rectangle = action.action_feature_layer.unit_selection_rect.selection_screen_coord.add()
    rectangle.p1.x = rectangle.p1.y = 83
    offline.act(action)
    offline.step()
    assert not offline.observe().ui_data.HasField("single")


def test_units_in_god_mode_take_no_damage_until_it_ends(offline):
    offline.arena((MARINE, 1, 30, 30), (COLOSSUS, 2, 33, 30))
    offline.toggle(debug_pb.god)
    offline.step(20)
    assert offline.units(MARINE)[0].health == 45
    assert offline.units(COLOSSUS)[0].shield < 150
    offline.toggle(debug_pb.god)
    offline.step(40)
    assert not offline.units(MARINE)


def test_an_unarmed_unit_scans_where_others_attack(offline):
    offline.arena((MARINE, 1, 20, 20), (OBSERVER, 1, 20, 22))
    units = [*offline.units(MARINE), *offline.units(OBSERVER)]
    for group, shown in ((units, ATTACK), (units[1:], SCAN_MOVE)):
        offline.order(group, GENERAL_ATTACK, (24, 20))
        offline.step()
        observed = offline.observed()
        assert [one.action_raw.unit_command.ability_id for one in observed.actions] == [shown]
    assert offline.units(OBSERVER)[0].orders[0].ability_id == SCAN_MOVE
    assert offline.order(units[1:], ATTACK, (24, 20)) == error_pb.NotSupported
