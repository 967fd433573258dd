"""Tests which requests each status allows, errors like the real game's, and replies' contents."""

from __future__ import annotations

import json
import os

import pytest
from s2clientprotocol import common_pb2 as common
from s2clientprotocol import debug_pb2 as debug_pb
from s2clientprotocol import query_pb2 as query_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.status import LEGAL, Status, is_legal
from tests.standin.sessions import ALONE, EMPTY_MAP, RAW, against

CreateError = sc_pb.ResponseCreateGame
JoinError = sc_pb.ResponseJoinGame


def _local(path: str = "mini_games/MoveToBeacon.SC2Map", data: bytes = b"") -> sc_pb.LocalMap:
    return sc_pb.LocalMap(map_path=path, map_data=data)


REQUESTS = {
    "ping": sc_pb.RequestPing(),
    "available_maps": sc_pb.RequestAvailableMaps(),
    "create_game": sc_pb.RequestCreateGame(local_map=_local(), player_setup=ALONE, random_seed=1),
    "join_game": sc_pb.RequestJoinGame(race=1, options=RAW),
    "restart_game": sc_pb.RequestRestartGame(),
    "leave_game": sc_pb.RequestLeaveGame(),
    "game_info": sc_pb.RequestGameInfo(),
    "data": sc_pb.RequestData(unit_type_id=True),
    "observation": sc_pb.RequestObservation(),
    "query": query_pb.RequestQuery(),
    "save_replay": sc_pb.RequestSaveReplay(),
    "action": sc_pb.RequestAction(),
    "debug": sc_pb.RequestDebug(),
    "step": sc_pb.RequestStep(),
    "quick_save": sc_pb.RequestQuickSave(),
    "quick_load": sc_pb.RequestQuickLoad(),
    "start_replay": sc_pb.RequestStartReplay(),
    "replay_info": sc_pb.RequestReplayInfo(),
    "map_command": sc_pb.RequestMapCommand(),
    "save_map": sc_pb.RequestSaveMap(),
    "obs_action": sc_pb.RequestObserverAction(),
}
UNSUPPORTED = {"quick_save", "quick_load", "map_command", "obs_action"}
LEADS_TO = {
    (name, before): after
    for name, after, befores in (
        ("create_game", Status.INIT_GAME, (Status.LAUNCHED, Status.IN_GAME, Status.ENDED)),
        ("join_game", Status.IN_GAME, (Status.INIT_GAME,)),
        ("restart_game", Status.IN_GAME, (Status.IN_GAME, Status.ENDED)),
        ("leave_game", Status.LAUNCHED, (Status.IN_GAME, Status.IN_REPLAY, Status.ENDED)),
    )
    for before in befores
}
REACHABLE = [status for status in Status if status not in (Status.QUIT, Status.UNKNOWN)]
PYLON, BARRACKS, ORBITAL = 60, 21, 132
RALLY_UNITS, SCAN = 195, 399


def _create(session, local_map: sc_pb.LocalMap) -> sc_pb.Response:
    request = sc_pb.RequestCreateGame(local_map=local_map, player_setup=ALONE)
    return session.ask(create_game=request)


def _bring_to(session, status: Status) -> None:
    if status >= Status.INIT_GAME:
        session.ask(create_game=REQUESTS["create_game"])
    if status >= Status.IN_GAME:
        session.ask(join_game=REQUESTS["join_game"])
    if status == Status.IN_REPLAY:
        session.step(8)
        session.watch(session.replay(), record_replay=True)
    if status == Status.ENDED:
        session.step(5000)
    assert session.state.status == status


def test_every_request_of_the_api_is_walked():
    fields = {f.name for f in sc_pb.Request.DESCRIPTOR.oneofs_by_name["request"].fields}
    assert set(REQUESTS) | {"quit"} == fields
    assert set(LEGAL) <= fields


