"""Tests parts of a cluster without Ray: the nodes' batches, and whether the pools agree."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from gymnasium import spaces

import sc2pool
from sc2pool.errors import ConfigError
from sc2pool.pool.batch import Batch
from sc2pool.pool.queues.layout import space_layout
from sc2pool.ray import equal_nodes
from sc2pool.ray.batches import together, truncation
from sc2pool.ray.equal_nodes import NodeGame, check_agreement, commit_of, installed_commit

# ---- batches of the nodes ------------------------------------------------------------------------


BOX = spaces.Box(-1, 1, (2,), np.float32)
PAIR = spaces.Dict({"a": BOX, "b": spaces.Discrete(5)})
TEXT = spaces.Text(4)


def batch(observations: Any, *rewards: float) -> Batch:
    n = len(rewards)
    rows = np.array(rewards)
    for array in (rows, *(observations.values() if isinstance(observations, dict) else ())):
        array.flags.writeable = False  # read-only, like Ray's arrays
    return Batch(
        np.arange(n),
        observations,
        rows,
        np.zeros(n, np.bool_),
        np.zeros(n, np.bool_),
        [{"row": reward} for reward in rewards],
        [None] * n,
        [{"began": reward} for reward in rewards],
    )


def values(first: int, n: int) -> dict[str, Any]:
    a = np.arange(first, first + 2 * n, dtype=np.float32).reshape(n, 2)
    return {"a": a, "b": np.arange(first, first + n)}


def test_rows_are_in_the_order_of_the_nodes() -> None:
    one = together(space_layout(PAIR, 0), [batch(values(0, 2), 1, 2), batch(values(7, 1), 3)])
    assert one.envs.tolist() == [0, 1, 2]
    assert one.rewards.tolist() == [1, 2, 3]
    assert one.observations["a"].tolist() == [[0, 1], [2, 3], [7, 8]]
    assert one.observations["b"].tolist() == [0, 1, 7]
    assert [info["row"] for info in one.infos] == [1, 2, 3]
    one.observations["a"][:] = one.rewards[:] = 0  # the batch shares no memory with Ray's arrays


def test_observations_without_fixed_layout_stay_a_tuple() -> None:
    layout = space_layout(TEXT, 0)
    assert together(layout, [batch(("a", "b"), 1, 2), batch(("c",), 3)]).observations == (
        "a",
        "b",
        "c",
    )


@pytest.mark.parametrize(
    ("space", "last", "first"),
    [
        (BOX, np.ones((2, 2), np.float32), np.zeros((2, 2), np.float32)),
        (PAIR, values(5, 2), values(0, 2)),
        (TEXT, ("x", "y"), ("a", "b")),
    ],
    ids=["Box", "Dict", "Text"],
)
def test_a_dead_node_is_a_truncation_in_each_row(space: Any, last: Any, first: Any) -> None:
    made = truncation(
        space_layout(space, 0), batch(last, 1, 2), batch(first, 3, 4), {"kind": "node-lost"}
    )
    assert made.truncated.all()
    assert not made.terminated.any()
    assert made.rewards.tolist() == [0, 0]
    assert made.observations is first
    assert made.reset_infos == [{"began": 3}, {"began": 4}]
    for row, info in enumerate(made.infos):
        assert info == {"sc2pool.synthetic": True, "sc2pool.fault": {"kind": "node-lost"}}
        final = made.final_observations[row]
        if isinstance(last, dict):
            assert final["a"].tolist() == last["a"][row].tolist()
            assert final["b"] == last["b"][row]
        else:
            assert np.array_equal(final, last[row])


# ---- the pools' games, tasks and packages --------------------------------------------------------


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
    """A repository with one commit and a tag; the tag must not be compared."""
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
