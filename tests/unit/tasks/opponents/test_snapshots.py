"""Tests the store of snapshots, the choice of a snapshot per episode, and the win rates."""

from __future__ import annotations

import json
import pickle
import re
from collections import Counter
from pathlib import Path

import pytest
from gymnasium import spaces

from sc2pool.errors import ConfigError
from sc2pool.tasks.opponents.results import Score, WinRates, read_scores
from sc2pool.tasks.opponents.snapshots import (
    FirstOpponent,
    SnapshotOpponent,
    SnapshotStore,
    steps_of,
)
from sc2pool.tasks.player import Episode
from tests.unit.tasks.opponents.conftest import FOUR, SEEN, answer

# ---- the store -----------------------------------------------------------------------------------


class Empty:
    """A model that is saved as an empty file, for tests that need no policy."""

    def save(self, path):
        path.touch()


def filled(folder, *steps: int, **keywords) -> SnapshotStore:
    store = SnapshotStore(folder, **keywords)
    for step in steps:
        store.add(Empty(), step)
    return store


def steps_in(store: SnapshotStore) -> list[int]:
    return [steps_of(snapshot) for snapshot in store.snapshots()]


def test_snapshots_are_in_the_order_of_their_steps(tmp_path):
    store = filled(tmp_path / "new" / "store", 0, 900, 1000, 20_000)
    for other in ("step-7", "step-x.zip", "unfinished-step-9.zip", "model.zip"):
        (store.folder / other).touch()
    for other in ("step-007.zip", "step-٣.zip"):
        (store.folder / other).touch()
    (store.folder / "step-8.zip").mkdir()
    assert steps_in(store) == [0, 900, 1000, 20_000]
    assert SnapshotStore(tmp_path / "none").snapshots() == []


def test_a_full_store_is_thinned_out_but_keeps_the_first(tmp_path):
    store = filled(tmp_path, *range(0, 60, 10), most=5)
    assert steps_in(store) == [0, 20, 40, 50]
    store = filled(tmp_path, *range(60, 10_000, 10), most=5)
    assert steps_in(store)[0] == 0
    assert steps_in(store)[-1] == 9_990
    assert len(steps_in(store)) <= 5


def test_a_snapshot_that_is_being_read_is_removed_later(tmp_path, monkeypatch):
    """On Windows an open file cannot be deleted."""
    unlink = Path.unlink

    def refuse_the_first(path, missing_ok=False):
        if path.name == "step-10.zip":
            raise PermissionError(path)
        unlink(path, missing_ok)

    with monkeypatch.context() as reading:
        reading.setattr(Path, "unlink", refuse_the_first)
        store = filled(tmp_path, *range(0, 60, 10), most=5)
    assert steps_in(store) == [0, 10, 20, 40, 50]
    store.add(Empty(), 60)
    assert steps_in(store) == [0, 20, 50, 60]


def test_a_resumed_run_drops_later_snapshots(tmp_path):
    store = filled(tmp_path, 0, 10, 20, 30)
    store.drop_later(20)
    assert steps_in(store) == [0, 10, 20]


def chosen(store: SnapshotStore, episodes: int = 400) -> Counter[int]:
    return Counter(steps_of(store.choose(Episode(number))) for number in range(episodes))


def test_latest(tmp_path):
    assert chosen(filled(tmp_path, 0, 10, 20, rule="latest")) == {20: 400}


def test_uniform_with_a_share_for_the_newest(tmp_path):
    store = filled(tmp_path, 0, 10, 20)
    assert min(chosen(store).values()) > 100
    often = chosen(SnapshotStore(tmp_path, latest_share=0.7))
    assert often[20] > 280
    assert min(often.values()) > 20


def test_prioritised_prefers_those_that_win(tmp_path):
    store = filled(tmp_path, 0, 10, 20, rule="prioritised", power=2)
    assert min(chosen(store).values()) > 100  # before the first results, all snapshots are chosen
    rates = store.win_rates()
    for step, results in ((0, "win win win"), (10, "win loss"), (20, "loss loss loss")):
        for result in results.split():
            rates.note([{"sc2pool.opponent": f"step-{step}", "sc2pool.result": result}])
    rates.save()
    found = chosen(store)
    assert found[0] == 0
    assert found[20] > 3 * found[10] > 0


