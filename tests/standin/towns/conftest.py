"""A Terran town on a melee map, for tests that give orders to its structures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from s2clientprotocol import debug_pb2 as debug_pb

PLACES = [(24.5, 45.5), (30.5, 45.5), (24.5, 50.5), (30.5, 50.5), (30.5, 41.5)]
"""Free places beside a natural expansion, with room for an add-on each."""


@pytest.fixture
def town(melee: Any) -> Callable[..., Any]:
    """Begins a melee alone, with money, and these structures at PLACES."""

    def begin(*kinds: int, money: int = 2000, **options: Any) -> Any:
        session = melee(None, **options)
        session.create(*((kind, 1, *place) for kind, place in zip(kinds, PLACES, strict=False)))
        session.state.game.world.minerals = session.state.game.economy.vespene = money
        session.step()
        return session

    return begin


def saved(session: Any) -> tuple[int, int]:
    """Minerals without the workers' income, and gas."""
    minerals, vespene = session.money()
    return minerals - session.brought(), vespene


def cheat(session: Any, *states: debug_pb.DebugGameState.ValueType) -> None:
    """Switch cheats on or off."""
    session.debug(*(debug_pb.DebugCommand(game_state=one) for one in states))
    session.step()
