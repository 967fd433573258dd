"""Tests the actions on the screen: selection, control groups, clicks, and the command card."""

from __future__ import annotations

import pytest
from s2clientprotocol import debug_pb2 as debug_pb
from s2clientprotocol import error_pb2 as error_pb
from s2clientprotocol import sc2api_pb2 as sc_pb
from s2clientprotocol import spatial_pb2 as spatial_pb
from s2clientprotocol import ui_pb2 as ui_pb

from tests.standin.sessions import cheat, look, options

SUCCESS, NOT_SUPPORTED = error_pb.Success, error_pb.NotSupported
MARINE, SCV, ROACH, COMMAND_CENTER, BARRACKS = 48, 45, 110, 18, 21
MOVE, ATTACK, STOP, TRAIN_SCV = 16, 23, 4, 524
MEDIVAC, STIM, STIMPACK = 54, 380, 27
GENERAL_MOVE, GENERAL_ATTACK = 3794, 3674
Click, Group = spatial_pb.ActionSpatialUnitSelectionPoint, ui_pb.ActionControlGroup
Icon, Worker = ui_pb.ActionMultiPanel, ui_pb.ActionSelectIdleWorker


def pixel(x: float, y: float, camera: tuple[float, float] = (32.0, 32.0)) -> tuple[int, int]:
    """The pixel of a screen of 84 × 84 pixels that shows a place."""
    return int(42 + (x - camera[0]) * 3.5), int(42 - (y - camera[1]) * 3.5)


def at(place: tuple[float, float], kind=Click.Select) -> sc_pb.Action:
    """A click that selects."""
    action = sc_pb.Action()
    click = action.action_feature_layer.unit_selection_point
    click.selection_screen_coord.x, click.selection_screen_coord.y = pixel(*place)
    click.type = kind
    return action


def around(first: tuple[float, float], last: tuple[float, float], *, add=False) -> sc_pb.Action:
    """A rectangle that selects."""
    action = sc_pb.Action()
    drawn = action.action_feature_layer.unit_selection_rect
    corners = drawn.selection_screen_coord.add()
    corners.p0.x, corners.p0.y = pixel(*first)
    corners.p1.x, corners.p1.y = pixel(*last)
    drawn.selection_add = add
    return action


def order(ability_id: int, place: tuple[float, float] | None = None, *, queued=False):
    """A command to the selected units, with a click on the screen."""
    action = sc_pb.Action()
    command = action.action_feature_layer.unit_command
    command.ability_id, command.queue_command = ability_id, queued
    if place is not None:
        command.target_screen_coord.x, command.target_screen_coord.y = pixel(*place)
    return action


def ui(**action) -> sc_pb.Action:
    return sc_pb.Action(action_ui=ui_pb.ActionUI(**action))


@pytest.fixture
def town_on_screen(changed, offline):
    """A melee without opponents on flat ground, with the camera at the centre of 64 × 64 cells."""
    offline.start(changed("Melee/Flat64", endless=True), interface=options())
    offline.act(look((32.0, 32.0)))
    offline.step()
    return offline


def army(*, add=False) -> sc_pb.Action:
    return ui(select_army=ui_pb.ActionSelectArmy(selection_add=add))


def group(kind, number: int) -> sc_pb.Action:
    return ui(control_group=Group(action=kind, control_group_index=number))


def selected(session) -> list[tuple[float, float]]:
    """The places of the selected units."""
    session.step()
    return [(u.pos.x, u.pos.y) for u in session.observe().raw_data.units if u.is_selected]


def abilities(session) -> dict[int, bool]:
    return {one.ability_id: one.requires_point for one in session.observe().abilities}


A, B, C = (30.0, 32.0), (34.0, 32.0), (32.0, 36.0)


def test_nothing_is_selected_at_first(arena):
    session = arena((MARINE, 1, *A))
    assert not abilities(session) and not session.observe().ui_data.HasField("single")
    assert session.act(order(GENERAL_MOVE, B)) == [NOT_SUPPORTED]


