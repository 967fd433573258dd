"""Whole episodes are put together from the steps of a batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from sc2pool.datasets.collector import EpisodeCollector, RecordedEpisode


def info(last: Any, *, truncated: bool = False, fault: str | None = None) -> dict[str, Any]:
    """The info of an episode's last step."""
    more = {} if fault is None else {"sc2pool.fault": {"kind": fault}}
    return {"terminal_observation": last, "TimeLimit.truncated": truncated, **more}


def play(collector: EpisodeCollector, ends: list[dict[int, dict[str, Any]]]) -> None:
    """Steps of two rows: in step t, row r observes 10 t + r, does 100 t + r, and is rewarded t."""
    seen = np.array([0, 1])
    collector.begin(seen)
    for t, ended in enumerate(ends, 1):
        actions, rewards = 100 * t + np.arange(2), np.full(2, t, np.float32)
        seen[:] = 10 * t + np.arange(2)  # the trainer may write into the arrays that it was given
        over = np.array([row in ended for row in range(2)])
        collector.step(actions, seen, rewards, over, [ended.get(row, {}) for row in range(2)])
        actions[:] = rewards[:] = -1


def test_rows_whose_episodes_have_different_lengths():
    episodes: list[RecordedEpisode] = []
    collector = EpisodeCollector(episodes.append)
    play(collector, [{}, {1: info(7)}, {0: info(8, truncated=True)}, {1: info(9)}])
    first, second, third = episodes
    assert first.observations.tolist() == [1, 11, 7]
    assert first.actions.tolist() == [101, 201]
    assert first.rewards.tolist() == [1, 2]
    assert (first.terminated, first.fault, first.steps) == (True, None, 2)
    assert second.observations.tolist() == [0, 10, 20, 8]
    assert not second.terminated
    assert third.observations.tolist() == [21, 31, 9]
    assert third.actions.tolist() == [301, 401]
    assert len(collector._steps) == 1, "only what row 0 has begun is kept"


def test_faults_are_left_out_unless_they_are_asked_for():
    for keeps, kinds in ((False, [None]), (True, ["hung", None])):
        episodes: list[RecordedEpisode] = []
        collector = EpisodeCollector(episodes.append, keeps_faulty=keeps)
        play(collector, [{0: info(5, truncated=True, fault="hung")}, {0: info(6)}])
        assert [episode.fault for episode in episodes] == kinds
        assert episodes[-1].observations.tolist() == [10, 6]


def test_a_reset_drops_what_was_begun():
    episodes: list[RecordedEpisode] = []
    collector = EpisodeCollector(episodes.append)
    play(collector, [{}])
    play(collector, [{0: info(7)}])
    assert episodes[0].observations.tolist() == [0, 7]


def test_observations_of_several_parts():
    episodes: list[RecordedEpisode] = []
    collector = EpisodeCollector(episodes.append)
    seen = {"a": np.zeros((1, 2)), "b": (np.zeros(1), np.zeros((1, 3, 3)))}
    last = {"a": np.ones(2), "b": (np.float64(1), np.ones((3, 3)))}
    collector.begin(seen)
    collector.step(np.zeros((1, 4)), seen, np.zeros(1), np.array([True]), [info(last)])
    (episode,) = episodes
    assert episode.observations["a"].tolist() == [[0, 0], [1, 1]]
    assert episode.observations["b"][0].tolist() == [0, 1]
    assert episode.observations["b"][1].shape == (2, 3, 3)
    assert episode.actions.shape == (1, 4)