def test_weights_follow_the_formula(tmp_path):
    store = SnapshotStore(tmp_path, rule="prioritised", power=2)
    scores = {"a": Score(10, 9, 10), "b": Score(10, 5, 10)}
    assert store.weights(["a", "b"], scores) == pytest.approx([1 / 26, 25 / 26])
    beaten = {name: Score(10, 10, 10) for name in "ab"}
    assert store.weights(["a", "b"], beaten) == pytest.approx([0.5, 0.5])


def test_a_seeded_run_repeats(tmp_path):
    store = filled(tmp_path, *range(0, 100, 10))
    seeded = [Episode(number, seed=1000 + number) for number in range(20)]
    again = [Episode(number + 50, seed=1000 + number) for number in range(20)]
    assert [store.choose(one) for one in seeded] == [store.choose(one) for one in again]
    assert len({store.choose(one) for one in seeded}) > 3


def test_an_empty_store_says_what_is_missing(tmp_path):
    with pytest.raises(ConfigError, match=r"no snapshot in .*: call store.add\(model, 0\)"):
        SnapshotStore(tmp_path / "none").choose(Episode(0))


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"rule": "best"}, "rule must be one of latest, uniform, prioritised, got 'best'"),
        ({"power": 0}, "power must be above 0, got 0"),
        ({"power": float("nan")}, "power must be above 0"),
        ({"power": "2"}, "power must be above 0, got '2'"),
        ({"latest_share": None}, "latest_share must be from 0 to 1, got None"),
        ({"latest_share": 1.5}, "latest_share must be from 0 to 1, got 1.5"),
        ({"most": 2}, "most must be a whole number of at least 3, got 2"),
    ],
)
def test_wrong_arguments(tmp_path, keywords, message):
    with pytest.raises(ConfigError, match=message):
        SnapshotStore(tmp_path, **keywords)


def test_an_episode_is_played_by_a_snapshot(tmp_path, make_model):
    store = SnapshotStore(tmp_path, rule="latest")
    store.add(make_model(), 0)
    opponent = pickle.loads(pickle.dumps(SnapshotOpponent(store, SEEN, FOUR)))
    name, pair = opponent.begin(Episode(0))
    assert name == "step-0"
    assert FOUR.contains(answer(pair))
    store.add(make_model(), 500)
    assert opponent.begin(Episode(1))[0] == "step-500"


def test_the_first_snapshot_plays_once_it_is_there(tmp_path, make_model):
    store = SnapshotStore(tmp_path)
    opponent = FirstOpponent(store, FOUR)
    with pytest.raises(ConfigError, match=f"no snapshot in {re.escape(str(tmp_path))}"):
        opponent.begin(Episode(0))
    store.add(make_model(), 0)
    name, pair = opponent.begin(Episode(0))
    assert name == "first"
    assert FOUR.contains(answer(pair))


def test_a_snapshot_of_other_spaces_is_refused(tmp_path, make_model):
    store = SnapshotStore(tmp_path)
    store.add(make_model(), 0)
    opponent = SnapshotOpponent(store, SEEN, spaces.Discrete(9))
    with pytest.raises(ConfigError, match=r"acts in Discrete\(4\), expected .* Discrete\(9\)"):
        opponent.begin(Episode(0))


def test_another_one_is_chosen_if_a_file_vanishes(tmp_path, make_model, monkeypatch):
    store = SnapshotStore(tmp_path, rule="latest")
    store.add(make_model(), 0)
    later = store.add(make_model(), 10)
    present = iter([store.snapshots()])
    later.source.unlink()
    listed = SnapshotStore.snapshots
    monkeypatch.setattr(
        SnapshotStore, "snapshots", lambda store: next(present, None) or listed(store)
    )
    assert SnapshotOpponent(store, SEEN, FOUR).begin(Episode(0))[0] == "step-0"


# ---- win rates -----------------------------------------------------------------------------------


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
    rates.save()
    assert not list(tmp_path.iterdir()), "nothing new is not written"
    rates.note([ended("a", "win"), ended("b", "loss")])
    rates.save()
    assert read_scores(path) == rates.scores
    assert WinRates(path).scores == rates.scores
    assert [file.name for file in tmp_path.iterdir()] == ["rates.json"]
    rates.keep(["b", "c"])
    rates.save()
    assert read_scores(path).keys() == {"b"}, "forgotten opponents leave the file"


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
    ],
    ids=range(8),
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
