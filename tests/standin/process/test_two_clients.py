"""Two clients in one game, each with a process of its own."""

from __future__ import annotations

import json
import random
import select
import signal
import socket
import time
from collections import Counter
from contextlib import suppress
from importlib import resources
from pathlib import Path

import numpy as np
import psutil
import pytest
from google.protobuf.message import DecodeError
from s2clientprotocol import error_pb2 as error_pb
from s2clientprotocol import raw_pb2 as raw_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

from tests.standin.sessions import GameProcess, command, options, place_of, results
from tests.support.duels import (
    ATTACK,
    DUEL,
    MOVE,
    TWO,
    Pair,
    free_ports,
    join_request,
    local_map,
    units_of,
)
from tests.support.fuzz.draw import Draw

SCV, BUILD_DEPOT = 45, 319
JoinError = sc_pb.ResponseJoinGame
OBSERVE = sc_pb.RequestObservation()
LEAVE = sc_pb.RequestLeaveGame()
STEP = sc_pb.RequestStep(count=1)
CREATE = sc_pb.RequestCreateGame(local_map=DUEL, player_setup=TWO, random_seed=1)
MAPS = Path(str(resources.files("sc2standin").joinpath("maps")))
FOR_TWO = {
    path.stem: path.read_bytes()
    for path in sorted(MAPS.rglob("*.SC2Map"))
    if json.loads(path.read_text()).get("players") == 2
}
"""The bundled maps for two players."""


def _has_reply(wire, within_s: float) -> bool:
    return bool(select.select([wire.socket], [], [], within_s)[0])


def _listening(*games: GameProcess) -> set[int]:
    """The ports on which these game processes listen."""
    return {
        one.laddr.port
        for game in games
        for one in psutil.Process(game.process.pid).net_connections()
        if one.status == psutil.CONN_LISTEN
    }


def _play(pair: Pair, loops: int, seed: int) -> list[bytes]:
    """Play random commands of both clients; returns all bytes that both received."""
    rng = np.random.default_rng(seed)
    bytes_seen = []
    seen = pair.observe()
    for _ in range(0, loops, 8):
        for player, wire in enumerate(pair.wires, 1):
            mine = units_of(seen[player - 1], player)
            ability = int(rng.choice([ATTACK, MOVE]))
            point = tuple(rng.uniform(8, 24, 2).tolist())
            orders = [command(mine[: rng.integers(1, 6)], ability, point)] if mine else []
            wire.send(action=sc_pb.RequestAction(actions=orders))
            wire.send(step=sc_pb.RequestStep(count=8))
            wire.send(observation=OBSERVE)
        replies = [[wire.receive() for _ in range(3)] for wire in pair.wires]
        bytes_seen += [*replies[0], *replies[1]]
        seen = [sc_pb.Response.FromString(one[2]).observation for one in replies]
        if seen[0].player_result:
            break
    return bytes_seen


def test_a_duel_step_by_step(pair):
    pair.begin(disable_fog=True)
    rng = np.random.default_rng(5)
    for loop in range(1, 400):
        host, guest = pair.observe()
        assert host.observation.game_loop == guest.observation.game_loop == loop - 1
        for player, seen in ((1, host), (2, guest)):
            assert seen.observation.player_common.player_id == player
            for unit in seen.observation.raw_data.units:
                assert unit.alliance == (raw_pb.Self if unit.owner == player else raw_pb.Enemy)
        for owner in (1, 2):
            places = [
                [(u.tag, u.pos.x, u.pos.y, u.health) for u in units_of(seen, owner)]
                for seen in (host, guest)
            ]
            assert places[0] == places[1]
        if host.player_result:
            break
        for player, wire in enumerate(pair.wires, 1):
            mine = units_of((host, guest)[player - 1], player)
            point = tuple(rng.uniform(12, 20, 2).tolist())
            wire.order(mine, ATTACK, point)
        pair.step(1)
    assert results(host) == results(guest)
    assert sorted(results(host)) == [1, 2]
    one, two = (seen.observation.score.score for seen in (host, guest))
    assert one == -two


