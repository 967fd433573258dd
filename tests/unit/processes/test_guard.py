"""A guard ends with `close`, or after its program, whatever it is doing."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from sc2pool.platform import WINDOWS
from sc2pool.processes import guard as module
from sc2pool.processes.guard import Guard
from sc2pool.processes.tree import created_at_s
from tests.support.programs import has_ended
from tests.support.systems import KILLED, SLEEPS


def test_a_stopped_guard_ends(monkeypatch):
    monkeypatch.setattr(module, "_ENDS_WITHIN_S", 0.1)
    before = set(psutil.Process().children())
    guard = Guard()
    (process,) = set(psutil.Process().children()) - before
    process.suspend()
    guard.note(None)
    guard.close()
    assert not process.is_running()


@pytest.mark.skipif(WINDOWS, reason="its pipes always wait for room")
def test_stopped_guard_blocks_no_caller():
    before = set(psutil.Process().children())
    guard = Guard()
    (stopped,) = set(psutil.Process().children()) - before
    stopped.suspend()
    with subprocess.Popen(SLEEPS, start_new_session=True) as paused:
        created_s = created_at_s(paused.pid)
        for _ in range(5000):
            guard.note(None)
            guard.note((paused.pid, created_s))
        assert not stopped.is_running()
        (another,) = set(psutil.Process().children()) - before - {psutil.Process(paused.pid)}
        assert another != stopped
        guard.close()  # as at the end of the program: what was noted last is ended
        assert paused.wait() in KILLED


PROGRAM = """
import sys
from sc2pool.processes.guard import Guard
Guard().note((int(sys.argv[1]), float(sys.argv[2])))
print(flush=True)
sys.stdin.read()
"""


def ignores_hangup(process: psutil.Process) -> bool:
    status = Path(f"/proc/{process.pid}/status").read_text()
    (ignored,) = (line.split()[1] for line in status.splitlines() if line.startswith("SigIgn"))
    return bool(int(ignored, 16) >> (signal.SIGHUP - 1) & 1)


@pytest.mark.skipif(WINDOWS, reason="it has no SIGHUP, which lets a stopped process go on")
def test_stopped_guard_goes_on_when_its_program_has_ended(wait_for):
    with subprocess.Popen(SLEEPS, start_new_session=True) as paused:
        command = [sys.executable, "-c", PROGRAM, str(paused.pid), str(created_at_s(paused.pid))]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
            program.stdout.readline()
            (guard,) = psutil.Process(program.pid).children()
            wait_for(lambda: ignores_hangup(guard))
            guard.suspend()
            wait_for(lambda: guard.status() == psutil.STATUS_STOPPED)
            program.kill()
        try:
            assert paused.wait(30) in KILLED
        finally:
            paused.kill()
        wait_for(lambda: has_ended(guard))
