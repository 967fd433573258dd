"""Tests of MPQ archives, of the errors of wrong map files, and of `save_map`.

An error must name the wrong place in the file, and say which value was expected there.
"""

from __future__ import annotations

import bz2
import io
import json
import os
import re
import struct
import zlib
from collections.abc import Mapping

import mpyq
import numpy as np
import pytest
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin import mpq
from sc2standin.map_reader.fields import Fields, ScenarioError
from sc2standin.map_reader.real_map import read_scenario
from sc2standin.map_reader.scenario import Scenario
from sc2standin.mpq import LIST_FILE, MpqError, pack, unpack
from tests.peers.run_smac import MAPS
from tests.standin.sessions import ALONE, EMPTY_MAP, create_request
from tests.support.duels import local_map

LIMIT_BYTES = 1 << 20


def read_by_mpyq(archive: bytes) -> dict[str, bytes]:
    files = mpyq.MPQArchive(io.BytesIO(archive)).extract()
    return {name.decode(): content for name, content in files.items()}


@pytest.mark.parametrize(
    "files",
    [
        {"one.txt": b"1"},
        {"text": b"abc" * 50_000, "noise": os.urandom(50_000)},
        {"Folder\\Mixed Case.XML": b"<x/>", "replay.gamemetadata.json": b"{}"},
        {f"file{number}": bytes([number]) * (number + 1) for number in range(60)},
    ],
    ids=["one", "large", "names", "many"],
)
def test_packed_files_are_read(files):
    archive = pack(files)
    assert read_by_mpyq(archive) == files
    for name, content in files.items():
        assert unpack(archive, name, LIMIT_BYTES) == content
        assert unpack(archive, name.upper(), LIMIT_BYTES) == content
    assert unpack(archive, LIST_FILE, LIMIT_BYTES).decode().split() == " ".join(files).split()


def test_text_is_compressed():
    assert len(pack({"text": b"abc" * 50_000})) < 2_000


def in_sectors(
    files: Mapping[str, bytes], *, shift: int = 5, checksums: bool = True, bzip2: bool = False
) -> bytes:
    """An archive in sectors, as the real game's editor writes it; checksums are optional."""
    sector_bytes = 512 << shift
    archive = pack(files)
    hashes_at, _, n_hashes, n_blocks = struct.unpack_from("<IIII", archive, 16)
    hashes = archive[hashes_at : hashes_at + 16 * n_hashes]
    contents, blocks = bytearray(), []
    for content in (*files.values(), "\r\n".join(files).encode()):
        sectors = []
        for begin in range(0, len(content), sector_bytes):
            sector = content[begin : begin + sector_bytes]
            small = b"\x10" + bz2.compress(sector) if bzip2 else b"\x02" + zlib.compress(sector)
            sectors.append(min(sector, small, key=len))
        places = [4 * (len(sectors) + 1 + checksums)]
        for sector in sectors:
            places.append(places[-1] + len(sector))
        places += [places[-1]] * checksums
        stored = struct.pack(f"<{len(places)}I", *places) + b"".join(sectors)
        flags = 0x80000200 | 0x04000000 * checksums
        blocks.append((32 + len(contents), len(stored), len(content), flags))
        contents += stored
    table = mpq._encrypted(b"".join(struct.pack("<IIII", *b) for b in blocks), "(block table)")
    end = 32 + len(contents)
    place = (end, end + len(hashes), n_hashes, n_blocks)
    size = end + len(hashes) + len(table)
    header = struct.pack("<4sIIHHIIII", mpq.MAGIC, 32, size, 0, shift, *place)
    return header + contents + hashes + table


@pytest.mark.parametrize("checksums", [True, False])
@pytest.mark.parametrize("bzip2", [True, False])
def test_files_in_sectors_are_read(checksums, bzip2):
    files = {"text": b"abc" * 9_000, "noise": os.urandom(3_000), "one": b"1", "full": b"x" * 1024}
    archive = in_sectors(files, shift=1, checksums=checksums, bzip2=bzip2)
    # mpyq can read only "text": in other files it treats uncompressed sectors as compressed.
    assert mpyq.MPQArchive(io.BytesIO(archive)).read_file("text") == files["text"]
    for name, content in files.items():
        assert unpack(archive, name, LIMIT_BYTES) == content


def test_user_data_before_the_header_is_passed_over():
    files = {"text": b"abc" * 9_000}
    told = b"anything"
    before = struct.pack("<4sIII", mpq.USER_DATA, 512, 1024, len(told)) + told
    archive = before.ljust(1024, b"\0") + pack(files)
    assert read_by_mpyq(archive) == files
    assert unpack(archive, "text", LIMIT_BYTES) == files["text"]


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (b"", "text", "not an MPQ archive"),
        (b"garbage" * 100, "text", "not an MPQ archive"),
        (mpq.USER_DATA + bytes(100), "text", "not an MPQ archive"),
        (mpq.USER_DATA, "text", "cut off"),
        (pack({"text": b"abc"})[:20], "text", "an MPQ archive that is cut off"),
        (pack({"text": b"abc"})[:-1], "text", "a table is cut off"),
        (pack({"text": b"abc"}), "other", "the archive has no other"),
        (in_sectors({"text": b"x" * LIMIT_BYTES + b"x"}), "text", "has 1048577 bytes, more than"),
        (in_sectors({"text": bytes(300)}).replace(b"\x02x", b"\x12x"), "text", "neither zlib nor"),
        (in_sectors({"text": bytes(300)}).replace(b"\x02x", b"\x02y"), "text", "header check"),
    ],
)
def test_what_cannot_be_read_is_named(content, name, message):
    with pytest.raises(MpqError, match=message):
        unpack(content, name, LIMIT_BYTES)


