"""Hand-built observations, and recorded ones of the real game if there are any."""

from __future__ import annotations

import lzma
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from s2clientprotocol import raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.units import Kind

RECORDED = Path(
    os.environ.get("SC2POOL_RECORDED", Path(__file__).parents[3] / "shared" / "recorded")
)


@pytest.fixture
def unit() -> Callable[..., raw_pb2.Unit]:
    """Builds one unit; `fields` are any of its message's (`health`, `weapon_cooldown`)."""

    def build(kind: Kind, x: float, y: float, tag: int = 1, **fields: Any) -> raw_pb2.Unit:
        message = raw_pb2.Unit(unit_type=kind.unit_type, alliance=kind.alliance, tag=tag, **fields)
        message.pos.x, message.pos.y = x, y
        return message

    return build


@pytest.fixture
def state() -> Callable[..., sc_pb.Observation]:
    """Builds the observation that shows some units."""

    def build(*units: raw_pb2.Unit) -> sc_pb.Observation:
        observation = sc_pb.Observation()
        observation.raw_data.units.extend(units)
        return observation

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
