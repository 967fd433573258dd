"""Cloaked units: what their enemies see of them and attack, and what a detector changes."""

from __future__ import annotations

import pytest
from s2clientprotocol import debug_pb2 as debug_pb
from s2clientprotocol import error_pb2 as error_pb
from s2clientprotocol import raw_pb2 as raw_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

from tests.standin.sessions import options

ATTACK, SCAN_MOVE, GENERAL_ATTACK = 23, 19, 3674
MARINE, TEMPLAR, SENTRY, OBSERVER, BANELING, COLOSSUS = 48, 76, 77, 82, 9, 4
SHOWN = sc_pb.InterfaceOptions(raw=True, show_cloaked=True)
GOD = debug_pb.DebugCommand(game_state=debug_pb.god)


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
    offline.debug(GOD)
    offline.step(40)
    (marine,), (templar,) = offline.units(MARINE), offline.units(TEMPLAR)
    assert offline.order(marine, ATTACK, target=templar) == error_pb.MustTargetVisibleUnit
    assert (marine.health, marine.engaged_target_tag) == (45, 0)


def test_an_attack_ends_when_the_target_is_no_longer_detected(offline):
    offline.arena((MARINE, 1, 30, 30), (OBSERVER, 1, 30, 31), (TEMPLAR, 2, 34, 30), interface=SHOWN)
    offline.debug(GOD)
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


def test_a_client_that_lifts_the_fog_is_told_what_it_would_hide(offline):
    offline.arena((MARINE, 1, 12, 12), (SENTRY, 2, 50, 50), (TEMPLAR, 2, 50, 40), fog=True)
    whole = offline.observed(disable_fog=True).observation
    seen = {unit.unit_type: unit for unit in whole.raw_data.units}
    assert seen[MARINE].display_type == raw_pb.Visible
    assert seen[SENTRY].display_type == raw_pb.Hidden
    assert seen[SENTRY].cloak == raw_pb.CloakedUnknown
    assert not offline.units(SENTRY)


def test_units_in_god_mode_take_no_damage_until_it_ends(offline):
    offline.arena((MARINE, 1, 30, 30), (COLOSSUS, 2, 33, 30))
    offline.debug(GOD)
    offline.step(20)
    assert offline.units(MARINE)[0].health == 45
    assert offline.units(COLOSSUS)[0].shield < 150
    offline.debug(GOD)
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
