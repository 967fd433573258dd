"""Whom a run with self-play meets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sc2pool.cli.training.self_play import opponents
from sc2pool.cli.training.settings.hyperparameters import Hyperparameters
from sc2pool.cli.training.settings.options import TrainOptions
from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon
from sc2pool.tasks.player import Episode


class Scripted(MoveToBeacon):
    players = 2

    @staticmethod
    def scripted(observation: Any) -> int:
        return 3


def options(out: Path, mode: str, task: Any = Scripted) -> TrainOptions:
    return TrainOptions(
        out=out, steps=10, hyperparameters=Hyperparameters(), task=task, self_play=mode
    )


def test_both_sides_learn_or_one_against_the_store(tmp_path: Path) -> None:
    assert opponents.learns_against(options(tmp_path, "")) is None
    assert opponents.learns_against(options(tmp_path, "shared")) is None
    store = opponents.learns_against(options(tmp_path, "prioritised"))
    assert (store.rule, store.folder) == ("prioritised", tmp_path / "snapshots")
    assert store.latest_share == 0.5


@pytest.mark.parametrize(
    ("task", "names"), [(Scripted, ["first", "scripted"]), (MoveToBeacon, ["first"])]
)
def test_yardsticks(tmp_path: Path, task: Any, names: list[str]) -> None:
    found = opponents.yardsticks(options(tmp_path, "shared", task))
    assert list(found) == names
    if "scripted" in found:
        turns = opponents.taking_turns(found)
        assert turns.begin(Episode(2))[0] == "scripted"
