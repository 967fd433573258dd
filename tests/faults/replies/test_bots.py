"""A message that python-sc2 cannot make sense of is the game's fault, not the bot's."""

from __future__ import annotations

import pytest
from fault_bots import ShortBot
from fault_pools import LENIENT, assert_fault, step

from sc2pool import SubprocSC2VecEnv
from sc2pool.config import PoolConfig
from tests.support.audit.faulty import Faulty

UNHEARD_OF = 30_000
TOLD = f"python-sc2 cannot read the {{}}: ValueError: {UNHEARD_OF} is not a valid UnitTypeId"


@pytest.mark.parametrize("phase", ["stepping", "resetting"])
def test_unit_of_an_unknown_type(faulty: Faulty, phase: str) -> None:
    env = SubprocSC2VecEnv(
        n=1, task=ShortBot, game=faulty.installation, config=PoolConfig(restart=LENIENT)
    )
    try:
        env.reset()
        if phase == "stepping":
            faulty.order("unknown unit", "step", type=UNHEARD_OF)
            _, _, dones, infos = step(env, 0)
            told, what = infos[0], "observation"
            assert dones[0]
            assert told["sc2pool.synthetic"]
        else:
            faulty.order("unknown unit", "first observation", type=UNHEARD_OF)
            env.reset()
            told, what = env.reset_infos[0], "first observation"
        assert faulty.done
        assert_fault(told, {"bad-reply"}, phase, instance=0)
        assert TOLD.format(what) in told["sc2pool.fault"]["detail"]
        assert not step(env, 0)[2][0], "another game plays on"
    finally:
        env.close()
        faulty.orders.unlink(missing_ok=True)


def test_numbers_that_are_not_finite(faulty: Faulty) -> None:
    env = SubprocSC2VecEnv(
        n=1, task=ShortBot, game=faulty.installation, config=PoolConfig(restart=LENIENT)
    )
    try:
        env.reset()
        faulty.order("not finite", "step")
        _, _, dones, infos = step(env, 0)
        assert dones[0]
        assert_fault(infos[0], {"bad-reply"}, "stepping", instance=0)
        assert "the pos.x of a unit is nan" in infos[0]["sc2pool.fault"]["detail"]
    finally:
        env.close()
        faulty.orders.unlink(missing_ok=True)
