"""Hand-built game states for tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest
from s2clientprotocol import raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.tasks.minigames.geometry import PlayableArea
from sc2pool.tasks.task import Task

AnyTask = TypeVar("AnyTask", bound=Task)


@pytest.fixture
def area() -> PlayableArea:
    """The playable area of the hand-built states: 24 cells wide and 20 cells high."""
    return PlayableArea(10.0, 20.0, 34.0, 40.0)


@pytest.fixture
def begin(state: Callable[..., sc_pb.Observation], area: PlayableArea) -> Callable[..., AnyTask]:
    """Builds a task at the start of an episode that begins with some units.

    `shown` are the arguments of `state`.
    """

    def build(
        cls: type[AnyTask], *units: raw_pb2.Unit, within: PlayableArea = area, **shown: int
    ) -> AnyTask:
        task = cls()
        task.game_info = sc_pb.ResponseGameInfo()
        corners = task.game_info.start_raw.playable_area
        corners.p0.x, corners.p0.y = int(within.left), int(within.bottom)
        corners.p1.x, corners.p1.y = int(within.right), int(within.top)
        task.observation = state(*units, **shown)
        task.on_start()
        return task

    return build
