"""save_map: maps in the folder for temporary files."""

from __future__ import annotations

import pytest
from s2clientprotocol import sc2api_pb2 as sc_pb

from tests.standin.sessions import ALONE
from tests.support.duels import local_map


def _save(wire, path: str, content: bytes) -> sc_pb.Response:
    return wire.ask(save_map=sc_pb.RequestSaveMap(map_path=path, map_data=content))


def _create(wire, path: str) -> sc_pb.Response:
    played = sc_pb.LocalMap(map_path=path)
    return wire.ask(create_game=sc_pb.RequestCreateGame(local_map=played, player_setup=ALONE))


@pytest.fixture
def saving(offline, tmp_path):
    """A session with a folder for temporary files."""
    offline.state.temp_dir = tmp_path
    return offline


def test_a_saved_map_is_found_in_any_status(game, tmp_path):
    wire = game.connect()
    for number, path in enumerate(("Melee/A.SC2Map", "mini_games/MoveToBeacon.SC2Map", "b")):
        name = f"Saved{number}"
        saved = _save(wire, path, local_map(name=name).map_data)
        assert saved.HasField("save_map")
        assert not saved.save_map.HasField("error")
        assert (tmp_path / path).is_file()
        assert _create(wire, path).status == sc_pb.init_game
        join = sc_pb.RequestJoinGame(race=1, options=sc_pb.InterfaceOptions(raw=True))
        assert wire.ask(join_game=join).status == sc_pb.in_game
        info = wire.ask(game_info=sc_pb.RequestGameInfo()).game_info
        assert (info.map_name, info.local_map_path) == (name, path)


@pytest.mark.parametrize("path", ["../out", "/etc/out", "", ".", "a/../../out", "x" * 261, "a\0b"])
def test_no_path_leads_out_of_the_folder(saving, tmp_path, path):
    before = sorted(tmp_path.rglob("*"))
    reply = _save(saving, path, b"{}")
    assert reply.error
    assert reply.status == sc_pb.launched
    assert sorted(tmp_path.rglob("*")) == before
    assert not (tmp_path.parent / "out").exists()


def test_no_symbolic_link_leads_out_of_the_folder(saving, tmp_path, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    (tmp_path / "link").symlink_to(outside)
    assert _save(saving, "link/out", b"{}").error
    assert not list(outside.iterdir())


def test_a_map_without_content_is_an_error(saving):
    reply = _save(saving, "empty", b"")
    assert reply.save_map.error == sc_pb.ResponseSaveMap.InvalidMapData