def test_a_step_is_answered_when_both_have_asked_for_its_loops(pair):
    pair.begin()
    host, guest = pair.wires
    host.send(step=sc_pb.RequestStep(count=4))
    assert not _has_reply(host, 0.1)
    assert [guest.step().step.simulation_loop for _ in range(3)] == [1, 2, 3]
    assert not _has_reply(host, 0.1)
    assert guest.observe().game_loop == 3
    guest.send(step=sc_pb.RequestStep(count=5))
    assert host.reply().step.simulation_loop == 4
    assert not _has_reply(guest, 0.1)
    assert host.step(4).step.simulation_loop == 8
    assert guest.reply().step.simulation_loop == 8


def test_each_sees_its_own_fog_and_commands_its_own_units(pair):
    pair.begin(local_map())
    first, second = pair.observe()
    assert {unit.owner for unit in first.observation.raw_data.units} == {1}
    assert {unit.owner for unit in second.observation.raw_data.units} == {2}
    lit = [one.observation.raw_data.map_state.visibility.data for one in (first, second)]
    assert lit[0] != lit[1]
    stolen = pair.wires[0].order(units_of(second, 2), MOVE, (32, 32))
    assert stolen == error_pb.YouCantIssueCommandsToThatUnit


def test_each_may_build_where_its_own_workers_stand(pair):
    pair.begin(sc_pb.LocalMap(map_path="Melee/Simple64.SC2Map"))
    for player, seen in enumerate(pair.observe(), 1):
        worker = next(unit for unit in units_of(seen, player) if unit.unit_type == SCV)
        placed = pair.wires[player - 1].can_place(BUILD_DEPOT, place_of(worker))
        assert placed == [error_pb.Success]


def test_game_info_of_both_players(pair):
    pair.begin()
    infos = [r.game_info for r in pair.ask(game_info=sc_pb.RequestGameInfo())]
    for player, info in enumerate(infos, 1):
        assert [one.player_id for one in info.player_info] == [1, 2]
        assert {one.type for one in info.player_info} == {sc_pb.Participant}
        known = [one.player_id for one in info.player_info if one.HasField("race_actual")]
        assert known == [player]
    assert infos[0].start_raw.start_locations != infos[1].start_raw.start_locations
    said = sc_pb.Action(action_chat=sc_pb.ActionChat(message="gl hf"))
    pair.wires[1].act(said)
    pair.step(2)
    chats = [[(one.player_id, one.message) for one in seen.chat] for seen in pair.observe()]
    assert chats == [[(2, "gl hf")]] * 2


@pytest.mark.parametrize("guest_first", [True, False])
def test_join_waits_for_the_other_player(shared_games, pair, guest_first):
    pair.wires[0].ask(create_game=CREATE)
    order = pair.wires[::-1] if guest_first else pair.wires
    order[0].send(join_game=join_request(pair.ports))
    assert not _has_reply(order[0], 0.2)
    order[1].send(join_game=join_request(pair.ports))
    assert [wire.reply().join_game.player_id for wire in pair.wires] == [1, 2]
    assert _listening(*shared_games) == {game.port for game in shared_games}


def test_a_client_that_goes_while_it_waits_leaves_no_port(launch, wait_for):
    game = launch("--temper", "kind")  # with other tempers the game would crash at this point
    ports = free_ports(4)
    wire = game.connect()
    wire.ask(create_game=CREATE)
    wire.send(join_game=join_request(ports))
    assert not _has_reply(wire, 0.1)
    wait_for(lambda: ports[0] in _listening(game))
    wire.close()
    assert game.connect().ask(ping=sc_pb.RequestPing()).status == sc_pb.init_game
    wait_for(lambda: _listening(game) == {game.port})


