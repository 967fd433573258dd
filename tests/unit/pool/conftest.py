"""The two variants of what differs by system; both must pass."""

from __future__ import annotations

import pytest

from sc2pool.pool.ipc import doorbell, memory


@pytest.fixture(params=["linux", "portable"])
def variant(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Runs the test with eventfd and memfd, and with socket pair and mapped file."""
    monkeypatch.setattr(doorbell, "USE_EVENTFD", request.param == "linux")
    monkeypatch.setattr(memory, "USE_MEMFD", request.param == "linux")
    return request.param
