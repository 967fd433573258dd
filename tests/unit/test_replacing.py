"""Tests that a file is replaced as a whole, or not at all."""

from __future__ import annotations

import pytest

from sc2pool.platform import WINDOWS
from sc2pool.replacing import new_file, new_folder, remove_unfinished, replacing
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


def test_the_name_of_an_unfinished_file_differs_each_time(tmp_path):
    names = set()
    for _ in range(2):
        with replacing(tmp_path / "file") as unfinished:
            names.add(unfinished.name)
    assert len(names) == 2


@pytest.mark.skipif(WINDOWS, reason="a link needs a right of its own there")
def test_an_unfinished_file_follows_no_link(tmp_path, monkeypatch):
    monkeypatch.setattr("os.urandom", bytes)
    path, victim = tmp_path / "file", tmp_path / "victim"
    victim.write_text("as it was")
    (tmp_path / f"unfinished-{bytes(8).hex()}-file").symlink_to(victim)
    with pytest.raises(FileExistsError), replacing(path):
        pass
    assert victim.read_text() == "as it was"


def test_what_killed_programs_have_left_is_removed(tmp_path):
    (tmp_path / "kept").touch()
    (tmp_path / "unfinished-notes").touch()
    new_file(tmp_path / "file")
    (new_folder(tmp_path) / "file").touch()
    remove_unfinished(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"kept", "unfinished-notes"}


def test_a_new_folder_has_a_name_of_its_own_and_is_for_its_user_alone(tmp_path):
    folders = {new_folder(tmp_path, "prefix-") for _ in range(2)}
    assert set(tmp_path.glob("prefix-*")) == folders
    assert all(map(is_private, folders))
