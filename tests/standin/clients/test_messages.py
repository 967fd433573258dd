"""Tests random requests on all maps, and the fields of replies recorded from real games.

The recordings have the first moments of melee games, with python-sc2's interface options.
`scripts/fuzz_standin.py` sends more random requests.
"""

from __future__ import annotations

import lzma
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message
from s2clientprotocol import sc2api_pb2 as sc_pb

import sc2standin
from tests.standin.sessions import against
from tests.support.fuzz.draw import is_harmless
from tests.support.fuzz.play import FuzzFailure, play, problem_of

REQUESTS = 6000
"""Enough random requests to play nearly every map of the installation."""
MAPS = {file.stem for file in Path(sc2standin.__path__[0], "maps").rglob("*.SC2Map")}
MAPS |= {"Simple96", "Flat64"}  # the installation makes these maps from the melee's map


def test_every_request_is_answered_in_time_and_the_same_in_two_games(tmp_path):
    report = play(REQUESTS, seed=1, temporary=tmp_path)
    assert set(report.games) <= MAPS
    assert len(report.games) > 0.8 * len(MAPS)
    assert sum(report.replies.values()) == REQUESTS
    assert min(report.replies[kind] for kind in ("action", "step", "observation", "debug")) > 20
    assert REQUESTS / 20 < report.replies["error"] < REQUESTS / 4


@pytest.mark.parametrize(
    ("request_", "reply", "problem"),
    [
        ({"id": 3}, {"error": ["Internal error of the stand-in"], "id": 3}, "exception"),
        ({"id": 3}, {"id": 3}, "either an error or an answer"),
        ({"id": 3}, {"error": ["no"]}, "another id"),
        ({"ping": sc_pb.RequestPing()}, {"step": sc_pb.ResponseStep()}, "another kind"),
        ({"ping": sc_pb.RequestPing()}, {"ping": sc_pb.ResponsePing()}, ""),
    ],
)
def test_problems_of_a_reply(request_, reply, problem):
    frame = sc_pb.Request(**request_).SerializeToString()
    found = problem_of(frame, sc_pb.Response(**reply))
    assert problem in found
    assert bool(problem) == bool(found)


def test_a_game_that_dies_is_a_failure_with_its_seed(tmp_path, monkeypatch):
    quit_frame = sc_pb.Request(quit=sc_pb.RequestQuit()).SerializeToString()
    monkeypatch.setattr("tests.support.fuzz.play.Draw.frame", lambda _draw: quit_frame)
    with pytest.raises(FuzzFailure, match=r"seed 5, request 0: quit"):
        play(1, seed=5, temporary=tmp_path)
    assert not is_harmless(quit_frame)


PYTHON_SC2 = sc_pb.InterfaceOptions(
    raw=True,
    score=True,
    show_cloaked=True,
    show_burrowed_shadows=True,
    show_placeholders=True,
    raw_affects_selection=False,
    raw_crop_to_playable_area=False,
)
ONLY_RECORDED = (
    "observation.raw_data.units.mineral_contents",
    "observation.raw_data.units.vespene_contents",
    "observation.raw_data.units.rally_targets",
    "observation.raw_data.units.orders",
)
"""Fields about mining and orders; the recordings have them because workers mine from the start."""
ONLY_OURS = ("observation.abilities",)
"""The stand-in lists the abilities of all units, and the real game only those of selected units."""


def paths(message: Message, before: str = "") -> set[str]:
    """The dotted paths of all fields that are set."""
    found: set[str] = set()
    for field, value in message.ListFields():
        found.add(before + field.name)
        if field.message_type is not None:
            for part in value if field.is_repeated else [value]:
                found |= paths(part, f"{before}{field.name}.")
    return found


def recorded(folder: Path, kind: str, message: Any) -> list[set[str]]:
    """The fields that are set in each recorded message of a kind."""
    files = sorted(folder.glob(f"*.{kind}.pb.xz"))
    if not files:
        pytest.skip(f"no recorded messages in {folder}")
    return [paths(message.FromString(lzma.decompress(file.read_bytes()))) for file in files]


@pytest.fixture
def game(offline):
    """A game against a computer, begun with the requests that python-sc2 sends."""
    offline.start("DefeatRoaches", interface=PYTHON_SC2, player_setup=against(sc_pb.Easy))
    return offline


def test_a_maps_description_has_the_recorded_fields(recorded_dir, game):
    ours = paths(game.game_info())
    for theirs in recorded(recorded_dir, "game_info", sc_pb.ResponseGameInfo):
        assert ours == theirs


def test_a_first_observation_has_the_recorded_fields(recorded_dir, game):
    ours = paths(game.observed())
    for theirs in recorded(recorded_dir, "observation", sc_pb.ResponseObservation):
        assert [path for path in theirs - ours if not path.startswith(ONLY_RECORDED)] == []
        assert [path for path in ours - theirs if not path.startswith(ONLY_OURS)] == []
