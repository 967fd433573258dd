"""Whom a run with self-play meets."""

from __future__ import annotations

from typing import Any

import pytest

from sc2pool.cli.training.self_play import opponents
from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon
from sc2pool.tasks.player import Episode
from tests.unit.cli.training.conftest import options


class Scripted(MoveToBeacon):
    players = 2

    @staticmethod
    def scripted(observation: Any) -> int:
        return 3


def test_both_sides_learn_or_one_against_the_store(tmp_path):
    for mode in ("", "shared"):
        assert opponents.learns_against(options(tmp_path, task=Scripted, self_play=mode)) is None
    store = opponents.learns_against(options(tmp_path, task=Scripted, self_play="prioritised"))
    assert (store.rule, store.folder) == ("prioritised", tmp_path / "snapshots")
    assert store.latest_share == 0.5


@pytest.mark.parametrize(
    ("task", "names"), [(Scripted, ["first", "scripted"]), (MoveToBeacon, ["first"])]
)
def test_yardsticks(tmp_path, task, names):
    found = opponents.yardsticks(options(tmp_path, task=task, self_play="shared"))
    assert list(found) == names
    if "scripted" in found:
        turns = opponents.taking_turns(found)
        assert turns.begin(Episode(2))[0] == "scripted"