def test_strangers_on_the_game_port_are_no_players(pair):
    host, guest = pair.wires
    host.ask(create_game=CREATE)
    host.send(join_game=join_request(pair.ports))
    assert not _has_reply(host, 0.2)
    for said in (b"GET / HTTP/1.1\r\n\r\n", b"\1\0\0\0\0\0\0\0", b"\xff" * 64):
        with socket.create_connection(("127.0.0.1", pair.ports[0])) as stranger:
            stranger.sendall(said)
            stranger.shutdown(socket.SHUT_WR)
            while stranger.recv(4096):
                pass
    guest.send(join_game=join_request(pair.ports))
    assert [wire.reply().join_game.player_id for wire in pair.wires] == [1, 2]


def test_names_must_differ(pair):
    pair.wires[0].ask(create_game=CREATE)
    replies = pair.ask(join_game=join_request(pair.ports, player_name="x" * 40))
    assert [reply.join_game.error for reply in replies] == [JoinError.OtherError] * 2
    assert [reply.status for reply in replies] == [sc_pb.init_game, sc_pb.launched]
    assert all("differ" in reply.join_game.error_details for reply in replies)
    for wire, name in zip(pair.wires, "ab", strict=True):
        wire.send(join_game=join_request(pair.ports, player_name=name))
    assert [wire.reply().join_game.player_id for wire in pair.wires] == [1, 2]


@pytest.mark.parametrize("leaver", [0, 1])
@pytest.mark.parametrize("waits", [True, False])
def test_who_leaves_has_lost(pair, leaver, waits):
    pair.begin()
    pair.step(8)
    left, stays = pair.wires[leaver], pair.wires[1 - leaver]
    if waits:
        stays.send(step=sc_pb.RequestStep(count=8))
        assert not _has_reply(stays, 0.05)
    assert left.ask(leave_game=LEAVE).status == sc_pb.launched
    if not waits:
        assert stays.ask(observation=OBSERVE).status == sc_pb.in_game
        stays.send(step=sc_pb.RequestStep(count=8))
    stepped = stays.reply()
    assert stepped.status == sc_pb.ended
    assert stepped.step.simulation_loop == 9
    seen = stays.observed()
    assert results(seen) == {2 - leaver: sc_pb.Victory, leaver + 1: sc_pb.Defeat}
    assert not stays.observed().player_result
    assert stays.ask(leave_game=LEAVE).status == sc_pb.launched


def test_a_game_that_ends_has_one_result_for_both(pair):
    pair.begin(disable_fog=True)
    first, _ = pair.observe()
    pair.wires[1].kill(units_of(first, 1))
    assert [reply.status for reply in pair.step(8)] == [sc_pb.ended] * 2
    for seen in pair.observe():
        assert results(seen) == {1: sc_pb.Defeat, 2: sc_pb.Victory}
        assert seen.observation.game_loop == 2
    for reply in pair.ask(step=STEP):
        assert "already ended" in reply.error[0]


def test_restart_is_refused_and_the_next_game_is_created(pair):
    for episode in range(3):
        pair.begin(seed=episode)
        pair.step(4)
        for reply in pair.ask(restart_game=sc_pb.RequestRestartGame()):
            assert reply.restart_game.error == sc_pb.ResponseRestartGame.LaunchError
            assert reply.status == sc_pb.in_game
        assert all(seen.observation.game_loop == 4 for seen in pair.observe())
        assert [reply.status for reply in pair.ask(leave_game=LEAVE)] == [sc_pb.launched] * 2


def test_ports_are_needed(offline):
    join = sc_pb.RequestJoinGame(race=1, options=sc_pb.InterfaceOptions(raw=True))
    assert "Not in a game" in offline.ask(join_game=join).error[0]
    offline.ask(create_game=CREATE)
    reply = offline.ask(join_game=join)
    assert reply.join_game.error == JoinError.MissingPorts
    assert reply.status == sc_pb.init_game


