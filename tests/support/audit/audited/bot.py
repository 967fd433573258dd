"""A python-sc2 bot with the actions, observations and harms of `AuditTask`."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sc2pool.commands import as_actions
from sc2pool.protocol import requests
from sc2pool.tasks.bot import RLBotAI
from tests.support.audit.audited.task import (
    BLOCKED_S,
    HARMS,
    AuditTask,
    commands_for,
    harm_request,
    stamp_of,
)


class AuditBot(RLBotAI):
    """See `AuditTask`."""

    map_name = AuditTask.map_name
    step_mul = AuditTask.step_mul
    action_space = AuditTask.action_space
    observation_space = AuditTask.observation_space

    number = 0
    shown: NDArray[np.int64]
    """The stamp of the newest observation."""

    async def act(self, action: NDArray[np.int64]) -> None:
        self.number, harm = action.tolist()
        if HARMS[harm] == "block":
            time.sleep(BLOCKED_S)
        elif harm:
            await self.client._execute(debug=harm_request(HARMS[harm]).debug)
        # All commands go in one request, whose bytes have the checksum that the trainer computes.
        actions = as_actions(commands_for(self.number, self.units[0].tag))
        await self.client._execute(action=requests.action(actions).action)

    def observe(self) -> NDArray[np.int64]:
        if self.state.chat:  # no chat: the game is over and shows its last state again
            message = self.state.chat[0].message
            self.shown = stamp_of(message, self.episode.number, self.units[0].tag)
        return self.shown

    def reward(self) -> Any:
        return float(self.number)
