"""Tests bad replies to bots, drawings and replays, from a script's game, and in pure Python.

Without the compiled step path, `tests/game` plays a game (fixture `event_loop_kind`), and
`tests/unit` tests arrays of slots and the checks of actions (fixture `step_path`). All other tests
use the compiled path if it is built; tests/README.md says how to run without it.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import psutil
import pytest
from fault_bots import ShortBot
from fault_pools import LENIENT, MakeEnv, assert_fault, step
from fault_tasks import Blind, Short

from sc2pool import SubprocSC2VecEnv
from sc2pool.config import Limits, PoolConfig, ReplayPolicy
from tests.support.audit.faulty import Faulty
from tests.support.installations import changed
from tests.support.programs import run
from tests.support.systems import strike

UNHEARD_OF = 30_000
TOLD = f"python-sc2 cannot read the {{}}: ValueError: {UNHEARD_OF} is not a valid UnitTypeId"


@pytest.fixture
def env(make_env: MakeEnv, faulty: Faulty) -> SubprocSC2VecEnv:
    config = PoolConfig(restart=LENIENT)
    return make_env(n=1, task=ShortBot, game=faulty.installation, config=config)


def test_unit_of_an_unknown_type(env, faulty):
    env.reset()
    faulty.order("unknown unit", "step", type=UNHEARD_OF)
    _, _, dones, infos = step(env, 0)
    assert faulty.done
    assert dones[0]
    assert infos[0]["sc2pool.synthetic"]
    assert_fault(infos[0], {"bad-reply"}, "stepping", instance=0)
    assert TOLD.format("observation") in infos[0]["sc2pool.fault"]["detail"]
    assert not step(env, 0)[2][0], "another game plays on"

    faulty.order("unknown unit", "first observation", type=UNHEARD_OF)
    env.reset()
    assert faulty.done
    assert_fault(env.reset_infos[0], {"bad-reply"}, "resetting", instance=1)
    assert TOLD.format("first observation") in env.reset_infos[0]["sc2pool.fault"]["detail"]
    assert not step(env, 0)[2][0]


def test_a_spoiled_state(begun, faulty):
    of_faulty = {"game": faulty.installation, "config": PoolConfig(restart=LENIENT)}
    env = begun(n=1, task=Blind, render_mode="rgb_array", **of_faulty)
    (before,) = env.get_images()
    faulty.order(harm="spoiled state", at="step")
    _, _, dones, _ = step(env, 0)
    assert faulty.done
    assert not dones[0], "nobody has looked at it yet"
    (frame,) = env.get_images()
    np.testing.assert_array_equal(frame, before)
    _, _, dones, infos = step(env, 0)
    assert dones[0]
    assert infos[0]["sc2pool.synthetic"]
    assert_fault(infos[0], {"bad-reply"}, "idle", instance=0)
    assert "cannot be decoded" in infos[0]["sc2pool.fault"]["detail"]
    assert env.get_images()[0].any()


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


CONFIG = PoolConfig(watchdog_interval_s=0.1)


@pytest.fixture
def below_a_script(standin_dir: Path, tmp_path: Path) -> Path:
    """An installation whose executable, a script, starts the game as a child process."""
    return changed(
        standin_dir,
        tmp_path / "installation",
        lambda launcher: launcher.replace("\nexec ", "\n") + "exit $?\n",
    )


def game_of(env: SubprocSC2VecEnv, index: int) -> psutil.Process:
    """The process of the game, a child of the script, which is a child of the worker."""
    worker = psutil.Process(env.stats().instances[index].worker_pid)
    # The worker's other children are guards, which have no child.
    (script,) = (child for child in worker.children() if child.children())
    (game,) = script.children()
    return game


def test_a_game_below_a_script_is_shown_and_watched(begun, below_a_script, wait_for):
    env = begun(game=below_a_script, config=CONFIG)
    shown = env.stats().instances[1]
    game = game_of(env, 1)
    assert shown.pid == game.pid
    assert shown.listener == "proven"
    enough = game.memory_info().rss / 2  # ten times the memory of the script
    wait_for(lambda: (env.stats().instances[1].memory_bytes or 0) > enough)
    strike(game.pid, "STOP")
    _, _, dones, infos = step(env, 0, 0)
    assert dones.tolist() == [False, True]
    assert_fault(infos[1], {"stopped"}, "stepping", instance=1)
    assert not step(env, 0, 0)[2].any(), "another game plays on"


ROOT = Path(__file__).parents[3]
FILES = ("tests/tasks/test_episode_rules.py", "tests/faults/pools/test_bad_replies.py")
TESTS = "in_the_pool or stepping-close or stepping-swapped or stepping-slow"
"""Chooses tests of steps by pytest's `-k`, because the compiled path plays only steps."""
TIMEOUT_S = 500.0


@pytest.mark.skipif(find_spec("sc2pool._fast") is None, reason="all tests run without it")
@pytest.mark.timeout(TIMEOUT_S + 30)
def test_the_same_tests_pass(tmp_path):
    pytest_ = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    chosen = ("-m", "not timing", "-k", TESTS, *FILES)
    done = run(
        *(*pytest_, f"--basetemp={tmp_path / 'inner'}", *chosen),
        cwd=ROOT,
        env={**os.environ, "SC2POOL_PURE": "1"},
        timeout_s=TIMEOUT_S,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
