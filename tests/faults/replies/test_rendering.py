"""A state that turns out to be spoiled when it is drawn is the game's fault, not the trainer's."""

from __future__ import annotations

import numpy as np
from fault_pools import LENIENT, MakeEnv, assert_fault, step
from fault_tasks import Blind

from sc2pool.config import PoolConfig
from tests.support.audit.faulty import Faulty


def test_a_spoiled_state(begun: MakeEnv, faulty: Faulty) -> None:
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