def test_a_click_selects_a_unit_from_the_next_loop_on(arena):
    session = arena((MARINE, 1, *A), (MARINE, 1, *B))
    assert session.act(at(A)) == [SUCCESS]
    assert not any(unit.is_selected for unit in session.units(MARINE))
    assert selected(session) == [A]
    seen = session.observe()
    assert seen.ui_data.single.unit.unit_type == MARINE and seen.ui_data.single.unit.health == 45
    assert abilities(session) == {1: True, 4: False, 16: True, 17: True, 18: False, 23: True}
    session.act(at((20.0, 20.0)))
    assert selected(session) == [A], "a click on nothing changes nothing"
    session.act(at(B, Click.Toggle))
    assert selected(session) == [A, B]
    assert [unit.unit_type for unit in session.observe().ui_data.multi.units] == [MARINE, MARINE]
    session.act(at(A, Click.Toggle))
    assert selected(session) == [B]


def test_a_click_with_control_selects_all_of_the_type_on_the_screen(arena):
    away = (50.0, 50.0)
    session = arena((MARINE, 1, *A), (MARINE, 1, *B), (SCV, 1, *C), (MARINE, 1, *away))
    session.act(at(A, Click.AllType))
    assert selected(session) == [A, B]
    session.act(at(C, Click.AddAllType))
    assert selected(session) == [A, B, C]


def test_units_of_others_are_selected_alone_and_obey_nobody(arena):
    session = arena((MARINE, 1, *A), (ROACH, 2, 32.0, 41.0), (ROACH, 2, 34.0, 41.0))
    session.act(at((32.0, 41.0), Click.AllType))
    session.step()
    assert sum(unit.is_selected for unit in session.units(ROACH)) == 1
    assert session.observe().ui_data.single.unit.player_relative == 4
    assert not session.observe().abilities
    assert session.act(order(GENERAL_MOVE, A)) == [NOT_SUPPORTED]


def test_a_rectangle_selects_units_rather_than_structures(arena):
    session = arena((SCV, 1, *A), (COMMAND_CENTER, 1, *B))
    session.act(around((28.0, 36.0), (36.0, 28.0)))
    assert selected(session) == [A]
    session.act(around((33.0, 33.0), (36.0, 28.0)))
    assert selected(session) == [B]
    session.act(around((28.0, 30.0), (31.0, 34.0), add=True))
    assert selected(session) == [A, B]


def test_the_army_is_neither_workers_nor_structures(arena):
    session = arena((SCV, 1, *A), (MARINE, 1, *B), (MARINE, 1, 50.0, 50.0), (BARRACKS, 1, *C))
    session.act(army())
    assert selected(session) == [B, (50.0, 50.0)]
    session.act(at(A))
    session.act(army(add=True))
    assert selected(session) == [A, B, (50.0, 50.0)]


def test_idle_workers_take_turns(arena):
    session = arena((SCV, 1, *A), (SCV, 1, *B))
    for place in (A, B, A):
        session.act(ui(select_idle_worker=Worker(type=Worker.Set)))
        assert selected(session) == [place]
    session.act(ui(select_idle_worker=Worker(type=Worker.Add)))
    assert selected(session) == [A, B]
    session.act(at(A), ui(select_idle_worker=Worker(type=Worker.All)))
    assert selected(session) == [A, B]


def test_control_groups_keep_units_until_they_die(arena):
    session = arena((MARINE, 1, *A), (MARINE, 1, *B), (SCV, 1, *C))
    session.act(army(), group(Group.Set, 3), at(C), group(Group.Append, 3), group(Group.Set, 1))
    session.step()
    groups = [
        (g.control_group_index, g.leader_unit_type, g.count)
        for g in session.observe().ui_data.groups
    ]
    assert groups == [(1, SCV, 1), (3, MARINE, 3)]
    session.act(at(A), group(Group.SetAndSteal, 2))
    session.kill(session.units(MARINE)[1])
    session.step(2)
    groups = [(g.control_group_index, g.count) for g in session.observe().ui_data.groups]
    assert groups == [(1, 1), (2, 1), (3, 1)]
    session.act(group(Group.Recall, 3))
    assert selected(session) == [C]
    assert session.act(group(Group.Recall, 10)) == [error_pb.Error]


