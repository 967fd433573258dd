"""What is kept of a fault, and for how long."""

from __future__ import annotations

import json
import os
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sc2pool.errors import Fault, FaultKind, Phase
from sc2pool.pool.ipc.messages import Evidence
from sc2pool.pool.report import fault_reports
from sc2pool.pool.report.fault_reports import FaultedInstance
from sc2pool.tasks.player import Episode, GameFacts
from tests.support.systems import is_private

FAULT = Fault(FaultKind.BAD_REPLY, Phase.STEPPING, "the reply to step is empty")
EVERYTHING = Evidence("log line\n", "Traceback: …\n", b"replay")


INSTANCE = FaultedInstance(
    seat="env 3",
    instance=12,
    state="stepping",
    episode=Episode(5, 77, {"level": 1}),
    reset_kind="create",
    games=[GameFacts(100, 100, 10_000, "standin-1", 75689)],
    last_actions=[np.int64(3), np.array([1.5]), {"a": 1}],
)


def test_a_report_has_all_that_is_known(tmp_path):
    path = fault_reports.write(tmp_path / "faults", FAULT, INSTANCE, EVERYTHING)
    folder = tmp_path / "faults" / os.path.basename(path)  # noqa: PTH119
    assert str(folder) == path
    assert "-env3-instance12-bad-reply-" in folder.name
    assert is_private(folder)
    about = json.loads((folder / "fault.json").read_text())
    assert about["fault"] == {
        "kind": "bad-reply",
        "phase": "stepping",
        "detail": "the reply to step is empty",
        "refused": False,
        "map_note": "",
    }
    assert about["episode"] == {
        "number": 5,
        "seed": 77,
        "options": {"level": 1},
        "both_keywords": False,
    }
    assert (about["seat"], about["instance"], about["state"]) == ("env 3", 12, "stepping")
    assert about["reset_kind"] == "create"
    assert about["games"][0]["version"] == "standin-1"
    assert about["last_actions"] == [3, [1.5], {"a": 1}]
    assert (folder / "game.log").read_text() == "log line\n"
    assert (folder / "traceback.txt").read_text() == "Traceback: …\n"
    assert (folder / "last.SC2Replay").read_bytes() == b"replay"


def test_unknown_facts_are_left_out(tmp_path):
    instance = replace(INSTANCE, episode=None, games=[])
    path = fault_reports.write(tmp_path, FAULT, instance, Evidence())
    assert os.listdir(path) == ["fault.json"]  # noqa: PTH208


def test_two_in_one_second_are_two(tmp_path):
    """Two pools number their envs and instances alike."""
    paths = {fault_reports.write(tmp_path, FAULT, INSTANCE, EVERYTHING) for _ in range(5)}
    assert len(paths) == 5
    assert None not in paths


def test_the_folder_is_bounded_and_the_newest_stay(tmp_path):
    (tmp_path / "the user's own").mkdir()
    for number in range(fault_reports.KEPT + 5):
        old = tmp_path / f"20000101-000000-env{number:03}"
        old.mkdir()
        (old / "fault.json").touch()
    path = fault_reports.write(tmp_path, FAULT, INSTANCE, EVERYTHING)
    left = sorted(folder.name for folder in tmp_path.iterdir())
    assert len(left) == fault_reports.KEPT + 1
    assert left[0] == "20000101-000000-env006"
    assert os.path.basename(path) in left  # noqa: PTH119
    assert "the user's own" in left


def test_where_nothing_can_be_written_there_is_none(tmp_path, caplog):
    (tmp_path / "file").touch()
    assert fault_reports.write(tmp_path / "file", FAULT, INSTANCE, EVERYTHING) is None
    assert "no fault report" in caplog.text


class Unshowable:
    def __repr__(self) -> str:
        raise RuntimeError("as if")


KNOTTED: dict[str, object] = {}
KNOTTED["itself"] = KNOTTED
LOCK = threading.Lock()
ODD_OPTIONS = {
    "a key that is no text": ({(1, 2): 3}, {"(1, 2)": 3}),
    "a number as key": ({1: 2, "a": 3}, {"1": 2, "a": 3}),
    "no repr": ({"a": Unshowable(), "b": 1}, {"a": "<Unshowable: RuntimeError when", "b": 1}),
    "a key without repr": ({"a": {Unshowable(): 1}, "b": 1}, {"a": "<dict: RuntimeE", "b": 1}),
    "what cannot be copied": ({"a": LOCK, "b": 1}, {"a": "<unlocked _thread.lock", "b": 1}),
    "half of a surrogate pair": ({"a": "\udc80"}, {"a": "\udc80"}),
    "not a number": ({"a": float("nan"), "b": -float("inf")}, {"a": "nan", "b": "-inf"}),
    "arrays": ({"a": np.arange(3), "b": np.zeros(10**6)}, {"a": [0, 1, 2], "b": "array([0., "}),
}


def same(shown: object, expected: object) -> bool:
    """Texts are compared at their beginning."""
    if isinstance(expected, dict):
        return shown.keys() == expected.keys() and all(same(shown[k], expected[k]) for k in shown)
    return shown.startswith(expected) if isinstance(expected, str) else shown == expected


@pytest.mark.parametrize("kind", ODD_OPTIONS)
def test_options_that_json_cannot_hold_are_shown(tmp_path, kind):
    options, expected = ODD_OPTIONS[kind]
    instance = replace(INSTANCE, episode=Episode(5, 77, options), last_actions=[options])
    path = fault_reports.write(tmp_path, FAULT, instance, EVERYTHING)
    about = json.loads((tmp_path / path / "fault.json").read_text())
    assert same(about["episode"]["options"], expected)
    assert same(about["last_actions"][0], expected)


def test_options_that_hold_themselves_are_shown_to_some_depth(tmp_path):
    instance = replace(INSTANCE, episode=Episode(5, 77, KNOTTED))
    path = fault_reports.write(tmp_path, FAULT, instance, EVERYTHING)
    assert "{'itself': {...}}" in (tmp_path / path / "fault.json").read_text()


def test_text_that_is_no_text_is_escaped(tmp_path):
    evidence = Evidence("log \udcff\n", "Traceback: \udc80\n")
    path = fault_reports.write(tmp_path, FAULT, INSTANCE, evidence)
    assert (tmp_path / path / "game.log").read_text() == "log \\udcff\n"
    assert (tmp_path / path / "traceback.txt").read_text() == "Traceback: \\udc80\n"


def test_a_file_that_does_not_fit_is_left_out(tmp_path, caplog, limited):
    evidence = Evidence("log line\n", "Traceback: …\n", b"replay" * 10_000)
    with limited("FSIZE", 10_000):
        path = fault_reports.write(tmp_path, FAULT, INSTANCE, evidence)
    assert {file.name for file in Path(path).iterdir()} == {
        "fault.json",
        "game.log",
        "traceback.txt",
    }
    assert "has no last.SC2Replay: [Errno 27]" in caplog.text


@pytest.mark.parametrize("what", ["FSIZE", "NOFILE"])
def test_if_nothing_can_be_written_nothing_stays(tmp_path, caplog, limited, what):
    with limited(what, 0):
        assert fault_reports.write(tmp_path, FAULT, INSTANCE, EVERYTHING) is None
    assert "no fault report" in caplog.text
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_no_folder_can_have(caplog):
    assert fault_reports.write(Path("/tmp/\0"), FAULT, INSTANCE, EVERYTHING) is None
    assert "no fault report" in caplog.text