def test_a_stopped_side_lets_the_other_one_wait(launch):
    games = launch(), launch()
    pair = Pair(*(game.connect() for game in games))
    pair.begin()
    stopped, survivor = games[0].process, pair.wires[1]
    stopped.send_signal(signal.SIGSTOP)
    pair.wires[0].send(step=sc_pb.RequestStep(count=8))
    survivor.send(step=sc_pb.RequestStep(count=8))
    assert not _has_reply(survivor, 0.3)
    stopped.send_signal(signal.SIGCONT)
    for wire in pair.wires:
        assert wire.reply().step.simulation_loop == 8
    stopped.send_signal(signal.SIGSTOP)
    survivor.send(step=sc_pb.RequestStep(count=8))
    assert not _has_reply(survivor, 0.05)
    games[1].process.terminate()
    assert games[1].process.wait(10) == 0
    stopped.send_signal(signal.SIGCONT)
    # The other player requested some loops before it died, and the game plays these loops.
    statuses = [pair.wires[0].step().status for _ in range(9)]
    assert sc_pb.ended in statuses


@pytest.mark.timing
def test_in_real_time_both_go_on_by_themselves(pair):
    pair.begin(realtime=True)
    for target in (5, 12):
        for reply in pair.ask(observation=sc_pb.RequestObservation(game_loop=target)):
            assert target <= reply.observation.observation.game_loop <= target + 3
    _, second = pair.observe()
    assert pair.wires[1].order(units_of(second, 2), MOVE, (16, 16)) == 1
    late = sc_pb.RequestObservation(game_loop=pair.wires[0].observe().game_loop + 10)
    first, second = (reply.observation for reply in pair.ask(observation=late))
    assert [done.action_raw.unit_command.ability_id for done in second.actions] == [MOVE]
    assert not first.actions


def test_in_real_time_a_side_whose_clock_is_early_can_act(launch):
    games = [launch("--after-stop", "freeze") for _ in range(2)]
    pair = Pair(*(game.connect() for game in games))
    pair.begin(realtime=True)
    games[1].process.send_signal(signal.SIGSTOP)
    time.sleep(0.3)  # the clock of the stopped game is several loops late after the stop
    games[1].process.send_signal(signal.SIGCONT)
    first, _ = pair.observe()
    for number in range(20):
        target = (16 + number % 2, 16)
        pair.wires[0].send(
            action=sc_pb.RequestAction(actions=[command(units_of(first, 1), MOVE, target)])
        )
        assert _has_reply(pair.wires[0], 10)
        assert pair.wires[0].reply().action.result == [error_pb.Success]


def test_a_replay_shows_what_both_did(pair, session_for):
    pair.begin(seed=4)
    replies = [sc_pb.Response.FromString(one) for one in _play(pair, 160, seed=9)]
    seen = [one.observation for one in replies if one.HasField("observation")]
    of_players = seen[::2], seen[1::2]
    replays = [r.save_replay.data for r in pair.ask(save_replay=sc_pb.RequestSaveReplay())]
    assert replays[0] == replays[1]
    for observed in (0, 1, 2):
        session = session_for()
        session.watch(replays[0], observed_player_id=observed)
        session.observe()
        for was in of_players[observed - 1][:-1]:
            session.step(8)
            shown = session.observed()
            if observed:
                assert shown == was
            else:
                assert {unit.owner for unit in shown.observation.raw_data.units} == {1, 2}


def test_an_observer_watches_two_computers(offline):
    types = (sc_pb.Computer, sc_pb.Computer, sc_pb.Observer)
    setup = [sc_pb.PlayerSetup(type=one) for one in types]
    create = sc_pb.RequestCreateGame(local_map=DUEL, player_setup=setup, random_seed=3)
    assert offline.ask(create_game=create).status == sc_pb.init_game
    plays = sc_pb.RequestJoinGame(race=1, options=sc_pb.InterfaceOptions(raw=True))
    assert offline.ask(join_game=plays).join_game.error == JoinError.FeatureUnsupported
    watches = sc_pb.RequestJoinGame(observed_player_id=0, options=sc_pb.InterfaceOptions(raw=True))
    assert offline.ask(join_game=watches).join_game.player_id == 3
    infos = offline.game_info().player_info
    assert [info.type for info in infos] == [sc_pb.Computer] * 2
    assert {unit.owner for unit in offline.observe().raw_data.units} == {1, 2}
    while (reply := offline.ask(observation=OBSERVE)).status == sc_pb.in_game:
        offline.step(16)
    assert len(reply.observation.player_result) == 2