def test_icons_of_the_panel_select_among_the_selected(arena):
    session = arena((MARINE, 1, *A), (MARINE, 1, *B), (SCV, 1, *C))
    everyone = around((28.0, 38.0), (36.0, 28.0))

    def after(kind, number: int) -> list[tuple[float, float]]:
        session.act(everyone, ui(multi_panel=Icon(type=kind, unit_index=number)))
        return selected(session)

    assert after(Icon.SingleSelect, 1) == [B]
    assert after(Icon.DeselectUnit, 1) == [A, C]
    assert after(Icon.SelectAllOfType, 0) == [A, B]
    assert after(Icon.DeselectAllOfType, 0) == [C]
    assert session.act(ui(multi_panel=Icon(type=Icon.SingleSelect, unit_index=9))) == [
        error_pb.Error
    ]


def test_a_click_commands_the_selected_units(arena):
    enemy = (32.0, 41.0)
    session = arena((MARINE, 1, *A), (MARINE, 1, *B), (ROACH, 2, *enemy))
    follow, attack = order(GENERAL_MOVE, B, queued=True), order(GENERAL_ATTACK, enemy, queued=True)
    assert session.act(at(A), order(GENERAL_MOVE, C), follow, attack) == [SUCCESS] * 4
    session.step()
    first, second = session.units(MARINE)
    assert [one.ability_id for one in first.orders] == [MOVE, MOVE, ATTACK] and not second.orders
    goal = first.orders[0].target_world_space_pos
    assert abs(goal.x - C[0]) < 0.3 and abs(goal.y - C[1]) < 0.3
    assert first.orders[1].target_unit_tag == second.tag, "a unit that is clicked is the target"
    assert first.orders[2].target_unit_tag == session.one(ROACH).tag


def test_a_click_on_the_minimap_commands_too(arena):
    session = arena((MARINE, 1, *A))
    action = sc_pb.Action()
    command = action.action_feature_layer.unit_command
    command.ability_id = MOVE
    command.target_minimap_coord.x, command.target_minimap_coord.y = 40, 63 - 50
    session.act(army(), action)
    session.step()
    goal = session.units(MARINE)[0].orders[0].target_world_space_pos
    assert (goal.x, goal.y) == (40.5, 50.5)


def test_a_click_on_the_minimap_moves_the_camera(arena):
    session = arena((MARINE, 1, *A))
    action = sc_pb.Action()
    center = action.action_feature_layer.camera_move.center_minimap
    center.x, center.y = 20, 40
    assert session.act(action) == [SUCCESS]
    session.step()
    camera = session.observe().raw_data.player.camera
    assert (camera.x, camera.y) == (20.5, 63 - 40 + 0.5)
    center.x = 64
    assert session.act(action) == [error_pb.Error]


def test_actions_are_shown_to_each_interface(arena):
    session = arena((MARINE, 1, *A))
    session.observe()
    session.act(army(), order(GENERAL_MOVE, C))
    session.step()
    select, move = session.observed().actions
    assert select.action_ui.HasField("select_army") and not select.HasField("action_raw")
    assert move.action_feature_layer.unit_command.ability_id == MOVE
    assert list(move.action_raw.unit_command.unit_tags) == [session.units(MARINE)[0].tag]


def test_without_the_raw_interface_nothing_raw_is_shown(offline):
    interface = options()
    interface.raw = False
    offline.start(interface=interface)
    offline.act(army(), order(GENERAL_MOVE, (33.0, 25.0)))
    offline.step()
    seen = offline.observed()
    assert not seen.observation.HasField("raw_data")
    assert not any(one.HasField("action_raw") for one in seen.actions) and len(seen.actions) == 2


def test_a_raw_command_is_shown_as_a_click_too(arena):
    session = arena((MARINE, 1, 30, 30))
    (marine,) = session.units(MARINE)
    for place, seen in (((32, 34), "target_screen_coord"), ((9, 9), "target_minimap_coord")):
        session.order(marine, MOVE, place)
        session.step()
        (done,) = session.observed().actions
        shown = done.action_feature_layer.unit_command
        assert (shown.ability_id, done.action_raw.unit_command.ability_id) == (MOVE, MOVE)
        assert shown.WhichOneof("target") == seen
    session.order(marine, STOP, (1e30, 5))  # the ability stop needs no point
    session.step()
    (done,) = session.observed().actions
    assert done.action_feature_layer.unit_command.WhichOneof("target") is None


