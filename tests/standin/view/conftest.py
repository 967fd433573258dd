"""A game with a camera, for the tests of its screen and of clicks on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from s2clientprotocol import sc2api_pb2 as sc_pb

from tests.standin.sessions import OfflineSession, options


def look(camera: tuple[float, float]) -> sc_pb.Action:
    """Move the camera to a place."""
    action = sc_pb.Action()
    point = action.action_raw.camera_move.center_world_space
    point.x, point.y = camera
    return action


@pytest.fixture
def arena(offline: OfflineSession) -> Callable[..., OfflineSession]:
    """Begins on an empty map of 64 × 64 with these units, and the camera at a point."""

    def begin(
        *units: Any, camera: Any = (32.0, 32.0), interface: Any = None, **changes: Any
    ) -> OfflineSession:
        offline.arena(*units, interface=interface or options(), **changes)
        offline.act(look(camera))
        offline.step()
        return offline

    return begin