DUEL = {"format": EMPTY_MAP["format"], "name": "3m_duel", "duel_of": "3m"}
UNIT = {"type": "Kerrigan", "owner": 1, "count": 1, "place": "side"}


def _read(content: dict[str, object]) -> Scenario:
    return read_scenario(json.dumps(content).encode())


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"format": "other/1"}, "map.format"),
        ({"size": [9, 9]}, "map.size"),
        ({"fog": 1}, "map.fog"),
        ({"playable_area": [[0, 0], [99, 99]]}, "map.playable_area"),
        ({"time_limit_loops": 0}, "map.time_limit_loops"),
        ({"units": [UNIT]}, "Kerrigan"),
        ({"rules": [{"kind": "bounty", "type": "Roach", "owner": 2}]}, "rules[0].score"),
        ({"rules": [{"kind": "dance"}]}, "dance"),
        ({"colour": "red"}, "colour"),
        ({"canned": 1}, "map.canned must be bool"),
        ({"canned": True, "fog": True}, "map.canned"),
        ({"canned": True, "stamp": True}, "map.canned"),
        ({"step_cost": {"burn_ms": -1}}, "map.step_cost.burn_ms must be 0 to 1000"),
        ({"step_cost": {"sleep_ms": 1000.5}}, "map.step_cost.sleep_ms must be 0 to 1000"),
        ({"step_cost": {"burn_ms": float("nan")}}, "map.step_cost.burn_ms"),
        ({"step_cost": {"burn_ms": True}}, "map.step_cost.burn_ms must be float"),
        ({"step_cost": {"sleep_ms": "5"}}, "map.step_cost.sleep_ms must be float"),
        ({"step_cost": {"nap_ms": 5}}, "map.step_cost has unknown keys: nap_ms"),
        ({"step_cost": 5}, "map.step_cost must be an object"),
        ({"step_cost": None}, "map.step_cost must be an object"),
    ],
)
def test_a_map(change, complaint):
    with pytest.raises(ScenarioError, match=re.escape(complaint)):
        _read(EMPTY_MAP | change)


GROUP = {"type": "Marine", "owner": 1, "count": 700, "place": "side"}
TARGETS = {"kind": "collect", "target": "MineralShard", "count": 1, "place": "random", "reach": 1}
TARGETS |= {"score": 1, "minerals": 0, "taken": "vanishes"}


@pytest.mark.parametrize(
    "change",
    [
        {"units": [GROUP, GROUP | {"count": 1}]},
        {"units": [GROUP], "rules": [TARGETS]},
        {
            "units": [GROUP],
            "rules": [{"kind": "waves", "units": [GROUP | {"count": 1}], "survivors": "stay"}],
        },
    ],
    ids=["groups", "targets", "waves"],
)
def test_a_map_of_too_many_units(change):
    _read(EMPTY_MAP | {"units": [GROUP]})
    with pytest.raises(ScenarioError, match="must place at most 700 units in all"):
        _read(EMPTY_MAP | change)


def test_a_map_of_too_many_bytes(offline):
    large = json.dumps(EMPTY_MAP | {"rules": [{"kind": "income", "score": 1}] * 50_000}).encode()
    reply = offline.ask(create_game=create_request(large))
    assert "over 1 MiB" in reply.create_game.error_details


OF_SMAC = json.loads((MAPS / "3m.SC2Map").read_text())


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (OF_SMAC | {"ground": ["22"]}, "32 rows of 32 characters"),
        (OF_SMAC | {"ground": ["#" * 32] * 32}, "no place for units"),
        (OF_SMAC | {"ground": ["?" * 32] * 32}, "must be made of"),
        (OF_SMAC | {"rules": [{"kind": "battle", "attack": "everyone"}]}, "must be one of units"),
        (OF_SMAC | {"rules": [{"kind": "battle"}]}, "attack is missing"),
        (OF_SMAC | {"rules": [{"kind": "battle", "attack": [[1, 2, 3]]}]}, "pairs"),
        (DUEL | {"duel_of": "4m"}, r"map\.duel_of must be one of .*3m.*, not '4m'"),
        (DUEL | {"duel_of": "../MarineDuel"}, r"map\.duel_of must be one of"),
        (DUEL | {"duel_of": 3}, r"map\.duel_of must be str, not 3"),
        (DUEL | {"size": [32, 32]}, "map has unknown keys: size"),
        (DUEL | {"name": None}, r"map\.name must be str"),
    ],
)
def test_a_map_of_smacs_and_a_duel_of_another_map(content, complaint):
    with pytest.raises(ScenarioError, match=complaint):
        _read(content)


def test_a_map_that_is_like_another_one_has_its_own_keys_first():
    like = {"format": EMPTY_MAP["format"], "name": "mine", "like": "8m", "fog": True}
    mine, original = _read(like), read_scenario((MAPS / "8m.SC2Map").read_bytes())
    assert (mine.name, mine.fog, mine.units) == ("mine", True, original.units)
    assert np.array_equal(mine.ground.walkable, original.ground.walkable)
    with pytest.raises(ScenarioError, match=r"map\.like must be one of .*3m.*, not '4m'"):
        _read(like | {"like": "4m"})


@pytest.mark.parametrize("number", [10**400, -(10**400), float("nan"), "7", True])
def test_a_number_out_of_range(number):
    with pytest.raises(ScenarioError, match=r"map\.side must be"):
        Fields("map", {"side": number}).number("side", 5.0)


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
