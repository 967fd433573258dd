"""What a new pair cannot mend ends the pool, with the causes and the game's own last words."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from fault_pools import MakeEnv, step
from fault_tasks import N_WALKS, Blocks, CrashesEachEpisode

from sc2pool.config import Limits, PoolConfig, RestartPolicy
from sc2pool.errors import ClosedError, CrashLoopError


def assert_nothing_runs() -> None:
    _, alive = psutil.wait_procs(psutil.Process().children(recursive=True), timeout=2.0)
    assert not alive


def test_a_game_that_crashes_each_episode(begun: MakeEnv, tempered: Callable[[str], Path]) -> None:
    config = PoolConfig(restart=RestartPolicy(per_env=2))
    env = begun(n=1, task=CrashesEachEpisode, config=config, game=tempered("default"))
    for _ in range(2):
        _, _, dones, infos = step(env, 0)
        assert dones.all()
        assert infos[0]["sc2pool.fault"]["kind"] == "game-exited"
    with pytest.raises(CrashLoopError, match="env 0: 3 recycles of one env in 60 s") as caught:
        step(env, 0)
    assert str(caught.value).count("game-exited while stepping") == 3
    assert "SIGSEGV" in str(caught.value)
    assert_nothing_runs()
    with pytest.raises(ClosedError, match="the pool has failed"):
        step(env, 0)


@pytest.mark.timing
def test_an_executable_that_exits_at_once(
    make_env: MakeEnv, installation: Callable[[str], Path]
) -> None:
    """Twice the same early exit is the installation's fault: no third try, no backoff."""
    root = installation('echo "cannot open shared object file" >&2; exit 1')
    began_s = time.monotonic()
    with pytest.raises(CrashLoopError, match="the game does not start") as caught:
        make_env(game=root)
    assert time.monotonic() - began_s < 8.0
    assert "launch-failed while launching" in str(caught.value)
    assert "exit code 1" in str(caught.value)
    assert "cannot open shared object file" in str(caught.value)
    assert_nothing_runs()


def test_an_executable_that_never_listens(
    make_env: MakeEnv, installation: Callable[[str], Path]
) -> None:
    config = PoolConfig(limits=Limits(launch_s=0.5), restart=RestartPolicy(per_env=1))
    with pytest.raises(CrashLoopError) as caught:
        make_env(game=installation('echo "loading"; exec sleep 60'), config=config)
    assert str(caught.value).count("deadline while launching") == 2
    assert "loading" in str(caught.value)
    assert_nothing_runs()


def test_games_killed_while_they_launch_are_tried_again(
    begun: MakeEnv, installation: Callable[[str], Path], tmp_path: Path
) -> None:
    """SIGKILL may be memory pressure: even twice, it says nothing about the installation."""
    (tmp_path / "lives").write_text("..")
    script = f'[ -s "{tmp_path}/lives" ] && truncate -s -1 "{tmp_path}/lives" && kill -KILL $$'
    env = begun(n=1, game=installation(script))
    assert env.stats().recycles == {"game-exited": 2}


def test_a_hook_that_blocks_its_worker_counts_once_and_is_named(begun: MakeEnv) -> None:
    config = PoolConfig(
        limits=Limits(step_s=2.0, worker_grace_s=0.5),
        restart=RestartPolicy(per_pool_per_env=1),
        envs_per_worker=2,
    )
    env = begun(task=Blocks, config=config)
    for _ in range(2):
        _, _, dones, infos = step(env, 0, N_WALKS)
        assert dones.all()
        for info in infos:
            assert "env 1: act() of Blocks has not returned for" in info["sc2pool.fault"]["detail"]
            assert "fault_tasks.py, line" in info["sc2pool.fault"]["detail"]
    (report,) = {Path(infos[1]["sc2pool.fault"]["fault_report"])}
    assert "time.sleep(600)" in (report / "traceback.txt").read_text()
    with pytest.raises(CrashLoopError, match="env 1: 3 recycles of the pool"):
        step(env, 0, N_WALKS)
