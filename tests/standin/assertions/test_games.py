"""Assertions about games and processes: create, join, step, save, replay, restart, leave, crash."""

from __future__ import annotations

import select

import pytest
from s2clientprotocol import debug_pb2 as debug_pb
from s2clientprotocol import raw_pb2 as raw_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.game.program.installation import find_map
from tests.standin.assertions.conftest import FIELD, of, put
from tests.standin.sessions import place_of
from tests.support.duels import RAW, TWO

MOVE, ATTACK = 16, 23
OBSERVE, PING, LEAVE = sc_pb.RequestObservation(), sc_pb.RequestPing(), sc_pb.RequestLeaveGame()
SAVED = "saved.SC2Map"


def test_p01_create_game_without_content_has_an_error(wire):
    reply = wire.ask(create_game=sc_pb.RequestCreateGame())
    assert reply.WhichOneof("response") == "create_game"
    assert reply.create_game.HasField("error")


def test_p02_join_game_without_a_created_game_is_refused(wire):
    reply = wire.ask(join_game=sc_pb.RequestJoinGame(race=1, options=RAW))
    assert reply.error or reply.join_game.HasField("error")
    assert reply.status == sc_pb.launched


def test_p03_p04_a_replay_ends_at_the_recorded_loop_and_cannot_be_saved(begin):
    wire = begin()
    wire.step(100)
    replay = wire.replay()
    wire.watch(replay, disable_fog=True)  # the process of the running game plays the replay
    loops = [wire.observe().game_loop]
    status = sc_pb.in_replay
    while status == sc_pb.in_replay:
        status = wire.step(1000).status
        loops.append(wire.observe().game_loop)
        assert len(loops) < 10
    assert loops[-1] == 100
    refused = wire.ask(save_replay=sc_pb.RequestSaveReplay())
    assert refused.error
    assert not refused.save_replay.data


def test_p05_a_hundred_pings_are_answered(wire):
    versions = {wire.ask(ping=PING).ping.game_version for _ in range(100)}
    assert len(versions) == 1


def test_p06_ping_names_the_build_of_the_folder(wire, game_installation):
    ping = wire.ask(ping=PING).ping
    assert ping.base_build == game_installation.base_build
    assert ping.game_version
    assert ping.data_version


def test_p07_the_installed_version_creates_a_melee_map(wire, local_map):
    request = sc_pb.RequestCreateGame(local_map=local_map("Simple64"), player_setup=TWO)
    reply = wire.ask(create_game=request)
    assert not reply.create_game.HasField("error"), reply
    assert reply.status == sc_pb.init_game


def test_p08_p09_s50_two_games_of_two_clients_on_a_map_that_was_saved(pair, game_installation):
    content = find_map(game_installation, FIELD).read_bytes()
    for wire in pair.wires:  # the processes save the map one after the other
        saved = wire.ask(save_map=sc_pb.RequestSaveMap(map_path=SAVED, map_data=content))
        assert not saved.save_map.HasField("error"), saved
    for _ in range(2):
        pair.begin(sc_pb.LocalMap(map_path=SAVED))
        for loop in range(1, 10):
            pair.step(1)
            assert [seen.observation.game_loop for seen in pair.observe()] == [loop, loop]
        for _ in range(10):
            pair.step(50)
        assert [seen.observation.game_loop for seen in pair.observe()] == [509, 509]
        ids = [seen.observation.player_common.player_id for seen in pair.observe()]
        assert ids == [1, 2]
        left = pair.ask(leave_game=LEAVE)
        assert [reply.status for reply in left] == [sc_pb.launched] * 2


def test_p10_p11_the_first_loop_is_0_and_a_step_plays_its_loops(begin):
    wire = begin()
    assert wire.observe().game_loop == 0
    loop = 0
    for count in range(1, 10):
        wire.step(count)
        loop += count
        assert wire.observe().game_loop == loop