def test_without_layers_a_click_is_not_supported(offline):
    offline.start()
    assert offline.act(at(A), army()) == [NOT_SUPPORTED, SUCCESS]


def test_raw_commands_select_their_units_if_the_interface_asks_for_it(arena):
    interface = options()
    for affects, expected in ((False, []), (True, [B])):
        interface.raw_affects_selection = affects
        session = arena((MARINE, 1, *A), (MARINE, 1, *B), interface=interface)
        session.order(session.units(MARINE)[1:], STOP)
        assert selected(session) == expected


def test_the_card_lists_what_can_be_paid_for(offline):
    offline.start("BuildMarines", interface=options())
    offline.act(ui(select_army=ui_pb.ActionSelectArmy()))
    center = offline.units(COMMAND_CENTER)[0].pos
    action = at((0.0, 0.0))
    coordinate = action.action_feature_layer.unit_selection_point.selection_screen_coord
    camera = offline.observe().raw_data.player.camera
    coordinate.x, coordinate.y = pixel(center.x, center.y, (camera.x, camera.y))
    offline.act(action)
    offline.step()
    assert TRAIN_SCV in abilities(offline)
    assert offline.act(order(TRAIN_SCV)) == [SUCCESS]
    offline.step(2)
    panel = offline.observe().ui_data.production
    assert panel.unit.unit_type == COMMAND_CENTER
    assert [unit.unit_type for unit in panel.build_queue] == [SCV]
    assert panel.production_queue[0].ability_id == TRAIN_SCV
    assert TRAIN_SCV not in abilities(offline), "its 50 minerals are spent"
    minerals = offline.observe().player_common.minerals
    offline.act(ui(production_panel=ui_pb.ActionProductionPanelRemoveFromQueue(unit_index=0)))
    offline.step()
    seen = offline.observe()
    assert seen.player_common.minerals == minerals + 50 and seen.ui_data.HasField("single")
    assert not offline.units(COMMAND_CENTER)[0].orders


@pytest.mark.parametrize("name", ["DefeatRoaches", "FindAndDefeatZerglings"])
def test_a_map_may_select_the_army(offline, name):
    offline.start(name, interface=options())
    marines = [(unit.pos.x, unit.pos.y) for unit in offline.units(MARINE)]
    assert not offline.observe().abilities
    assert selected(offline) == marines and ATTACK in abilities(offline)


def test_a_new_wave_is_selected(offline):
    offline.start("DefeatRoaches", interface=options())
    offline.step()
    offline.act(at((0.0, 0.0)))
    offline.kill(offline.units(ROACH))
    offline.step(3)
    marines = offline.units(MARINE)
    assert len(marines) == 14 and all(unit.is_selected for unit in marines)
    assert len(offline.observe().ui_data.multi.units) == 14


def test_a_replay_shows_the_players_screen(offline):
    offline.start("DefeatRoaches", interface=options())
    shown = {}
    for _ in range(12):
        shown[offline.observe().game_loop] = offline.observe().SerializeToString()
        offline.act(army(), order(GENERAL_ATTACK, (33.0, 30.0)))
        offline.step(4)
    replay = offline.replay()
    offline.ask(leave_game=sc_pb.RequestLeaveGame())
    offline.watch(replay, options=options())
    for loop, content in shown.items():
        seen = offline.observe()
        assert (seen.game_loop, seen.SerializeToString()) == (loop, content)
        offline.step(4)


def test_the_panel_of_a_unit_shows_its_levels_energy_and_buffs(town_on_screen):
    session = town_on_screen
    for _ in range(2):
        cheat(session, debug_pb.upgrade)
    session.create((MARINE, 1, 32.0, 32.0), (MEDIVAC, 1, 32.0, 40.0))
    session.act(at((32.0, 32.0)))
    session.order(session.units(MARINE), STIM)
    session.step(2)
    panel = session.observe().ui_data.single
    assert (panel.attack_upgrade_level, panel.armor_upgrade_level) == (2, 2)
    assert list(panel.buffs) == [STIMPACK]
    session.act(at((32.0, 40.0)))
    session.step()
    assert session.observe().ui_data.single.unit.max_energy == 200
