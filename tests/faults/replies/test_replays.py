"""A game that fails while it saves a replay costs the replay, never the last transition."""

from __future__ import annotations

import logging
import time
from pathlib import Path

import pytest
from fault_pools import LENIENT, step
from fault_tasks import Short

from sc2pool.config import Limits, PoolConfig, ReplayPolicy

LIMITS = Limits(launch_s=4.0, create_join_s=1.5, reset_s=1.5, step_s=1.0, worker_grace_s=0.5)
EPISODE = 5


@pytest.mark.timing
@pytest.mark.parametrize(
    ("harm", "is_fault"),
    [
        ({"harm": "slow", "seconds": 60}, True),
        ({"harm": "garbage"}, True),
        ({"harm": "error"}, False),
    ],
    ids=lambda given: given["harm"] if isinstance(given, dict) else "",
)
def test_a_harmed_replay(begun, faulty, tmp_path, caplog, harm, is_fault):  # noqa: PLR0917
    policy = ReplayPolicy(tmp_path / "replays", every=1)
    config = PoolConfig(limits=LIMITS, restart=LENIENT, replays=policy)
    env = begun(n=1, task=Short, game=faulty.installation, config=config)
    faulty.order(at="save_replay", **harm)
    began_s = time.monotonic()
    with caplog.at_level(logging.WARNING, "sc2pool"):
        for _ in range(EPISODE):
            _, _, dones, infos = step(env, 0)
    assert time.monotonic() - began_s < 20.0
    assert faulty.done
    assert dones[0]
    assert infos[0]["TimeLimit.truncated"]
    assert "sc2pool.synthetic" not in infos[0], "the real transition"
    assert "sc2pool.replay" not in infos[0]
    assert "the game sent no replay of episode 0" in caplog.text
    assert ("sc2pool.fault" in env.reset_infos[0]) == is_fault
    for _ in range(EPISODE):
        _, _, dones, infos = step(env, 0)
    assert dones[0]
    assert Path(infos[0]["sc2pool.replay"]).stat().st_size > 0, "the next one is kept again"