def test_clicks_of_both_are_carried_out_in_both_games(pair):
    """Each process must know the other client's screen."""
    pair.begin(local_map(), interface=options())
    select, click = sc_pb.Action(), sc_pb.Action()
    select.action_ui.select_army.selection_add = False
    order = click.action_feature_layer.unit_command
    order.ability_id, order.target_minimap_coord.x, order.target_minimap_coord.y = MOVE, 32, 20
    replies = pair.ask(action=sc_pb.RequestAction(actions=[select, click]))
    assert [list(reply.action.result) for reply in replies] == [[error_pb.Success] * 2] * 2
    pair.step(20)
    whole = [
        [(u.tag, u.pos.x, u.pos.y) for u in reply.observation.observation.raw_data.units]
        for reply in pair.ask(observation=sc_pb.RequestObservation(disable_fog=True))
    ]
    assert whole[0] == whole[1]
    assert all(x not in (10.0, 54.0) for _tag, x, _y in whole[0])
    for player, seen in enumerate(pair.observe(), 1):
        mine = units_of(seen, player)
        assert len(mine) == 2 and all(unit.is_selected for unit in mine)
        assert len(seen.observation.ui_data.multi.units) == 2


@pytest.mark.parametrize("name", FOR_TWO)
def test_random_requests_leave_both_games_the_same(pair, name):
    """Both clients send legal and illegal commands, and both processes stay in the same state."""
    rng = random.Random(3)
    draws = [Draw(seed, [f"{name}.SC2Map"]) for seed in (3, 4)]
    kinds, games, is_over = Counter(), 0, True
    for _ in range(250):
        if is_over:
            if games:
                pair.ask(leave_game=LEAVE)
            games += 1
            played = sc_pb.LocalMap(map_data=FOR_TWO[name])
            pair.begin(played, seed=games, interface=options())
        for player, (draw, wire) in enumerate(zip(draws, pair.wires, strict=True), 1):
            seen = wire.ask(observation=OBSERVE)
            if player == 2:
                for unit in seen.observation.observation.raw_data.units:
                    unit.owner = {1: 2, 2: 1}.get(unit.owner, unit.owner)  # as seen by player 1
            draw.told(seen)
            for _ in range(rng.randint(0, 4)):
                frame = _one_of(draw, ("action", "debug", "query"))
                wire.send_frame(frame)
                reply = wire.reply()
                assert "Internal error" not in str(reply.error)
                kinds[reply.WhichOneof("response") or "error"] += 1
        is_over = sc_pb.ended in {reply.status for reply in pair.step(rng.choice((1, 2, 8)))}
        whole = [
            [
                (u.tag, u.owner, u.unit_type, u.pos.x, u.pos.y, u.facing, u.health, u.shield)
                for u in reply.observation.observation.raw_data.units
            ]
            for reply in pair.ask(observation=sc_pb.RequestObservation(disable_fog=True))
        ]
        assert whole[0] == whole[1]
    assert min(kinds[kind] for kind in ("action", "debug", "query", "error")) > 20
    assert games > 1
    replays = [r.save_replay.data for r in pair.ask(save_replay=sc_pb.RequestSaveReplay())]
    assert replays[0] == replays[1]


def _one_of(draw: Draw, kinds: tuple[str, ...]) -> bytes:
    """The next randomly drawn request of one of the given kinds."""
    while True:
        frame = draw.frame()
        request = sc_pb.Request()
        with suppress(DecodeError):
            request.ParseFromString(frame)
        if request.WhichOneof("request") in kinds:
            return frame
