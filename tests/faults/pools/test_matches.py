"""Tests matches: a fault of one side ends both games, and each row gets one truncation.

The pool distinguishes a bot's error from the death of its game.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import cloudpickle
import psutil
import pytest
from fault_pools import LENIENT, assert_same_bytes, step

from sc2pool import SubprocSC2VecEnv
from sc2pool.config import Limits, PoolConfig, RecyclePolicy
from sc2pool.errors import UserCodeError
from sc2pool.tasks.marine_duel import HOLD, MarineDuel
from tests.matches.duel_bots import WAIT, DuelBot, DuelTask, PlainDuelBot
from tests.support.programs import assert_gone

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers need not import this file

QUIET_STEPS = 3
PATIENT_IN_LAUNCH = PoolConfig(limits=Limits(step_s=2.0, worker_grace_s=0.5))
"""Only launches have a long limit: two matches have four games, which start together."""
EXPECTED_KINDS = {
    (signal.SIGKILL, "host"): {"game-exited"},
    (signal.SIGKILL, "guest"): {"game-exited"},
    (signal.SIGKILL, "worker"): {"worker-exited"},
    (signal.SIGSTOP, "host"): {"deadline", "stopped"},
    (signal.SIGSTOP, "guest"): {"deadline", "stopped"},
}


def pid_of(env: SubprocSC2VecEnv, match: int, who: str) -> int:
    row = env.stats().instances[match]
    (guest,) = row.other_games
    return {"host": row.pid, "guest": guest["pid"], "worker": row.worker_pid}[who] or 0


def hold(env: SubprocSC2VecEnv) -> Any:
    return step(env, *[HOLD] * env.num_envs)


@pytest.fixture(scope="module")
def undisturbed(standin_dir: Path) -> list[Any]:
    """The observations of three matches; match i plays episode i."""
    with closing(SubprocSC2VecEnv(n=3, task=MarineDuel, game=standin_dir, seed=7)) as env:
        return [env.reset(), *(hold(env)[0] for _ in range(QUIET_STEPS + 4))]


@pytest.mark.parametrize(("harm", "who"), EXPECTED_KINDS)
def test_both_rows_get_one_truncation_and_the_others_none(make_env, undisturbed, harm, who):
    env = make_env(task=MarineDuel, config=PATIENT_IN_LAUNCH)
    assert_same_bytes(env.reset(), undisturbed[0][:4])
    for number in range(1, QUIET_STEPS + 1):
        assert_same_bytes(hold(env)[0], undisturbed[number][:4])

    pair = [psutil.Process(pid_of(env, 0, one)) for one in ("host", "guest", "worker")]
    os.kill(pid_of(env, 0, who), harm)
    observations, rewards, dones, infos = hold(env)
    assert_gone(pair)

    assert dones.tolist() == [True, True, False, False]
    assert rewards[:2].tolist() == [0.0, 0.0]
    assert_same_bytes(observations[:2], undisturbed[0][4:])
    assert_same_bytes(observations[2:], undisturbed[QUIET_STEPS + 1][2:4])
    for row, info in enumerate(infos[:2]):
        assert info["sc2pool.synthetic"] and info["TimeLimit.truncated"]
        assert info["sc2pool.fault"]["kind"] in EXPECTED_KINDS[harm, who]
        if who != "worker":
            assert info["sc2pool.fault"]["detail"].startswith(f"{who}: "), info
        last_good = undisturbed[QUIET_STEPS][row]
        assert_same_bytes(info["terminal_observation"], last_good)
    assert infos[0]["sc2pool.fault"] == infos[1]["sc2pool.fault"], "it is one fault"
    assert infos[2:] == [{"TimeLimit.truncated": False}] * 2
    for number in range(1, 4):
        observations, _, dones, _ = hold(env)
        assert_same_bytes(observations[:2], undisturbed[number][4:])
        assert_same_bytes(observations[2:], undisturbed[QUIET_STEPS + 1 + number][2:4])
        assert not dones.any()
    assert sum(env.stats().replacements.values()) == 1


def test_a_side_that_dies_before_its_first_observation(make_env, arm, striking_installation):
    """The batch shows no fault, because the reset itself replaces the pair of games."""
    arm("game KILL")  # kills the first game that starts
    env = make_env(task=MarineDuel, n=1, game=striking_installation)
    assert env.reset().shape == (2, 57)
    assert sum(env.stats().replacements.values()) == 1
    hold(env)


def test_recycled_pairs(begun):
    """A soft recycle replaces both games of a match, and no transition shows the replacement."""
    config = PoolConfig(recycle=RecyclePolicy(episodes=1))
    env = begun(task=MarineDuel, n=1, config=config, max_loops=16)
    for _ in range(6):
        _, _, _, infos = hold(env)
        assert not any("sc2pool.fault" in info for info in infos)
    assert sum(env.stats().replacements.values()) >= 2


class Failing(PlainDuelBot):
    async def on_step(self, iteration: int) -> None:
        if iteration == 5:
            raise LookupError("no such tactic")


class FailingAtTheStart(PlainDuelBot):
    async def on_start(self) -> None:
        raise LookupError("no such opening")


class FailingTask(MarineDuel):
    def observe(self):
        if self.lazy_observation.game_loop > 8 and self.facing < 0:
            raise LookupError("no such sight")
        return super().observe()


class FailingLearner(DuelBot):
    def observe(self):
        if self.player_id == 2 and self.state.game_loop:
            raise LookupError("no such view")
        return super().observe()


@pytest.mark.parametrize(
    ("task", "opponent", "told"),
    [
        (DuelTask, Failing, "the opponent 'Failing' raised it"),
        (DuelBot, Failing, "no such tactic"),
        (DuelTask, FailingAtTheStart, "env 0.*resetting: LookupError: no such opening"),
        (FailingLearner, None, "env 0.*stepping: LookupError: no such view"),
        (FailingTask, None, "env 0.*stepping: LookupError: no such sight"),
    ],
)
def test_exception_of_a_bot_is_user_code_error(make_env, task, opponent, told):
    env = make_env(task=task, n=1, opponent=opponent)
    with pytest.raises(UserCodeError, match=f"(?s){told}"):
        env.reset()
        for _ in range(8):
            env.step([WAIT] * env.num_envs)
    assert psutil.Process().children(recursive=True) == []


@pytest.mark.parametrize("task", [DuelTask, DuelBot])
def test_a_killed_game_is_replaced_and_the_bot_plays_on(begun, task):
    """Even if the bot is waiting for the answer to a query, the fault must be the game's."""
    env = begun(task=task, n=1, opponent=PlainDuelBot, config=PoolConfig(restart=LENIENT))
    for side in ("host", "guest"):
        env.step([WAIT])
        os.kill(pid_of(env, 0, side), signal.SIGKILL)
        _, _, dones, infos = env.step([WAIT])
        assert dones.all() and infos[0]["sc2pool.synthetic"]
        assert infos[0]["sc2pool.fault"]["kind"] == "game-exited"
        assert infos[0]["sc2pool.fault"]["detail"].startswith(f"{side}: ")
    assert env.stats().faults == 2
    assert env.stats().matches == {}, "a match that a fault cut short does not count"
    assert not env.step([WAIT])[2].any()


def test_a_message_that_python_sc2_cannot_read_names_its_side(begun, faulty):
    config = PoolConfig(restart=LENIENT)
    env = begun(n=1, task=DuelBot, game=faulty.installation, config=config)
    faulty.order("unknown unit", "step", type=30_000)
    _, _, dones, infos = env.step([WAIT, WAIT])
    assert dones.all()
    for info in infos:
        fault = info["sc2pool.fault"]
        assert fault["kind"] == "bad-reply"
        assert ": python-sc2 cannot read the observation" in fault["detail"]
        assert fault["detail"].startswith(("host: ", "guest: "))
    assert not env.step([WAIT, WAIT])[2].any()
