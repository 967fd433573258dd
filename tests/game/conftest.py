"""Installations of the fake game, and the check that a game leaves nothing behind."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from sc2pool.game import installation
from sc2pool.game.installation import Installation
from sc2pool.protocol import compiled
from sc2pool.waiting import WorkerLoop

FAKE_GAME = Path(__file__).with_name("fake_game.py")


@pytest.fixture
def fake(tmp_path: Path) -> Callable[..., Installation]:
    """Makes an installation whose game behaves as asked."""

    def make(**behaviour: object) -> Installation:
        root = tmp_path / "fake installation"
        executable = root / "Versions" / "Base99999" / "SC2_x64"
        executable.parent.mkdir(parents=True, exist_ok=True)
        executable.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{FAKE_GAME}" "$@"\n')
        executable.chmod(0o755)
        (root / "behaviour.json").write_text(json.dumps(behaviour))
        maps = root / "Maps" / "mini_games"
        maps.mkdir(parents=True, exist_ok=True)
        (maps / "MoveToBeacon.SC2Map").touch()
        return installation.find(root)

    return make


class WorkerLoops(asyncio.DefaultEventLoopPolicy):
    """Runs everything in loops that may be blocked in, as a worker's is."""

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        return WorkerLoop(own_tasks=1)


@pytest.fixture(autouse=True, params=["any loop", "a worker's loop", "pure Python"])
def event_loop_kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch):
    """A game is the same in a loop that reads the socket and in one that is blocked in.

    And so it is without the compiled step path.
    """
    if request.param == "pure Python":
        monkeypatch.setattr(compiled, "_fast", None)
    if request.param != "any loop":
        asyncio.set_event_loop_policy(WorkerLoops())
    yield
    asyncio.set_event_loop_policy(None)


@pytest.fixture(autouse=True)
def temp_root(tmp_path_factory, monkeypatch) -> Path:
    """A directory of our own for what games write."""
    root = tmp_path_factory.mktemp("tmp")
    monkeypatch.setattr("tempfile.tempdir", str(root))
    return root


def open_descriptors() -> int:
    """How many descriptors this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture(autouse=True)
def nothing_left(temp_root: Path):
    """Fails a test that leaves a process, a descriptor or a file."""
    descriptors = open_descriptors()
    yield
    assert psutil.Process().children(recursive=True) == []
    assert open_descriptors() == descriptors
    assert list(temp_root.iterdir()) == []