@pytest.mark.parametrize("status", REACHABLE, ids=lambda s: s.name)
@pytest.mark.parametrize("name", REQUESTS)
def test_status_machine(session_for, name, status):
    session = session_for()
    _bring_to(session, status)
    reply = session.ask(**{name: REQUESTS[name]}, id=99)
    assert reply.id == 99
    # A join without ports needs a game of the same process.
    refused = name in UNSUPPORTED or (name, status) == ("join_game", Status.LAUNCHED)
    if is_legal(name, status) and not refused:
        assert not reply.error
        assert reply.WhichOneof("response") == name
        assert reply.status == LEADS_TO.get((name, status), status)
    else:
        assert len(reply.error) == 1
        assert reply.WhichOneof("response") is None
        assert reply.status == status


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"player_setup": ALONE}, CreateError.MissingMap),
        ({"local_map": _local("nowhere.SC2Map"), "player_setup": ALONE}, CreateError.MissingMap),
        ({"local_map": _local("mini_games"), "player_setup": ALONE}, CreateError.InvalidMapPath),
        ({"local_map": _local("a\0b"), "player_setup": ALONE}, CreateError.InvalidMapPath),
        ({"local_map": _local(data=b"MPQ\x1a"), "player_setup": ALONE}, CreateError.InvalidMapData),
        ({"battlenet_map_name": "x", "player_setup": ALONE}, CreateError.InvalidMapName),
        ({"local_map": _local()}, CreateError.MissingPlayerSetup),
        ({"local_map": _local(), "player_setup": ALONE * 2}, CreateError.InvalidPlayerSetup),
        ({"local_map": _local(), "player_setup": ALONE * 3}, CreateError.MultiplayerUnsupported),
        (
            {"local_map": _local(), "player_setup": [sc_pb.PlayerSetup(type=sc_pb.Computer)]},
            CreateError.InvalidPlayerSetup,
        ),
    ],
)
def test_create_game_errors(offline, request_, code):
    reply = offline.ask(create_game=sc_pb.RequestCreateGame(**request_))
    assert reply.create_game.error == code
    assert reply.create_game.error_details
    assert not reply.error
    assert reply.status == sc_pb.launched


def _not_utf8(request: sc_pb.Request, text: str) -> sc_pb.Request:
    """The request with a string that is not UTF-8, which protobuf's setters would refuse."""
    frame = request.SerializeToString().replace(text.encode(), b"\xfe" * len(text))
    return sc_pb.Request.FromString(frame)


def test_strings_that_are_no_utf8(offline):
    create = sc_pb.RequestCreateGame(local_map=_local("PATH"), player_setup=ALONE)
    damaged = _not_utf8(sc_pb.Request(create_game=create), "PATH").create_game
    assert offline.ask(create_game=damaged).create_game.error == CreateError.MissingMap
    offline.ask(create_game=REQUESTS["create_game"])
    join = sc_pb.RequestJoinGame(race=1, options=RAW, player_name="NAME")
    offline.ask(join_game=_not_utf8(sc_pb.Request(join_game=join), "NAME").join_game)
    info = offline.game_info()
    assert info.player_info[0].player_name == "\N{REPLACEMENT CHARACTER}" * 4
    chat = sc_pb.Action(action_chat=sc_pb.ActionChat(message="SAID"))
    action = sc_pb.Request(action=sc_pb.RequestAction(actions=[chat]))
    offline.ask(action=_not_utf8(action, "SAID").action)
    assert not offline.step().error
    assert len(offline.observed().chat) == 1


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"options": RAW}, JoinError.MissingParticipation),
        ({"race": 1}, JoinError.MissingOptions),
        ({"observed_player_id": 1, "options": RAW}, JoinError.FeatureUnsupported),
    ],
)
def test_join_game_errors(offline, request_, code):
    _bring_to(offline, Status.INIT_GAME)
    reply = offline.ask(join_game=sc_pb.RequestJoinGame(**request_))
    assert reply.join_game.error == code
    assert reply.status == sc_pb.init_game


@pytest.mark.parametrize("way", ["absolute", "climbing", "link", "linked folder"])
def test_no_map_path_leads_out_of_the_map_folder(offline, installation, tmp_path, way):
    maps = installation / "Maps"
    outside = tmp_path / "Outside.SC2Map"
    outside.write_bytes((maps / "mini_games" / "MoveToBeacon.SC2Map").read_bytes())
    link = maps / "linked"
    path = {
        "absolute": str(outside),
        "climbing": os.path.relpath(outside, maps),
        "link": "linked",
        "linked folder": "linked/Outside.SC2Map",
    }[way]
    if way.startswith("link"):
        link.symlink_to(outside if way == "link" else tmp_path)
    try:
        reply = _create(offline, _local(path))
    finally:
        link.unlink(missing_ok=True)
    assert reply.create_game.error == CreateError.InvalidMapPath
    assert "map_data" in reply.create_game.error_details


def test_a_map_in_the_temporary_folder(offline, installation, tmp_path):
    path = tmp_path / "Saved.SC2Map"
    path.write_bytes((installation / "Maps" / "mini_games" / "MoveToBeacon.SC2Map").read_bytes())
    offline.state.temp_dir = tmp_path
    assert _create(offline, _local(str(path))).status == sc_pb.init_game


def test_a_map_by_absolute_path_and_by_content(session_for, installation):
    path = installation / "Maps" / "mini_games" / "MoveToBeacon.SC2Map"
    for local_map in (_local(str(path)), _local("", path.read_bytes())):
        assert _create(session_for(), local_map).status == sc_pb.init_game


