"""Hand-built game states for tasks, and real recorded ones where there are any."""

from __future__ import annotations

import lzma
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from s2clientprotocol import raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.tasks.minigames.geometry import PlayableArea
from sc2pool.tasks.task import Task

AnyTask = TypeVar("AnyTask", bound=Task)
RECORDED = Path(
    os.environ.get("SC2POOL_RECORDED", Path(__file__).parents[4] / "shared" / "recorded")
)


@pytest.fixture
def area() -> PlayableArea:
    """The playable area of the hand-built states: 24 wide, 20 high."""
    return PlayableArea(10.0, 20.0, 34.0, 40.0)


@pytest.fixture
def begin(state: Callable[..., sc_pb.Observation], area: PlayableArea) -> Callable[..., AnyTask]:
    """Builds a task at the start of an episode that begins with some units."""

    def build(cls: type[AnyTask], *units: raw_pb2.Unit, within: PlayableArea = area) -> AnyTask:
        task = cls()
        task.game_info = sc_pb.ResponseGameInfo()
        corners = task.game_info.start_raw.playable_area
        corners.p0.x, corners.p0.y = int(within.left), int(within.bottom)
        corners.p1.x, corners.p1.y = int(within.right), int(within.top)
        task.observation = state(*units)
        task.on_start()
        return task

    return build


MAPS = sorted(path.name.partition(".")[0] for path in RECORDED.glob("*.observation.pb.xz"))


@pytest.fixture(params=MAPS or ["none"])
def recorded(request: pytest.FixtureRequest) -> tuple[sc_pb.ResponseGameInfo, sc_pb.Observation]:
    """The map description and the first observation of a real game of two players."""

    def read(kind: str) -> bytes:
        path = RECORDED / f"{request.param}.{kind}.pb.xz"
        if not path.exists():
            pytest.skip(f"no recorded messages at {RECORDED}")
        return lzma.decompress(path.read_bytes())

    game_info = sc_pb.ResponseGameInfo.FromString(read("game_info"))
    response = sc_pb.ResponseObservation.FromString(read("observation"))
    return game_info, response.observation
