"""Win rates: counted by the trainer, read by the workers."""

from __future__ import annotations

import json

import pytest

from sc2pool.errors import ConfigError
from sc2pool.tasks.opponents.results import Score, WinRates, read_scores


def ended(opponent: str, result: str) -> dict[str, str]:
    return {"sc2pool.opponent": opponent, "sc2pool.result": result}


def test_only_ended_episodes_count(tmp_path):
    rates = WinRates(tmp_path / "rates.json")
    rates.note([{}, {"sc2pool.opponent": "a"}, {"sc2pool.result": "win"}, ended("a", "win")])
    assert rates.scores == {"a": Score(1.0, 1.0, 1)}


@pytest.mark.parametrize(
    ("results", "rate"),
    [("", 0.5), ("win", 1.0), ("loss", 0.0), ("tie", 0.5), ("undecided", 0.5)],
)
def test_points(results, rate):
    score = Score()
    for result in results.split():
        score.note(result)
    assert score.win_rate == rate


def test_older_games_count_less():
    score = Score()
    for result in ["loss"] * 200 + ["win"] * 200:
        score.note(result)
    assert score.win_rate == pytest.approx(1 / (1 + 0.99**200))
    assert score.played == 400


def test_the_file_is_read_back_and_continued(tmp_path):
    path = tmp_path / "rates.json"
    rates = WinRates(path)
    rates.note([ended("a", "win"), ended("b", "loss")])
    rates.save()
    assert read_scores(path) == rates.scores
    assert WinRates(path).scores == rates.scores
    assert [file.name for file in tmp_path.iterdir()] == ["rates.json"]


def test_nothing_new_is_not_written(tmp_path):
    rates = WinRates(tmp_path / "rates.json")
    rates.save()
    assert not list(tmp_path.iterdir())


def test_forgotten_opponents_leave_the_file(tmp_path):
    path = tmp_path / "rates.json"
    rates = WinRates(path)
    rates.note([ended("a", "win"), ended("b", "loss")])
    rates.keep(["b", "c"])
    rates.save()
    assert read_scores(path).keys() == {"b"}


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[1]",
        '{"a": 1}',
        '{"a": {"wins": 1}}',
        '{"a": {"games": "many"}}',
        '{"a": {"games": NaN}}',
        '{"a": {"points": -1}}',
        '{"a": {"played": [1]}}',
        "[" * 100_000,
        "\udcff",
    ],
    ids=range(10),
)
def test_another_file_is_a_config_error(tmp_path, content):
    path = tmp_path / "rates.json"
    path.write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(ConfigError, match=r"rates\.json is not a file of win rates: "):
        WinRates(path)


def test_a_save_that_fails_is_tried_again(tmp_path):
    folder = tmp_path / "folder"
    rates = WinRates(folder / "rates.json")
    rates.note([ended("a", "win")])
    with pytest.raises(OSError, match="No such file"):
        rates.save()
    folder.mkdir()
    rates.save()
    assert json.loads((folder / "rates.json").read_text())["a"]["played"] == 1