def test_a_broken_map_is_told_what_is_wrong_with_it(offline):
    content = json.dumps(EMPTY_MAP | {"colour": "red"}).encode()
    reply = _create(offline, _local(data=content)).create_game
    assert reply.error == CreateError.InvalidMapData
    assert "colour" in reply.error_details
    odd = json.dumps(EMPTY_MAP | {"size": [88, 95]}).encode()
    assert not _create(offline, _local(data=odd)).create_game.HasField("error")


def test_available_maps(offline):
    maps = offline.ask(available_maps=sc_pb.RequestAvailableMaps()).available_maps
    assert "mini_games/MoveToBeacon.SC2Map" in maps.local_map_paths


def test_game_info_has_full_grids_and_echoes_the_interface(offline):
    offline.start()
    info = offline.game_info()
    size = info.start_raw.map_size
    assert size.y % 8 == 0
    for grid, bits in (
        (info.start_raw.pathing_grid, 1),
        (info.start_raw.placement_grid, 1),
        (info.start_raw.terrain_height, 8),
    ):
        assert grid.bits_per_pixel == bits
        assert len(grid.data) == size.x * size.y * bits // 8
    assert info.options == RAW
    assert info.map_name == "MoveToBeacon"
    assert info.mod_names[0] == "Mods/Core.SC2Mod"
    assert [(p.player_id, p.type, p.race_actual) for p in info.player_info] == [
        (1, sc_pb.Participant, common.Terran)
    ]
    area = info.start_raw.playable_area
    row, column = area.p0.y, area.p0.x
    bit = row * size.x + column
    assert info.start_raw.pathing_grid.data[bit // 8] >> (7 - bit % 8) & 1
    assert not info.start_raw.pathing_grid.data[(bit - 1) // 8] >> (7 - (bit - 1) % 8) & 1


def test_an_interface_that_is_not_sent_is_not_listed(offline):
    asked = sc_pb.InterfaceOptions(raw=True, score=True, show_cloaked=True)
    asked.feature_layer.resolution.x = asked.render.resolution.x = 84
    offline.start(interface=asked)
    listed = offline.game_info().options
    assert listed == sc_pb.InterfaceOptions(raw=True, score=True, show_cloaked=True)


def test_coordinates_within_the_playable_area(session_for):
    """With cropped coordinates, places must only be shifted by the corner of the playable area."""
    sessions = [session_for(), session_for()]
    for session, cropped in zip(sessions, (False, True), strict=True):
        options = sc_pb.InterfaceOptions(raw=True, raw_crop_to_playable_area=cropped)
        session.start(interface=options)
    whole, cut = (s.game_info().start_raw for s in sessions)
    corner, far = whole.playable_area.p0, whole.playable_area.p1
    size = cut.map_size
    assert (size.x, size.y) == (far.x - corner.x, far.y - corner.y)
    assert cut.playable_area.p1 == common.PointI(x=size.x, y=size.y)
    assert set(cut.pathing_grid.data) == {255}
    assert len(cut.terrain_height.data) == size.x * size.y
    marine = next(u for u in sessions[0].observe().raw_data.units if u.unit_type == 48)
    for session, x, y in zip(sessions, (corner.x, 0), (corner.y, 0), strict=True):
        assert session.order(marine, 16, (x + 3, y + 4)) == 1
        session.step(8)
    whole, cut = (s.observed() for s in sessions)
    for message in (whole, cut):
        asked = message.actions[0].action_raw.unit_command.target_world_space_pos
        (order,) = (u.orders[0] for u in message.observation.raw_data.units if u.orders)
        place = order.target_world_space_pos
        assert (place.x, place.y) == (asked.x, asked.y)
    assert (asked.x, asked.y) == (3, 4)
    for unit, moved in zip(
        whole.observation.raw_data.units, cut.observation.raw_data.units, strict=True
    ):
        assert moved.pos.x == pytest.approx(unit.pos.x - corner.x, abs=1e-4)
        assert moved.pos.y == pytest.approx(unit.pos.y - corner.y, abs=1e-4)
    assert set(cut.observation.raw_data.map_state.visibility.data) == {2}
    assert cut.observation.raw_data.map_state.creep.size == common.Size2DI(x=size.x, y=size.y)


def test_every_point_of_an_observation_is_within_the_playable_area(session_for):
    found = []
    for cropped in (False, True):
        session = session_for()
        interface = sc_pb.InterfaceOptions(raw=True, raw_crop_to_playable_area=cropped)
        session.start("Melee/Simple64", interface=interface)
        area = session.state.playing().terrain
        session.create((PYLON, 1, 44, 48), (BARRACKS, 1, 24.5, 45.5), (ORBITAL, 1, 30.5, 41.5))
        session.step()
        corner = (area.x0, area.y0) if cropped else (0, 0)
        asked = (30 - corner[0], 40 - corner[1])
        assert session.order(session.one(BARRACKS), RALLY_UNITS, asked) == 1
        assert session.order(session.one(ORBITAL), SCAN, asked) == 1
        session.step(4)
        raw = session.observe().raw_data
        points = [
            *(source.pos for source in raw.player.power_sources),
            *(point for effect in raw.effects for point in effect.pos),
            *(target.point for unit in raw.units for target in unit.rally_targets),
        ]
        found.append([n for at in points for n in (at.x + corner[0], at.y + corner[1])])
    whole, cut = found
    assert len(whole) >= 6
    assert cut == pytest.approx(whole)


def test_a_new_game_may_be_created_in_a_running_one(offline):
    offline.start("MoveToBeacon")
    offline.step(9)
    failed = offline.ask(create_game=sc_pb.RequestCreateGame(player_setup=ALONE))
    assert failed.create_game.error == CreateError.MissingMap
    assert failed.status == sc_pb.in_game
    assert offline.observe().game_loop == 9
    offline.start("DefeatRoaches")
    assert offline.game_info().map_name == "DefeatRoaches"
    assert offline.observe().game_loop == 0


def test_a_computer_is_listed_and_gets_a_result(offline):
    offline.start(player_setup=against(sc_pb.Medium))
    info = offline.game_info()
    assert info.player_info[1].race_requested == common.Zerg
    assert info.player_info[1].difficulty == sc_pb.Medium
    offline.step(5000)
    results = offline.observed().player_result
    assert [(r.player_id, r.result) for r in results] == [(1, sc_pb.Victory), (2, sc_pb.Defeat)]


def test_step_counts_and_stops_at_the_end(offline):
    offline.start()
    assert offline.ask(step=sc_pb.RequestStep()).step.simulation_loop == 1
    assert offline.step(9).step.simulation_loop == 10
    ended = offline.step(2**32 - 1)
    assert ended.status == sc_pb.ended
    assert ended.step.simulation_loop == 1920
    assert "already ended" in offline.step().error[0]


def test_game_loop_is_ignored_when_not_in_real_time(offline):
    offline.start()
    assert offline.observed(game_loop=500).observation.game_loop == 0


def test_restart_begins_anew_with_another_seed(offline):
    offline.start()
    first = offline.observe().raw_data
    offline.step(100)
    reply = offline.ask(restart_game=sc_pb.RequestRestartGame())
    assert reply.status == sc_pb.in_game
    assert not reply.restart_game.need_hard_reset
    again = offline.observe()
    assert again.game_loop == 0
    assert again.raw_data != first
    assert offline.step(8).step.simulation_loop == 108  # a restart does not reset `simulation_loop`


def test_hard_reset_is_asked_for_and_time_ends(offline):
    offline.start()
    offline.state.game.loops_before = 2**18
    offline.step()
    assert offline.ask(restart_game=sc_pb.RequestRestartGame()).restart_game.need_hard_reset
    offline.state.begin_episode(loops_before=2**19 - 10)
    assert offline.step(100).step.simulation_loop == 2**19
    assert offline.observed().player_result[0].result == sc_pb.Tie
    assert offline.state.status == Status.ENDED
    reply = offline.ask(restart_game=sc_pb.RequestRestartGame())
    assert reply.restart_game.error == sc_pb.ResponseRestartGame.LaunchError
    assert reply.status == sc_pb.ended
    offline.start()
    assert offline.step().step.simulation_loop == 1


def test_interface_without_raw_or_score(offline):
    offline.start(interface=sc_pb.InterfaceOptions())
    seen = offline.observe()
    assert not seen.HasField("raw_data")
    assert not seen.HasField("score")
    assert seen.player_common.player_id == 1


def test_a_defect_is_answered_not_silent(offline, capsys):
    offline.start()
    offline.state.game.world = None  # no request makes a game without a world
    reply = offline.step()
    assert "Internal error" in reply.error[0]
    assert "Traceback" in capsys.readouterr().err


def test_debug_is_all_or_nothing(offline):
    offline.start()
    good = debug_pb.DebugCommand(
        create_unit=debug_pb.DebugCreateUnit(
            unit_type=48, owner=1, pos=common.Point2D(x=40, y=45), quantity=2
        )
    )
    bad = debug_pb.DebugCommand(create_unit=debug_pb.DebugCreateUnit(unit_type=9999, owner=1))
    assert "9999" in offline.ask(debug=sc_pb.RequestDebug(debug=[good, bad])).error[0]
    assert len(offline.units(48)) == 1
    offline.debug(good)
    offline.step()
    assert len(offline.units(48)) == 3
    harmless = {"game_state": debug_pb.god}, {"draw": debug_pb.DebugDraw()}
    offline.debug(*(debug_pb.DebugCommand(**one) for one in harmless))
