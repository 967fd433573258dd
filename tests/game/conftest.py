"""Fixtures: installations of the fake game, and a check that a game leaves nothing behind."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from sc2pool.game.program import installation
from sc2pool.game.program.installation import Installation
from sc2pool.protocol import compiled
from sc2pool.waiting import WorkerLoop
from tests.support.systems import write_program

FAKE_GAME = Path(__file__).with_name("fake_game.py")


@pytest.fixture
def fake(tmp_path: Path) -> Callable[..., Installation]:
    """Makes an installation of the fake game, which misbehaves as its arguments say."""

    def make(**behaviour: object) -> Installation:
        root = tmp_path / "fake installation"
        version = root / "Versions" / "Base99999"
        version.mkdir(parents=True, exist_ok=True)
        runs_it = f"import runpy; runpy.run_path({str(FAKE_GAME)!r}, run_name='__main__')"
        write_program(version / "SC2_x64", runs_it)
        (root / "behaviour.json").write_text(json.dumps(behaviour))
        maps = root / "Maps" / "mini_games"
        maps.mkdir(parents=True, exist_ok=True)
        (maps / "MoveToBeacon.SC2Map").touch()
        return installation.find_installation(root)

    return make


class WorkerLoops(asyncio.DefaultEventLoopPolicy):
    """Runs everything in event loops like a worker's, in which reads may block."""

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        return WorkerLoop(own_tasks=1)


in_each_loop = pytest.mark.parametrize(
    "event_loop_kind", ["any loop", "a worker's loop", "pure Python"], indirect=True
)
"""For tests that use a connection in special ways: runs them in a loop that watches the socket, in
a loop that blocks in a read, and in pure Python. A game must behave the same in all three cases."""


@pytest.fixture(autouse=True)
def event_loop_kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch):
    """Makes `asyncio.run` use a worker's event loop, or each kind of loop for `in_each_loop`."""
    kind = getattr(request, "param", "a worker's loop")
    if kind == "pure Python":
        monkeypatch.setattr(compiled, "fast", None)
    before = asyncio.get_event_loop_policy()
    if kind != "any loop":
        asyncio.set_event_loop_policy(WorkerLoops())
    yield
    asyncio.set_event_loop_policy(before)


@pytest.fixture(autouse=True)
def nothing_runs_on():
    """Fails a test whose game runs after its close; `nothing_is_left` finds other leftovers."""
    yield
    assert psutil.Process().children(recursive=True) == []
