"""A message that python-sc2 cannot make sense of is the game's fault, not the bot's."""

from __future__ import annotations

import pytest
from fault_bots import ShortBot
from fault_pools import LENIENT, MakeEnv, assert_fault, step

from sc2pool import SubprocSC2VecEnv
from sc2pool.config import PoolConfig
from tests.support.audit.faulty import Faulty

UNHEARD_OF = 30_000
TOLD = f"python-sc2 cannot read the {{}}: ValueError: {UNHEARD_OF} is not a valid UnitTypeId"


@pytest.fixture
def env(make_env: MakeEnv, faulty: Faulty) -> SubprocSC2VecEnv:
    config = PoolConfig(restart=LENIENT)
    return make_env(n=1, task=ShortBot, game=faulty.installation, config=config)


def test_unit_of_an_unknown_type(env: SubprocSC2VecEnv, faulty: Faulty) -> None:
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


def test_numbers_that_are_not_finite(env: SubprocSC2VecEnv, faulty: Faulty) -> None:
    env.reset()
    faulty.order("not finite", "step")
    _, _, dones, infos = step(env, 0)
    assert dones[0]
    assert_fault(infos[0], {"bad-reply"}, "stepping", instance=0)
    assert "the pos.x of a unit is nan" in infos[0]["sc2pool.fault"]["detail"]
