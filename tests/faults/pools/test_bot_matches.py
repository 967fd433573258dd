"""Matches with python-sc2's bots: what a bot raises, and the death of its game, are told apart."""

from __future__ import annotations

import os
import signal
import sys

import cloudpickle
import psutil
import pytest
from fault_pools import LENIENT

from sc2pool.config import PoolConfig
from sc2pool.errors import UserCodeError
from tests.matches.duel_bots import WAIT, DuelBot, DuelTask, PlainDuelBot

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers do not import this file


class Failing(PlainDuelBot):
    async def on_step(self, iteration: int) -> None:
        if iteration == 5:
            raise LookupError("no such tactic")


class FailingAtTheStart(PlainDuelBot):
    async def on_start(self) -> None:
        raise LookupError("no such opening")


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
    """The bot may be in the midst of a query; the fault is the game's all the same."""
    env = begun(task=task, n=1, opponent=PlainDuelBot, config=PoolConfig(restart=LENIENT))
    for side in ("host", "guest"):
        env.step([WAIT])
        instance = env.stats().instances[0]
        pid = instance.pid if side == "host" else instance.other_games[0]["pid"]
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
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
