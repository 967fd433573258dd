"""A pool's statistics at one moment, and the file that shows them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from sc2pool.game.clock import Tick
from sc2pool.pool.report import live_files, snapshot
from sc2pool.pool.report.snapshot import EVENTS_IN_FILE, Snapshots
from sc2pool.pool.statistics import stats
from sc2pool.pool.statistics.stats import Counters, InstanceStats
from sc2pool.tasks.player import GameFacts

ROW = InstanceStats(
    seat="env 0",
    instance=4,
    state="playing",
    episode=0,
    steps=0,
    episode_steps=0,
    episode_return=0.0,
    pid=1,
    worker_pid=2,
    port=3,
    listener="proven",
    memory_bytes=None,
    cpu_s=None,
)


@pytest.fixture
def now_s(monkeypatch) -> list[float]:
    """The time by the snapshot's clock."""
    now_s = [100.0]
    monkeypatch.setattr(snapshot.time, "monotonic", lambda: now_s[0])
    return now_s


def test_rates_come_with_the_second_sample(tmp_path, now_s):
    counters = Counters()
    snapshots = Snapshots(counters, tmp_path)
    snapshots.after_sample([replace(ROW, cpu_s=1.0)])
    assert snapshots.take([ROW], 0.0).steps_per_s is None
    now_s[0] += 2.0
    counters.env_steps = 100
    snapshots.after_sample([replace(ROW, steps=50, cpu_s=2.0)])
    told = snapshots.take([ROW, replace(ROW, instance=5)], 0.25)
    known, new = told.instances
    assert told.steps_per_s == pytest.approx(50)
    assert told.watchdog_cpu_s == 0.25
    assert (known.steps_per_s, known.cpu_share) == (pytest.approx(25), pytest.approx(0.5))
    assert (new.steps_per_s, new.cpu_share) == (None, None)


def test_recycles_belong_to_the_seat(tmp_path):
    counters = Counters()
    counters.count_recycle("env 0", 3, "age")
    (row,) = Snapshots(counters, tmp_path).take([ROW], 0.0).instances
    assert (row.recycles, row.faults) == ({"soft-age": 1}, 0)


def test_each_env_has_its_own_count_of_episodes(tmp_path):
    counters = Counters()
    for seat in ("env 0", "env 1", "env 1"):
        counters.count_episode(seat, 1.0)
    rows = [ROW, replace(ROW, seat="env 1"), replace(ROW, seat="spare 2")]
    told = Snapshots(counters, tmp_path).take(rows, 0.0)
    assert [row.episodes for row in told.instances] == [1, 2, 0]
    assert (told.episodes, told.mean_return) == (3, 1.0)


def test_json_can_hold_it(tmp_path):
    counters = Counters()
    counters.count_launch("env 0", 0, [GameFacts(1, 1, 2, "standin-1", 75689)])
    counters.count_reset("create", 0.5)
    counters.lateness.note(0, Tick(0.1, 0, 0))
    told = Snapshots(counters, tmp_path).take([replace(ROW, episode_steps=3)], 0.1)
    plain = json.loads(json.dumps(told.as_dict()))
    assert (plain["game_version"], plain["base_build"]) == ("standin-1", 75689)
    assert plain["reset_s"]["create"]["max"] == 0.5
    assert plain["realtime"]["gap_s"]["max"] == 0.1
    assert plain["events"][0]["event"] == "launch"
    assert plain["instances"][0]["episode_steps"] == 3
    assert plain == told.as_dict()


def test_the_file_is_written_only_while_it_is_requested(tmp_path):
    live_files.prepare(tmp_path)
    counters = Counters()
    snapshots = Snapshots(counters, tmp_path)
    file = tmp_path / live_files.POOL_FILE
    snapshots.after_sample([ROW])
    assert not file.exists()
    for number in range(EVENTS_IN_FILE + 1):
        counters.count_launch("env 0", number, [])
    live_files.request(tmp_path)
    snapshots.after_sample([ROW])
    seen = live_files.read(file)
    assert len(seen[0]["events"]) == EVENTS_IN_FILE
    assert seen[0]["events"][-1]["instance"] == EVENTS_IN_FILE
    assert set(seen[0]) == set(snapshots.take([ROW], 0.0).as_dict())


def test_who_looks_late_sees_the_whole_curve(tmp_path, now_s, monkeypatch):
    monkeypatch.setattr(stats.time, "monotonic", lambda: now_s[0])
    live_files.prepare(tmp_path)
    counters = Counters()
    snapshots = Snapshots(counters, tmp_path)
    file = tmp_path / live_files.CURVE_FILE
    for steps, loss in ((0, 3.0), (100, 2.0), (200, 1.0)):
        counters.env_steps = steps
        counters.learner = {"loss": loss}
        snapshots.after_sample([])
        now_s[0] += 1.0
    assert not file.exists()
    live_files.request(tmp_path)
    snapshots.after_sample([])
    seen = live_files.read(file)
    assert seen[0]["steps"] == [0, 100, 200, 200]
    assert seen[0]["figures"]["loss"] == [3.0, 2.0, 1.0, 1.0]
    assert seen[0]["figures"]["steps/s"][1:3] == [100.0, 100.0]
    file.unlink()
    snapshots.after_sample([])
    assert not file.exists(), "it has not changed since"
