"""What is kept of a fault, and for how long."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace

import numpy as np

from sc2pool.errors import Fault, FaultKind, Phase
from sc2pool.pool.ipc.messages import Evidence
from sc2pool.pool.report import fault_reports
from sc2pool.pool.report.fault_reports import FaultedInstance
from sc2pool.tasks.player import Episode, GameFacts

FAULT = Fault(FaultKind.BAD_REPLY, Phase.STEPPING, "the reply to step is empty")
EVERYTHING = Evidence("log line\n", "Traceback: …\n", b"replay")


INSTANCE = FaultedInstance(
    seat="env 3",
    instance=12,
    state="stepping",
    episode=Episode(5, 77, {"level": 1}),
    reset_kind="create",
    game=GameFacts(100, 10_000, "standin-1", 75689),
    last_actions=[np.int64(3), np.array([1.5]), {"a": 1}],
)


def test_a_report_has_all_that_is_known(tmp_path):
    path = fault_reports.write(tmp_path / "faults", FAULT, INSTANCE, EVERYTHING)
    folder = tmp_path / "faults" / os.path.basename(path)  # noqa: PTH119
    assert str(folder) == path
    assert "-env3-instance12-bad-reply-" in folder.name
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    about = json.loads((folder / "fault.json").read_text())
    assert about["fault"] == {
        "kind": "bad-reply",
        "phase": "stepping",
        "detail": "the reply to step is empty",
    }
    assert about["episode"] == {
        "number": 5,
        "seed": 77,
        "options": {"level": 1},
        "both_keywords": False,
    }
    assert (about["seat"], about["instance"], about["state"]) == ("env 3", 12, "stepping")
    assert about["reset_kind"] == "create"
    assert about["game"]["version"] == "standin-1"
    assert about["last_actions"] == [3, [1.5], "{'a': 1}"]
    assert (folder / "game.log").read_text() == "log line\n"
    assert (folder / "traceback.txt").read_text() == "Traceback: …\n"
    assert (folder / "last.SC2Replay").read_bytes() == b"replay"


def test_what_is_not_known_is_left_out(tmp_path):
    instance = replace(INSTANCE, episode=None, game=None)
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


def test_half_a_report_is_deleted(tmp_path, monkeypatch):
    """As if the disk were full by the time of the second file."""
    monkeypatch.setattr(fault_reports, "prune", lambda _: (_ for _ in ()).throw(OSError("full")))
    assert fault_reports.write(tmp_path, FAULT, INSTANCE, EVERYTHING) is None
    assert list(tmp_path.iterdir()) == []
