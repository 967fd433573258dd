"""Tests the pool's reaction to odd behaviour of the real game, which the stand-in imitates.

`tests/realtime/test_matches.py` tests how games end in real time, and `tests/tasks/test_smac.py`
tests units that come late.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from fault_tasks import CreatedEachTime, Mines

from sc2pool import SubprocSC2VecEnv
from sc2pool.config import Limits, PoolConfig, RecyclePolicy
from sc2pool.errors import ConfigError
from sc2pool.platform import WINDOWS

IDLE = np.zeros(1, np.int64)


def play(env: SubprocSC2VecEnv, episodes: int) -> list[float]:
    """Play whole episodes of env 0; returns the first value of each episode's first observation."""
    begun = [float(env.reset()[0][0])]
    while len(begun) <= episodes:
        observations, _, dones, _ = env.step(np.zeros(env.num_envs, np.int64))
        if dones[0]:
            begun.append(float(observations[0][0]))
    return begun[:episodes]


class TestMinesThatARestartDoesNotFill:
    def test_every_episode_begins_with_full_fields(self, make_env, tempered, caplog):
        env = make_env(n=1, task=Mines, game=tempered("spent-minerals"), seed=None)
        full, *later = play(env, 5)
        assert full > 0
        assert set(later) == {full}
        assert set(env.stats().reset_s) == {"create"}
        warnings = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
        (said,) = [text for text in warnings if "restart_game does not bring" in text]
        assert "minerals: " in said

    def test_a_game_that_fills_them_is_restarted(self, make_env, tempered):
        env = make_env(n=1, task=Mines, game=tempered("kind"), seed=None)
        assert len(set(play(env, 3))) == 1
        assert env.stats().reset_s["restart"].count >= 2


def test_a_process_that_can_create_no_more_games_is_replaced(make_env, tempered):
    env = make_env(n=1, task=CreatedEachTime, game=tempered("map-data:4"), seed=None)
    assert len(play(env, 7)) == 7
    stats = env.stats()
    assert stats.replacements["setup-failed"] == stats.faults >= 2
    assert set(stats.reset_s) == {"create"}


class TestMapsThatCannotBePlayed:
    @pytest.fixture
    def map_of(self, standin_dir: Path, tmp_path: Path) -> Callable[..., type[CreatedEachTime]]:
        """Makes a task that plays a map file of its own."""

        def make(content: bytes | None = None, **changes: object) -> type[CreatedEachTime]:
            original = standin_dir / "Maps" / "mini_games" / "MoveToBeacon.SC2Map"
            scenario = json.loads(original.read_text()) | changes
            path = tmp_path / "Odd.SC2Map"
            path.write_bytes(json.dumps(scenario).encode() if content is None else content)
            return type("OnOddMap", (CreatedEachTime,), {"map_name": str(path)})

        return make

    def failure(self, **options: object) -> str:
        """The text of the error that the pool raises."""
        with pytest.raises(ConfigError) as raised:
            SubprocSC2VecEnv(n=1, **options).reset()
        return str(raised.value)

    def test_one_of_a_newer_game_is_named(self, tempered, map_of):
        task = map_of(made_with_build=99_999)
        said = self.failure(task=task, game=tempered("map-crash"))
        assert "two processes in a row failed" in said
        assert "Odd.SC2Map" in said
        assert "game version standin" in said
        assert "may be newer than the game" in said
        assert "SIGSEGV" in said or WINDOWS

    @pytest.mark.parametrize(
        ("temper", "told"),
        [
            ("no-player", ("let nobody join", "Odd.SC2Map")),
            ("kind", ("InvalidMapData", "two processes in a row failed")),
        ],
    )
    def test_one_that_is_none_is_named(self, tempered, map_of, temper, told):
        said = self.failure(task=map_of(b"\0" * 50), game=tempered(temper))
        assert all(words in said for words in told)


def test_warnings_beside_good_replies_are_said_once(make_env, tempered, caplog):
    env = make_env(n=2, game=tempered("warnings"), seed=None)
    env.reset()
    for _ in range(30):
        env.step(np.zeros(2, np.int64))
    assert env.stats().faults == 0
    said = [one.getMessage() for one in caplog.records if "beside its reply to" in one.getMessage()]
    assert said
    assert len(said) == len({text.partition(":")[2] for text in said})


def test_games_that_start_together_are_started_one_after_the_other(make_env, tempered):
    env = make_env(
        n=4,
        game=tempered("crowd:0.05,same-instant"),
        config=PoolConfig(limits=Limits(concurrent_launches=4)),
    )
    env.reset()
    assert env.stats().faults == 0


def test_a_game_that_becomes_slow_is_replaced_between_episodes(make_env, tempered):
    # The limit is so high that some smaller growth is measured before the game is replaced.
    config = PoolConfig(recycle=RecyclePolicy(slowdown=3.0))
    env = make_env(n=1, task=Mines, game=tempered("slowing:0.0003"), seed=None, config=config)
    env.reset()
    growths = []
    for _ in range(6000):
        env.step(IDLE)
        stats = env.stats()
        growths.append(stats.instances[0].loop_cost_growth or 0.0)
        if stats.replacements:
            break
    assert stats.replacements == {"soft-slowdown": 1}
    assert max(growths) > 1.0, "seen before it was too much"
    assert stats.faults == 0
