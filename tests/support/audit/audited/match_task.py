"""The audit's task for two players: each player's game process stamps the player's observations."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from s2clientprotocol import raw_pb2

from tests.support.audit.audited.task import AuditTask


class AuditMatch(AuditTask):
    """An `AuditTask` for two players; each player has one unit, which cannot fight."""

    map_name: ClassVar[str] = str(Path(__file__).with_name("AuditMatch.SC2Map"))
    players: ClassVar[int] = 2

    def tag(self) -> int:
        units = self.observation.raw_data.units
        (own,) = (unit.tag for unit in units if unit.alliance == raw_pb2.Self)
        return int(own)
