"""The folder of replays: names, bounds, what is best, what a full disk does."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from sc2pool.config import ReplayPolicy
from sc2pool.players.replays import REPLAY, PlayedReplay
from sc2pool.pool.report.replays import ReplayFolder

SEAT = "env 3"


def settled(folder: ReplayFolder, seat: str, episode: int, total: float, **fields: Any) -> Any:
    """The path in the info, after it was settled."""
    fields = {"by_number": False, "by_return": False, "data": b"played"} | fields
    replay = PlayedReplay(episode=episode, episode_return=total, **fields)
    info = {"other": 1, REPLAY: replay}
    folder.settle(seat, info)
    assert info.pop("other") == 1
    path = info.pop(REPLAY, None)
    assert info == {}
    return path


def names(directory: Any) -> list[str]:
    """What is in the folder, without the times."""
    return sorted(re.sub(r"-\d{8}-\d{6}-", "-", path.name) for path in directory.iterdir())


def test_the_name_tells_reason_env_episode_and_return(tmp_path):
    folder = ReplayFolder(ReplayPolicy(tmp_path / "made" / "here"))
    path = settled(folder, SEAT, 120, 26.0, by_return=True)
    assert Path(path).parent == tmp_path / "made" / "here"
    name = r"best-\d{8}-\d{6}-env3-episode120-return26\.SC2Replay"
    assert re.fullmatch(name, Path(path).name)
    with open(path, "rb") as file:  # noqa: PTH123 - the info holds a string
        assert file.read() == b"played"
    settled(folder, SEAT, 121, -2.5, by_number=True)
    assert names(tmp_path / "made" / "here") == [
        "best-env3-episode120-return26.SC2Replay",
        "every-env3-episode121-return-2.5.SC2Replay",
    ]


def test_the_best_of_all_envs_is_best(tmp_path):
    folder = ReplayFolder(ReplayPolicy(tmp_path))
    other = "env 0"
    assert settled(folder, SEAT, 0, 5.0, by_return=True)
    assert settled(folder, other, 1, 5.0, by_return=True) is None, "the best of its player only"
    assert settled(folder, other, 2, 4.0, by_return=True, by_number=True)
    assert settled(folder, other, 3, 6.0, by_return=True, by_number=True)
    assert names(tmp_path) == [
        "best-env0-episode3-return6.SC2Replay",
        "best-env3-episode0-return5.SC2Replay",
        "every-env0-episode2-return4.SC2Replay",
    ]


def test_the_newest_of_each_reason_stay_and_nothing_of_others_goes(tmp_path):
    foreign = tmp_path / "best-20200101-000000-env0-episode0-return1.SC2Replay"
    foreign.touch()
    folder = ReplayFolder(ReplayPolicy(tmp_path, every=1, keep=2))
    for number in range(4):
        settled(folder, SEAT, number, number, by_return=number < 3, by_number=number == 3)
    assert names(tmp_path) == [
        "best-env0-episode0-return1.SC2Replay",
        "best-env3-episode1-return1.SC2Replay",
        "best-env3-episode2-return2.SC2Replay",
        "every-env3-episode3-return3.SC2Replay",
    ]
    assert foreign.exists()


def test_equal_names_do_not_overwrite(tmp_path):
    """Episodes are numbered again after `seed()`, maybe within one second."""
    folder = ReplayFolder(ReplayPolicy(tmp_path))
    paths = {settled(folder, SEAT, 0, 1.0, by_number=True) for _ in range(3)}
    assert len(paths) == 3
    assert len(names(tmp_path)) == 3


def test_an_info_without_a_replay_stays_as_it_is(tmp_path):
    info = {"own": 1}
    ReplayFolder(ReplayPolicy(tmp_path)).settle(SEAT, info)
    assert info == {"own": 1}


@pytest.mark.parametrize(
    ("faulty", "data", "kept"), [(True, b"x", 1), (False, b"x", 0), (True, b"", 0)]
)
def test_faulty_episodes(tmp_path, faulty, data, kept):
    ReplayFolder(ReplayPolicy(tmp_path, faulty=faulty)).keep_faulty(SEAT, 9, data)
    assert names(tmp_path) == ["faulty-env3-episode9.SC2Replay"] * kept


def test_a_game_that_tells_no_replay_is_a_warning(tmp_path, caplog):
    folder = ReplayFolder(ReplayPolicy(tmp_path))
    with caplog.at_level(logging.WARNING, "sc2pool"):
        assert settled(folder, SEAT, 0, 1.0, by_return=True, data=b"") is None
    assert "env 3: the game sent no replay of episode 0" in caplog.text
    assert names(tmp_path) == []
    assert settled(folder, SEAT, 1, 0.5, by_return=True), "the best of those there are"


def test_a_full_disk_is_a_warning(tmp_path, monkeypatch, caplog):
    folder = ReplayFolder(ReplayPolicy(tmp_path))
    full = Mock(side_effect=OSError(28, "No space left on device"))
    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING, "sc2pool"):
        patch.setattr("pathlib.Path.write_bytes", full)
        assert settled(folder, SEAT, 0, 1.0, by_number=True) is None
    assert "No space left" in caplog.text
    assert names(tmp_path) == [], "no part of a file"
    assert settled(folder, SEAT, 1, 1.0, by_number=True)
