"""What the builders put into the requests."""

from __future__ import annotations

from pathlib import Path

from s2clientprotocol import common_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.config import Computer, GameSetup
from sc2pool.protocol import requests


def test_create_game():
    setup = GameSetup(
        "x", opponents=(Computer(common_pb2.Zerg, sc_pb.Hard),), disable_fog=True, realtime=True
    )
    path = Path("/maps/x.SC2Map")
    create = requests.create_game(setup, path, 0).create_game
    assert create.local_map.map_path == str(path)
    assert create.random_seed == 0
    assert create.HasField("random_seed")
    assert create.disable_fog
    assert create.realtime
    assert [player.type for player in create.player_setup] == [sc_pb.Participant, sc_pb.Computer]
    assert create.player_setup[1].race == common_pb2.Zerg
    assert create.player_setup[1].difficulty == sc_pb.Hard
    assert create.player_setup[1].ai_build == sc_pb.RandomBuild


def test_create_game_without_seed():
    create = requests.create_game(GameSetup("x"), Path("x"), None).create_game
    assert not create.HasField("random_seed")
    assert len(create.player_setup) == 1


def test_join_game_asks_for_raw_and_score():
    setup = GameSetup("x", race=common_pb2.Protoss)
    join = requests.join_game(setup).join_game
    assert join.race == common_pb2.Protoss
    options = join.options
    assert options.raw
    assert options.score
    assert options.show_cloaked
    assert options.show_burrowed_shadows
    assert options.show_placeholders
    assert not options.raw_affects_selection
    assert not options.raw_crop_to_playable_area
    assert not options.HasField("feature_layer")
    assert not options.HasField("render")


def test_a_match():
    setup = GameSetup("x", participants=2)
    create = requests.create_game(setup, Path("x"), None).create_game
    assert [player.type for player in create.player_setup] == [sc_pb.Participant] * 2
    ports = requests.MatchPorts(10, 11, 12, 13)
    join = requests.join_game(setup, ports, "guest").join_game
    assert join.player_name == "guest"
    assert (join.server_ports.game_port, join.server_ports.base_port) == (10, 11)
    assert [(pair.game_port, pair.base_port) for pair in join.client_ports] == [(12, 13)]
    alone = requests.join_game(setup).join_game
    assert not alone.HasField("server_ports") and not alone.client_ports


def test_one_field_each():
    built = {
        "ping": requests.ping(),
        "save_map": requests.save_map("x", b"y"),
        "restart_game": requests.restart_game(),
        "leave_game": requests.leave_game(),
        "observation": requests.observation(),
        "step": requests.step(8),
        "action": requests.action([sc_pb.Action()]),
        "game_info": requests.game_info(),
        "data": requests.data(),
        "save_replay": requests.save_replay(),
    }
    for kind, request in built.items():
        assert request.WhichOneof("request") == kind
        assert not request.HasField("id")
    assert built["step"].step.count == 8
    assert len(built["action"].action.actions) == 1
    assert not built["observation"].observation.HasField("game_loop")
    assert requests.observation(game_loop=9, disable_fog=True).observation.game_loop == 9
