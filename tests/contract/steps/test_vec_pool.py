"""Local pools keep the contract of every pool; a test with Ray checks a cluster's."""

from __future__ import annotations

import pytest

from sc2pool import DummySC2VecEnv, SubprocSC2VecEnv
from tests.support.vec_pool import TASK, N, check_vec_pool


@pytest.mark.parametrize("env_class", [SubprocSC2VecEnv, DummySC2VecEnv])
def test_it_keeps_the_contract(env_class, standin_dir):
    check_vec_pool(lambda: env_class(TASK, n=N, game=standin_dir, render_mode="rgb_array").pool)
