from __future__ import annotations

import asyncio
import gc
from typing import Any

from sc2pool.errors import FaultKind, GameFault
from sc2pool.game.match import match


async def fail() -> None:
    await asyncio.sleep(0)
    raise GameFault(FaultKind.GAME_EXITED, "killed")


async def test_failures_of_both_sides_are_not_printed_if_the_wait_for_them_is_cancelled():
    printed: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: printed.append(told))
    sides = [asyncio.ensure_future(fail()) for _ in range(2)]
    waiting = asyncio.ensure_future(match._failures(sides))
    while not all(side.done() for side in sides):
        await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert waiting.cancelled()
    del sides
    gc.collect()
    assert printed == []
