"""The live files of a run: requested, kept fresh, never half written."""

from __future__ import annotations

import json
import math
import os
from contextlib import suppress

import pytest

from sc2pool.pool.report import live_files


def test_files_are_wanted_only_while_they_are_requested(tmp_path):
    assert not live_files.is_requested(tmp_path)
    live_files.prepare(tmp_path)
    assert not live_files.is_requested(tmp_path)
    live_files.request(tmp_path)
    assert live_files.is_requested(tmp_path)
    before_s = (tmp_path / "requested").stat().st_mtime - live_files.FRESH_FOR_S - 0.1
    os.utime(tmp_path / "requested", (before_s, before_s))
    assert not live_files.is_requested(tmp_path)


def test_a_request_makes_no_file(tmp_path):
    """The trainer may be deleting the folder just now."""
    with pytest.raises(FileNotFoundError):
        live_files.request(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_written_data_are_read(tmp_path):
    live_files.write(tmp_path / "pool.json", {"steps": 1, "state": "playing"})
    seen = live_files.read(tmp_path / "pool.json")
    data, age_s = seen
    assert data == {"steps": 1, "state": "playing"}
    assert 0 <= age_s < 10
    assert [path.name for path in tmp_path.iterdir()] == ["pool.json"]


@pytest.mark.parametrize("data", [{"return": math.nan}, {"return": math.inf}, {(1, 2): 3}])
def test_values_that_json_cannot_hold_leave_the_file_as_it_was(tmp_path, data):
    live_files.write(tmp_path / "pool.json", {"steps": 1})
    live_files.write(tmp_path / "pool.json", data)
    seen = live_files.read(tmp_path / "pool.json")
    assert seen[0] == {"steps": 1}


def test_a_folder_that_is_gone_is_no_fault(tmp_path):
    live_files.prepare(tmp_path / "gone")
    live_files.write(tmp_path / "gone" / "pool.json", {"steps": 1})
    assert live_files.read(tmp_path / "gone" / "pool.json") is None
    assert list(tmp_path.iterdir()) == []


def test_garbage_is_nothing(tmp_path):
    for garbage in (b"", b"{", b"\xff\xfe", b"[1, 2]"):
        (tmp_path / "pool.json").write_bytes(garbage)
        assert live_files.read(tmp_path / "pool.json") is None


def test_no_reader_sees_half_of_it(tmp_path, meanwhile):
    file = tmp_path / "pool.json"
    whole = [{"all": [number] * 5000} for number in range(2)]
    live_files.write(file, whole[0])
    seen = 0
    with meanwhile(lambda turn: live_files.write(file, whole[turn % 2])):
        while seen < 300:
            with suppress(PermissionError):  # Windows opens no file that is just being replaced
                assert json.loads(file.read_text()) in whole
                seen += 1
