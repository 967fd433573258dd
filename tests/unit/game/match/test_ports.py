"""The four ports of a match: all of them, or none."""

from __future__ import annotations

from pathlib import Path

import pytest

from sc2pool.errors import FaultKind, GameFault
from sc2pool.game.match.ports import MatchLeases
from sc2pool.game.program.lease import PortLease


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
