"""The policies that come with the package fit their tasks, and stay small."""

from __future__ import annotations

from pathlib import Path

import pytest

import sc2pool
from sc2pool.cli.playing.subject import find_subject
from sc2pool.pretrained import pretrained
from sc2pool.tasks.minigames.scores import ON_THE_STANDIN, PUBLISHED

FOLDER = Path(sc2pool.__file__).parent / "pretrained"
MOST_BYTES = 2_000_000
"""Of all together; the wheel shall stay small."""


def test_there_is_one_for_each_mini_game_a_team_and_a_duel() -> None:
    assert set(pretrained()) == {*PUBLISHED, "3m", "MarineDuel"}
    assert {file.stem for file in FOLDER.glob("*.zip")} == set(pretrained())
    assert sum(file.stat().st_size for file in FOLDER.glob("*.zip")) < MOST_BYTES


@pytest.mark.parametrize("name", sorted(pretrained()))
def test_it_plays_its_task_better_than_chance(name: str) -> None:
    """Spaces are compared when it is found; the scores were measured when it was made."""
    one, found = pretrained()[name], find_subject(name.lower(), None, None)
    assert found.task.__name__ == name
    assert Path(found.name) == one.path
    assert one.game_version.startswith("standin")
    assert one.episodes == 100
    if name in ON_THE_STANDIN:
        assert one.mean_return > ON_THE_STANDIN[name].random
