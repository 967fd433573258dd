"""The episodes' file: whole whenever the program ends, continued by a resumed run."""

import math

from sc2pool.cli.training.figures.episodes import WINDOW, EpisodeLog, EpisodeRow, read_episodes

FIRST = EpisodeRow(total_steps=240, episode_return=1.0, length=240, wall_time_s=0.5)
SECOND = EpisodeRow(total_steps=480, episode_return=2.0, length=240, wall_time_s=1.0)
CUT_SHORT = EpisodeRow(500, 0.0, 20, 1.1, fault="game-exited")


def test_every_episode_is_in_the_file_at_once(tmp_path):
    log = EpisodeLog(tmp_path / "episodes.csv")
    log.add(FIRST)
    log.add(CUT_SHORT)
    assert read_episodes(tmp_path / "episodes.csv") == [FIRST, CUT_SHORT]
    assert log.wall_time_s == 1.1
    log.end(2.5)
    assert log.wall_time_s == 2.5, "the training went on after its last episode"
    log.close()


def test_a_later_log_goes_on_where_the_model_was_saved(tmp_path):
    path = tmp_path / "episodes.csv"
    log = EpisodeLog(path)
    log.add(FIRST)
    log.add(SECOND)
    log.close()

    log = EpisodeLog(path, steps_done=300)
    assert log.wall_time_s == FIRST.wall_time_s
    log.add(CUT_SHORT)
    log.close()
    assert read_episodes(path) == [FIRST, CUT_SHORT]


def test_the_mean_is_over_the_latest_whole_episodes(tmp_path):
    log = EpisodeLog(tmp_path / "episodes.csv")
    assert math.isnan(log.mean_return())
    log.add(EpisodeRow(1, 1000.0, 1, 0.0))
    for _ in range(WINDOW):
        log.add(SECOND)
    log.add(CUT_SHORT)
    assert log.mean_return() == SECOND.episode_return
    assert log.faults == 1
    log.close()
