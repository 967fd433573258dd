"""The ports on which the two games of a match find each other.

Beside the API port that each game has, the protocol wants four: two of the host, and two of the
guest. Rule: they are leased as API ports are, and held until the match is closed, because each of
its episodes uses them again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from sc2pool.game.program.lease import PortLease
from sc2pool.protocol.requests import MatchPorts


class MatchLeases:
    """The right to the four ports, held until `release`.

    Raises:
        GameFault: PORT_TAKEN; fewer than four ports are free.
        ConfigError: the place of the lock files is not safe to use.
    """

    def __init__(self, lease_port: Callable[[], PortLease] = PortLease.acquire) -> None:
        leased = []
        with ExitStack() as undo:
            for _ in MatchPorts._fields:
                lease = lease_port()
                undo.callback(lease.release)
                leased.append(lease.port)
            self._held = undo.pop_all()
        self.ports = MatchPorts(*leased)

    def release(self) -> None:
        """Gives the ports up; may be called again."""
        self._held.close()
