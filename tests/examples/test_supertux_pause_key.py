"""SuperTux, paused by its own key. The ticks that its level reports show if a pause worked."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from examples.supertux.env import PERIOD_TICKS, SuperTuxEnv
from sc2pool import PausableEnv, PauseGate
from sc2pool.errors import PauseError

pytestmark = pytest.mark.skipif(
    shutil.which("supertux2", path="/usr/games:/usr/bin") is None, reason="no SuperTux"
)
RUN = np.int64(1)
PAUSE_S = 1.0
"""The length of a pause, 66 ticks."""


@pytest.fixture
def env() -> Iterator[SuperTuxEnv]:
    env = SuperTuxEnv()
    env.reset()
    yield env
    env.close()


@pytest.mark.timing
@pytest.mark.parametrize("sign", ["ticks", "picture"])
def test_no_tick_passes_in_its_pause_menu(env, sign):
    window = env._window
    signs: dict[str, Any] = {
        "ticks": env.ticks,
        "picture": lambda: window.grey(60, 80)[:, 45:],  # the ground below the blinking menu
    }
    gate = PauseGate(
        env.game_pid,
        pause=lambda: window.press("Escape"),
        resume=lambda: window.hold(("Escape",)),  # the next action releases the key
        **{sign: signs[sign]},
    )
    pausable = PausableEnv(env, gate)
    for _ in range(3):
        pausable.step(RUN)
    pausable.pause()
    tick = env.ticks()
    time.sleep(PAUSE_S)
    assert env.ticks() == tick
    *_, info = pausable.step(RUN)
    assert info["tick"] - tick < 3 * PERIOD_TICKS
    assert gate.stats().count == 1
    assert gate.stats().paused_s > PAUSE_S


def test_a_picture_with_a_blinking_menu_is_said_not_assumed(env):
    window = env._window
    gate = PauseGate(
        pause=lambda: window.press("Escape"),
        resume=lambda: window.hold(("Escape",)),
        picture=lambda: window.grey(60, 80),
    )
    env.step(RUN)
    with pytest.raises(PauseError, match="its picture still changes"):
        gate.pause()
    gate.close()
