"""Hand-built observations, recorded ones of the real game, and helpers of several unit tests."""

from __future__ import annotations

import asyncio
import lzma
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from functools import partial, wraps
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format
from s2clientprotocol import raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.protocol.compiled import STEP_PATH
from sc2pool.units import Kind
from sc2pool.waiting import WorkerLoop
from tests.support.systems import SLEEPS

needs_compiled = pytest.mark.skipif(
    STEP_PATH != "compiled", reason="the compiled step path is not there"
)
Game = tuple[sc_pb.ResponseGameInfo, sc_pb.ResponseObservation]


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process that does nothing, in a session of its own."""
    with subprocess.Popen(SLEEPS, start_new_session=True) as process:
        yield process
        process.kill()


@pytest.fixture
def unit() -> Callable[..., raw_pb2.Unit]:
    """Builds one unit; `fields` are fields of the unit's message, such as `health`."""

    def build(kind: Kind, x: float, y: float, tag: int = 1, **fields: Any) -> raw_pb2.Unit:
        message = raw_pb2.Unit(unit_type=kind.unit_type, alliance=kind.alliance, tag=tag, **fields)
        message.pos.x, message.pos.y = x, y
        return message

    return build


@pytest.fixture
def state() -> Callable[..., sc_pb.Observation]:
    """Builds the observation that shows some units; `player` are fields of `PlayerCommon`."""

    def build(*units: raw_pb2.Unit, loop: int = 0, **player: int) -> sc_pb.Observation:
        common = sc_pb.PlayerCommon(**player) if player else None
        observation = sc_pb.Observation(game_loop=loop, player_common=common)
        observation.raw_data.units.extend(units)
        return observation

    return build


def grid_of(target: Any, cells: np.ndarray[Any, Any], bits: int) -> None:
    """Write these cells, as (y, x), into a grid of a message, with 1 or 8 bits per cell."""
    target.bits_per_pixel = bits
    target.size.y, target.size.x = cells.shape
    target.data = (np.packbits(cells) if bits == 1 else cells.astype(np.uint8)).tobytes()


def in_worker_loop(own_tasks: int):
    """Run a coroutine in an event loop like that of a worker with this number of tasks."""

    def decorate(test):
        @wraps(test)
        def run(**fixtures):
            with asyncio.Runner(loop_factory=partial(WorkerLoop, own_tasks)) as runner:
                return runner.run(test(**fixtures))

        return run

    return decorate


def printed_by(program: str, **options: Any) -> str:
    """The output of a Python program, which must end without an error."""
    command = [sys.executable, "-c", program]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True, timeout=300, **options
    )
    return done.stdout


def rewrite_archive(
    path: Path, changes: dict[str, bytes | str | None], compression: int = zipfile.ZIP_STORED
) -> None:
    """Replace these parts of a ZIP file; None removes a part."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()} | changes
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in parts.items():
            if content is not None:
                archive.writestr(name, content)


@pytest.fixture(scope="session")
def recorded(recorded_dir: Path) -> list[Game]:
    """The map's description and the first observation of each recorded game of two players."""

    def read(path: Path, kind: type) -> Any:
        return kind.FromString(lzma.decompress(path.read_bytes()))

    infos = sorted(recorded_dir.glob("*.game_info.pb.xz"))
    assert infos
    return [
        (
            read(path, sc_pb.ResponseGameInfo),
            read(
                path.with_name(path.name.replace("game_info", "observation")),
                sc_pb.ResponseObservation,
            ),
        )
        for path in infos
    ]


@pytest.fixture(scope="session")
def recorded_observations(recorded_dir: Path) -> list[sc_pb.ResponseObservation]:
    """All recorded observations: the first ones of melee games, and one from within a game."""
    found = [
        sc_pb.ResponseObservation.FromString(lzma.decompress(path.read_bytes()))
        for path in sorted(recorded_dir.glob("*.observation.pb.xz"))
    ] + [
        text_format.Parse(lzma.decompress(path.read_bytes()), sc_pb.ResponseObservation())
        for path in sorted(recorded_dir.glob("*_observation.pbtxt.xz"))
    ]
    assert found
    return found
