"""An env like one that a user writes; it has no game, but shows the stamps of `AuditTask`."""

from __future__ import annotations

import os
import random
import time
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from tests.support.audit.audited.task import (
    BLOCKED_S,
    HARMS,
    LAST_LOOP,
    STEP_MUL,
    AuditTask,
    Stamp,
    checksum,
)

TAG = 1


class AuditEnv(gymnasium.Env[NDArray[np.int64], NDArray[np.int64]]):
    """Plays 60-step episodes; the pool does not number them, so `Stamp.episode` is always 0."""

    action_space = AuditTask.action_space
    observation_space = AuditTask.observation_space

    def __init__(self) -> None:
        self._stamp = Stamp(random.SystemRandom().getrandbits(32), 0, 0, 0, 0, 0, TAG)

    def reset(
        self,
        *,
        seed: int | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[NDArray[np.int64], dict[str, Any]]:
        super().reset(seed=seed)
        episodes = self._stamp.game_episode + 1
        self._stamp = Stamp(self._stamp.instance, episodes, 0, 0, 0, 0, TAG)
        return self._observation(), {}

    def step(
        self, action: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], float, bool, bool, dict[str, Any]]:
        number, harm = action.tolist()
        if harm:
            do_harm(HARMS[harm])
        stamp = self._stamp
        self._stamp = stamp._replace(
            loop=stamp.loop + STEP_MUL, actions=stamp.actions + 1, checksum=checksum(number, TAG)
        )
        return self._observation(), float(number), self._stamp.loop == LAST_LOOP, False, {}

    def _observation(self) -> NDArray[np.int64]:
        return np.array(self._stamp, np.int64)


def do_harm(how: str) -> None:
    """Make this worker hang, crash or exit, as `harm_request` does with a game."""
    match how:
        case "hang" | "block":
            time.sleep(BLOCKED_S)
        case "crash":
            os.abort()
        case "exit":
            os._exit(1)
