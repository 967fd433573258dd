"""The two variants of what differs by system, and of the step path; queue pairs; a second thread.

Each variant must pass.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager

import pytest

from sc2pool.platform import LINUX
from sc2pool.pool.queues import doorbell, memory
from sc2pool.protocol import compiled
from tests.unit.conftest import needs_compiled
from tests.unit.pool.queue_pairs import Pairs


@pytest.fixture(params=["linux", "portable"] if LINUX else ["portable"])
def variant(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Runs the test with eventfd and memfd, and with socket pair and mapped file."""
    monkeypatch.setattr(doorbell, "USE_EVENTFD", request.param == "linux")
    monkeypatch.setattr(memory, "USE_MEMFD", request.param == "linux")
    return request.param


@pytest.fixture(params=[pytest.param("compiled", marks=needs_compiled), "pure Python"])
def step_path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Runs the test with the compiled step path, and without it."""
    if request.param == "pure Python":
        monkeypatch.setattr(compiled, "fast", None)
    return request.param


@pytest.fixture
def pair() -> Iterator[Pairs]:
    """`pair(observation_space, action_space)` makes a queue pair; see `Pairs`."""
    with closing(Pairs()) as pairs:
        yield pairs


@pytest.fixture
def meanwhile() -> Callable[[Callable[[int], None]], AbstractContextManager[None]]:
    """A block in which another thread changes things all the time; what it raises is raised."""
    return changing


@contextmanager
def changing(change: Callable[[int], None]) -> Iterator[None]:
    over = threading.Event()
    raised: list[BaseException] = []

    def run() -> None:
        turn = 0
        try:
            while not over.is_set():
                change(turn)
                turn += 1
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # so that they meet in the middle of things
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        sys.setswitchinterval(interval_s)
    assert raised == []
