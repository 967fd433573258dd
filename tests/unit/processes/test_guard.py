"""A guard ends with `close`, whatever it is doing."""

from __future__ import annotations

import signal
import subprocess

import psutil
import pytest

from sc2pool.processes import guard as module
from sc2pool.processes.guard import Guard
from sc2pool.processes.identity import created_at_s


def test_a_stopped_guard_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ENDS_WITHIN_S", 0.1)
    before = set(psutil.Process().children())
    guard = Guard()
    (process,) = set(psutil.Process().children()) - before
    process.send_signal(signal.SIGSTOP)
    guard.note(None)
    guard.close()
    assert not process.is_running()


def test_stopped_guard_blocks_no_caller() -> None:
    before = set(psutil.Process().children())
    guard = Guard()
    (stopped,) = set(psutil.Process().children()) - before
    stopped.send_signal(signal.SIGSTOP)
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as paused:
        created_s = created_at_s(paused.pid)
        assert created_s is not None
        for _ in range(5000):
            guard.note(None)
            guard.note((paused.pid, created_s))
        assert not stopped.is_running()
        (another,) = set(psutil.Process().children()) - before - {psutil.Process(paused.pid)}
        assert another != stopped
        guard.close()  # as at the end of the program: what was noted last is ended
        assert paused.wait() == -signal.SIGKILL
