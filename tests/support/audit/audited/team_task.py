"""The audit's task for teams: each agent's observation proves which action it answers."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sc2pool.commands import Commands
from sc2pool.tasks.task import TeamTask
from tests.support.audit.audited.match_task import AuditMatch
from tests.support.audit.audited.task import AuditTask, Stamp, checksum

_CHECKSUM = Stamp._fields.index("checksum")


class AuditTeam(AuditTask, TeamTask):
    """An `AuditTask` of two agents that share one unit.

    The game carries out and stamps the first agent's action; the task stamps the second agent's.
    """

    agents: ClassVar[tuple[str, ...]] = ("first", "second")

    async def act(self, action: Any) -> Commands:
        return await super().act(action[0])

    def observe(self) -> Any:
        first: NDArray[np.int64] = super().observe()
        second = first.copy()
        if self.last_action is not None:
            second[_CHECKSUM] = checksum(int(self.last_action[1][0]), self.tag())
        return [first, second]


class AuditTeamMatch(AuditTeam, AuditMatch):
    """An `AuditTeam` on each side of a match."""
