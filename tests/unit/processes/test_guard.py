"""A guard ends with `close`, whatever it is doing."""

from __future__ import annotations

import signal

import psutil
import pytest

from sc2pool.processes import guard as module
from sc2pool.processes.guard import Guard


def test_a_stopped_guard_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ENDS_WITHIN_S", 0.1)
    before = set(psutil.Process().children())
    guard = Guard()
    (process,) = set(psutil.Process().children()) - before
    process.send_signal(signal.SIGSTOP)
    guard.note(None)
    guard.close()
    assert not process.is_running()
