"""Random requests on all maps: a few thousand of `scripts/fuzz_standin.py`."""

from __future__ import annotations

from pathlib import Path

import pytest
from s2clientprotocol import sc2api_pb2 as sc_pb

import sc2standin
from tests.support.fuzz.draw import is_harmless
from tests.support.fuzz.play import FuzzFailure, play, problem_of

REQUESTS = 6000
"""Enough for nearly every map of the installation."""
MAPS = {file.stem for file in Path(sc2standin.__path__[0], "maps").rglob("*.SC2Map")}
MAPS |= {"Simple96", "Flat64"}  # which an installation makes of the melee's


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
