"""Replays of chosen episodes: on disk when the transition that names them is there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import mpyq
import numpy as np
import pytest
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.config import PoolConfig, ReplayPolicy
from sc2pool.errors import UserCodeError
from sc2pool.players.replays import REPLAY
from tests.contract.tasks import Failing, Paid, PaidBot


def keeping(directory: Path, **fields: Any) -> PoolConfig:
    return PoolConfig(
        replays=ReplayPolicy(directory, **fields), fault_report_dir=directory.parent / "faults"
    )


def files(directory: Path) -> list[str]:
    """The names in the folder, without the times."""
    return sorted(re.sub(r"-\d{8}-\d{6}-", "-", path.name) for path in directory.iterdir())


def loops_of(path: str) -> int:
    """How long the game had been running that the replay is of."""
    info = mpyq.MPQArchive(path).read_file("sc2pool.info")
    return int(sc_pb.ResponseReplayInfo.FromString(info).game_duration_loops)


@pytest.mark.parametrize(
    ("task", "spares"), [(Paid, 0), (Paid, 1), (PaidBot, 0)], ids=["task", "spare", "bot"]
)
def test_every_kth_and_the_best(vec_task, tmp_path, task, spares):
    """Episode t is paid (t * 5) % 7 in all: 0, 5, 3, 1, 6, 4, …; two envs, three steps each."""
    folder = tmp_path / "replays"
    made = vec_task(task, n=2, spares=spares, seed=0, config=keeping(folder, every=3))
    made.reset()
    named: list[str] = []
    for step in range(1, 10):
        _, _, dones, infos = made.step([0, 0])
        assert dones.all() == (step % 3 == 0)
        for done, info in zip(dones, infos, strict=True):
            if REPLAY in info:
                assert done
                assert loops_of(info[REPLAY]) == 24
                named.append(info[REPLAY])
    assert [re.search(r"(best|every).*episode\d", name)[0][-8:] for name in named] == [
        "episode0",
        "episode1",
        "episode3",
        "episode4",
    ]
    assert files(folder) == [
        "best-env0-episode0-return0.SC2Replay",
        "best-env0-episode4-return6.SC2Replay",
        "best-env1-episode1-return5.SC2Replay",
        "every-env1-episode3-return1.SC2Replay",
    ]


def test_the_replay_is_there_before_the_pool_is_closed(gym_env, tmp_path):
    env = gym_env(Paid, config=keeping(tmp_path / "replays"))
    env.reset()
    truncated = False
    while not truncated:
        _, _, _, truncated, info = env.step(0)
    env.close()
    assert loops_of(info[REPLAY]) == 24


def test_replays_change_nothing_else(vec_task, tmp_path):
    def played(config: PoolConfig) -> list[Any]:
        made = vec_task(Paid, n=1, seed=2, config=config)
        rows = [made.reset()]
        for _ in range(7):
            observations, rewards, dones, infos = made.step([3])
            infos[0].pop(REPLAY, None)
            last = infos[0].pop("terminal_observation", None)
            rows.append((observations, rewards, dones, infos, last))
        return rows

    np.testing.assert_equal(played(keeping(tmp_path / "replays", every=1)), played(PoolConfig()))


def test_a_faulty_episode(vec_task, tmp_path):
    folder = tmp_path / "replays"
    made = vec_task(Failing, n=1, config=keeping(folder, best=False))
    made.reset()
    with pytest.raises(UserCodeError):
        made.step([0])
    assert files(folder) == ["faulty-env0-episode0.SC2Replay"]
    (path,) = folder.iterdir()
    assert loops_of(str(path)) == 8


def test_a_folder_that_cannot_be_written_to_ends_no_training(vec_task, tmp_path, caplog):
    folder = tmp_path / "replays"
    made = vec_task(Paid, n=1, config=keeping(folder, every=1))
    made.reset()
    folder.rmdir()
    for _ in range(6):
        _, _, _, infos = made.step([0])
        assert REPLAY not in infos[0]
    assert f"no replay in {folder}" in caplog.text
