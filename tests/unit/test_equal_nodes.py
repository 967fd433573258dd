"""Pools of a cluster must agree; the error names the difference and the commits."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from unittest.mock import Mock

import pytest
from gymnasium import spaces

import sc2pool
from sc2pool.errors import ConfigError
from sc2pool.ray import equal_nodes
from sc2pool.ray.equal_nodes import NodeGame, check_agreement, commit_of, installed_commit

PLAYED = NodeGame(
    sc2pool.__version__,
    "1a2b3c",
    "5.0.14",
    93333,
    "MoveToBeacon",
    spaces.Box(0, 1, (2,)),
    spaces.Discrete(8),
)


@pytest.fixture(autouse=True)
def this_commit(monkeypatch):
    monkeypatch.setattr(equal_nodes, "installed_commit", lambda: "1a2b3c")


def test_equal_pools_agree_also_if_one_tells_no_commit():
    check_agreement([("node a", PLAYED)])
    check_agreement([("node a", PLAYED), ("node b", replace(PLAYED))])
    check_agreement([("node a", PLAYED), ("node b", replace(PLAYED, commit=None))])


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"sc2pool_version": "9"}, r"versions of sc2pool \(this process: .*; node b: 9\)"),
        (
            {"commit": "4d5e6f"},
            r"different versions of sc2pool \(this process: commit 1a2b3c; .*b: commit 4d5e6f\)",
        ),
        (
            {"game_version": "4.10"},
            r"node a: 5\.0\.14 \(build 93333\); node b: 4\.10 \(build 93333",
        ),
        ({"base_build": 1}, r"different versions of the game \(.*; node b: 5\.0\.14 \(build 1\)\)"),
        ({"task": "DefeatRoaches"}, "node b: task is DefeatRoaches, but node a has MoveToBeacon"),
        ({"action_space": spaces.Discrete(4)}, r"node b: action_space is Discrete\(4\), but"),
    ],
)
def test_differences_are_named_with_their_nodes(other, words):
    with pytest.raises(ConfigError, match=words):
        check_agreement([("node a", PLAYED), ("node b", replace(PLAYED, **other))])


def test_nodes_may_have_the_same_name():
    with pytest.raises(ConfigError, match=r"node a: 5\.0\.14 .*; node a: 4\.10"):
        check_agreement([("node a", PLAYED), ("node a", replace(PLAYED, game_version="4.10"))])


def test_one_pool_must_have_the_package_of_this_process():
    with pytest.raises(ConfigError, match="different versions of sc2pool"):
        check_agreement([("node a", replace(PLAYED, sc2pool_version="9"))])


GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@example.org")


def git(folder: Path, *arguments: str) -> str:
    ran = subprocess.run([*GIT, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return ran.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with one commit and a tag; the tag is not compared."""
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
    monkeypatch.setattr(equal_nodes, "commit_of", lambda _: None)
    monkeypatch.setattr(metadata, "distribution", lambda _: installed)
    installed_commit.cache_clear()
    try:
        assert installed_commit() == told
        installed.read_text.assert_called_once_with("direct_url.json")
    finally:
        installed_commit.cache_clear()
