"""A file is replaced in one piece, or not at all."""

from __future__ import annotations

import pytest

from sc2pool.replacing import new_folder, replacing
from tests.support.systems import is_private


def test_a_file_is_there_when_it_is_complete(tmp_path):
    path = tmp_path / "file"
    with replacing(path) as unfinished:
        unfinished.write_text("half")
        assert not path.exists()
        unfinished.write_text("whole")
    assert path.read_text() == "whole"
    assert list(tmp_path.iterdir()) == [path]


def test_what_fails_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "file"
    path.write_text("before")
    with pytest.raises(OSError, match="no space"), replacing(path) as unfinished:
        unfinished.write_text("half")
        raise OSError("no space left on device")
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_folder_has_a_name_of_its_own_and_is_for_its_user_alone(tmp_path):
    folders = {new_folder(tmp_path, "prefix-") for _ in range(2)}
    assert set(tmp_path.glob("prefix-*")) == folders
    assert all(map(is_private, folders))
