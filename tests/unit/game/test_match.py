"""A match: its failures are told once, and it has all four of its ports, or none."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path
from typing import Any

import pytest

from sc2pool.errors import FaultKind, GameFault
from sc2pool.game import match
from sc2pool.game.match import MatchLeases
from sc2pool.game.program.lease import PortLease


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


def leases_in(folder: Path, most: int):
    """Leases ports, with their files in a folder, until there are no more."""
    taken = []

    def lease_port() -> PortLease:
        if len(taken) == most:
            raise GameFault(FaultKind.PORT_TAKEN, "no free port")
        taken.append(PortLease.acquire(folder))
        return taken[-1]

    return lease_port


def test_four_different_ports_until_release(tmp_path):
    leases = MatchLeases(leases_in(tmp_path, most=4))
    assert len(set(leases.ports)) == 4
    assert {path.name for path in tmp_path.iterdir()} == {f"{p}.lock" for p in leases.ports}
    leases.release()
    leases.release()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("most", range(4))
def test_too_few_leave_nothing(tmp_path, most):
    with pytest.raises(GameFault):
        MatchLeases(leases_in(tmp_path, most))
    assert list(tmp_path.iterdir()) == []
