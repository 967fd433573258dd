"""Which commit a package says that it was made from."""

from __future__ import annotations

import json
import subprocess
from importlib import metadata
from pathlib import Path
from unittest.mock import Mock

import pytest

from sc2pool.ray import commit
from sc2pool.ray.commit import commit_of, installed_commit

GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@example.org")


def git(folder: Path, *arguments: str) -> str:
    ran = subprocess.run([*GIT, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return ran.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository of one commit, with a tag, which is no part of what is compared."""
    (tmp_path / "module.py").write_text("A = 1\n")
    for arguments in (("init",), ("add", "."), ("commit", "-m", "a"), ("tag", "v1", "-am", "1")):
        git(tmp_path, *arguments)
    return tmp_path


def test_a_checkout_has_its_commit(checkout):
    assert commit_of(checkout) == git(checkout, "rev-parse", "--short=12", "HEAD")


def test_edits_of_tracked_files_are_told(checkout):
    (checkout / "new.txt").touch()
    assert not str(commit_of(checkout)).endswith("-dirty")
    (checkout / "module.py").write_text("A = 2\n")
    assert str(commit_of(checkout)).endswith("-dirty")


def test_a_package_within_another_projects_checkout_has_none(checkout):
    installed = checkout / "site-packages"
    installed.mkdir()
    assert commit_of(installed) is None


def test_without_git_there_is_none(checkout, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert commit_of(checkout) is None


@pytest.mark.parametrize(
    ("kept", "told"),
    [
        (None, None),
        ({"url": "file:///a", "dir_info": {"editable": True}}, None),
        (
            {"url": "https://a", "vcs_info": {"vcs": "git", "commit_id": "0123456789abcdef"}},
            "0123456789ab",
        ),
    ],
)
def test_commit_of_an_installation_from_a_repository(kept, told, monkeypatch):
    installed = Mock()
    installed.read_text.return_value = None if kept is None else json.dumps(kept)
    monkeypatch.setattr(commit, "commit_of", lambda _: None)
    monkeypatch.setattr(metadata, "distribution", lambda _: installed)
    installed_commit.cache_clear()
    try:
        assert installed_commit() == told
        installed.read_text.assert_called_once_with("direct_url.json")
    finally:
        installed_commit.cache_clear()
