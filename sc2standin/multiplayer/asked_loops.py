"""The loops that the players have asked for: one is played once both have.

Rule it keeps: a player never takes back what it has asked for, because the other player's process
may have played it.
"""

from __future__ import annotations

from collections.abc import Iterable


class AskedLoops:
    """Up to which loop each player has asked to play."""

    def __init__(self, players: Iterable[int]) -> None:
        self._asked = dict.fromkeys(players, 0)

    def __repr__(self) -> str:
        return f"AskedLoops({self._asked})"

    def ask(self, player: int, loop: int) -> int:
        """A player asks to play up to this loop; returns up to which one it has asked by now."""
        self._asked[player] = max(loop, self._asked[player])
        return self._asked[player]

    def asked(self, player: int) -> int:
        """Up to which loop a player has asked to play."""
        return self._asked[player]

    def leave(self, player: int) -> None:
        """A player takes no part any more; the other one plays alone."""
        self._asked.pop(player, None)

    @property
    def playable(self) -> int:
        """Up to which loop all players have asked to play."""
        return min(self._asked.values())
