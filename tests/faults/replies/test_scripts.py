"""A game below a script that starts it and waits for it: watched and shown as the game itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from fault_pools import MakeEnv, assert_fault, step

from sc2pool import SubprocSC2VecEnv
from sc2pool.config import PoolConfig
from tests.support.installations import changed
from tests.support.systems import strike

CONFIG = PoolConfig(watchdog_interval_s=0.1)


@pytest.fixture
def below_a_script(standin_dir: Path, tmp_path: Path) -> Path:
    """An installation whose executable does not replace itself with the game."""
    return changed(
        standin_dir,
        tmp_path / "installation",
        lambda launcher: launcher.replace("\nexec ", "\n") + "exit $?\n",
    )


def game_of(env: SubprocSC2VecEnv, index: int) -> psutil.Process:
    """The process that listens, below the script, which is below the worker."""
    worker = psutil.Process(env.stats().instances[index].worker_pid)
    (script,) = (child for child in worker.children() if child.children())  # a guard has none
    (game,) = script.children()
    return game


def test_stats_show_the_game_below_the_script(
    begun: MakeEnv, below_a_script: Path, wait_for: Callable[..., None]
) -> None:
    env = begun(n=1, game=below_a_script, config=CONFIG)
    shown = env.stats().instances[0]
    game = game_of(env, 0)
    assert shown.pid == game.pid
    assert shown.listener == "proven"
    enough = game.memory_info().rss / 2  # the script has a tenth of it
    wait_for(lambda: (env.stats().instances[0].memory_bytes or 0) > enough)


def test_stopped(begun: MakeEnv, below_a_script: Path) -> None:
    env = begun(game=below_a_script, config=CONFIG)
    strike(game_of(env, 1).pid, "STOP")
    _, _, dones, infos = step(env, 0, 0)
    assert dones.tolist() == [False, True]
    assert_fault(infos[1], {"stopped"}, "stepping", instance=1)
    assert not step(env, 0, 0)[2].any(), "another game plays on"