def test_p12_a_game_of_two_computers_has_results_for_an_observer(wire, local_map):
    players = [
        sc_pb.PlayerSetup(type=sc_pb.Computer, race=1, difficulty=level)
        for level in (sc_pb.VeryEasy, sc_pb.VeryHard)
    ]
    setup = [*players, sc_pb.PlayerSetup(type=sc_pb.Observer)]
    create = sc_pb.RequestCreateGame(local_map=local_map("Simple64"), player_setup=setup)
    assert not wire.ask(create_game=create).create_game.HasField("error")
    joined = wire.ask(join_game=sc_pb.RequestJoinGame(observed_player_id=0, options=RAW))
    assert not joined.join_game.HasField("error")
    loops = 0
    while wire.step(600).status == sc_pb.in_game:
        loops += 600
        assert loops <= 57_600
    results = {one.player_id: one.result for one in wire.observed().player_result}
    assert {results[1], results[2]} == {sc_pb.Victory, sc_pb.Defeat}


def test_p33_a_game_with_a_seed_and_its_replay_are_equal_at_each_loop(begin):
    """At each of 600 loops, game and replay must show the same units, three of which walk."""

    def seen(wire) -> list[tuple[float, ...]]:
        state = wire.observe().raw_data
        return [
            (unit.tag, unit.unit_type, *place_of(unit), unit.health)
            for unit in state.units
            if unit.display_type == raw_pb.Visible and unit.owner == 1
        ]

    wire = begin(seed=42)
    workers = of(wire, "SCV")
    x, y = place_of(workers[0])
    played = []
    for loop in range(600):
        if loop % 150 == 0:
            away = ((4, 0), (0, 4), (-4, 0), (0, -4))[loop // 150]
            wire.order(workers[:3], MOVE, (x + away[0], y + away[1]))
        wire.step()
        played.append(seen(wire))
    wire.watch(wire.replay())
    for loop, before in enumerate(played[:-1]):
        wire.step()
        assert seen(wire) == before, loop


class TestScores:
    """P34: scripted players of mini-games score in each episode."""

    @pytest.mark.parametrize("map_name", ["MoveToBeacon", "CollectMineralShards"])
    def test_p34_walks(self, begin, map_name):
        wire = begin(map_name)
        goal = next(unit for unit in wire.observe().raw_data.units if unit.owner == 16)
        wire.order(of(wire, "Marine"), MOVE, place_of(goal))
        self.assert_scores(wire, 300)

    def test_p34_defeat_roaches(self, begin):
        wire = begin("DefeatRoaches")
        (first, *_) = of(wire, "Roach", 2)
        wire.order(of(wire, "Marine"), ATTACK, place_of(first))
        self.assert_scores(wire, 500, peak=True)

    def assert_scores(self, wire, loops: int, *, peak: bool = False) -> None:
        scores = []
        for _ in range(0, loops, 8):
            wire.step(8)
            scores.append(wire.observe().score.score)
        assert (max(scores) if peak else scores[-1]) >= 1


def test_s01_an_episode_is_ended_and_restarted_ten_times(begin):
    wire = begin("MoveToBeacon")
    for _ in range(10):
        put(wire, ("Marine", 1, 30, 30, 2))
        assert len(of(wire, "Marine")) == 3
        wire.end_game("DeclareVictory")
        loops = 0
        while wire.step(10).status == sc_pb.in_game:
            loops += 10
            assert loops < 2000
        assert wire.observed().player_result[0].result == sc_pb.Victory
        reply = wire.ask(restart_game=sc_pb.RequestRestartGame())
        assert (list(reply.error), reply.status) == ([], sc_pb.in_game)
        assert wire.observe().game_loop == 0


@pytest.mark.parametrize("test", ["crash", "hang"])
def test_s48_a_process_crashes_or_hangs_if_it_is_asked_to(own_game, test):
    wire = own_game.connect()
    path = find_map(own_game.installation, "MoveToBeacon")
    wire.start("", local_map=sc_pb.LocalMap(map_path=str(path)))
    fate = debug_pb.DebugTestProcess(test=debug_pb.DebugTestProcess.Test.Value(test))
    wire.send(debug=sc_pb.RequestDebug(debug=[debug_pb.DebugCommand(test_process=fate)]))
    exited = own_game.process.exited_fd
    if test == "crash":
        assert select.select([exited], [], [], 30)[0]
        assert own_game.process.exit_code() != 0
        return
    wire.send(ping=PING)
    kinds = []
    while select.select([wire.socket, exited], [], [], 2.0)[0]:
        kinds.append(wire.reply().WhichOneof("response"))  # the game may answer the debug request
    assert "ping" not in kinds
    assert own_game.process.exit_code() is None
