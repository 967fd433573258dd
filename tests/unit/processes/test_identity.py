"""Processes are ended by pid and time of creation, never by pid alone."""

from __future__ import annotations

import subprocess
import sys

import psutil
import pytest

from sc2pool.platform import LINUX
from sc2pool.processes.identity import created_at_s, end_orphan, is_alive
from tests.support.programs import assert_gone
from tests.support.systems import KILLED, SLEEPS

PARENT = (
    "import subprocess, sys; child = subprocess.Popen(sys.argv[1:]);"
    "print(child.pid, flush=True); child.wait()"
)


@pytest.fixture
def child():
    with subprocess.Popen(SLEEPS) as process:
        yield process
        process.kill()


def test_it_ends_with_its_children_even_if_stopped():
    command = [sys.executable, "-c", PARENT, *SLEEPS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        child = psutil.Process(int(parent.stdout.readline()))
        psutil.Process(parent.pid).suspend()
        assert end_orphan(parent.pid, created_at_s(parent.pid))
        assert parent.wait(5) in KILLED
        assert_gone([child], within_s=5)


def test_another_process_under_the_same_pid_is_left_alone(child):
    assert not end_orphan(child.pid, created_at_s(child.pid) - 60.0)
    assert child.poll() is None


@pytest.mark.skipif(not LINUX, reason="elsewhere the wall clock tells it")
def test_a_step_of_the_wall_clock_loses_no_process(child, monkeypatch):
    """The system then says that it, and so every process, was started at another time."""
    created_s = created_at_s(child.pid)
    started_s = psutil.boot_time() + 3600.0
    monkeypatch.setattr("psutil._pslinux.boot_time", lambda: started_s)
    assert created_at_s(child.pid) == created_s
    assert is_alive(child.pid, created_s)


def test_ended_process_is_gone(child):
    created_s = created_at_s(child.pid)
    child.kill()
    child.wait(5)
    assert created_at_s(child.pid) is None
    assert not end_orphan(child.pid, created_s)


def test_without_a_free_descriptor_it_is_left_alone(child, limited):
    """One that may be alive must not be taken for dead: its files would be deleted."""
    created_s = created_at_s(child.pid)
    with limited("NOFILE", 0):
        assert created_at_s(child.pid) is None
        assert is_alive(child.pid, created_s)
        assert not end_orphan(child.pid, created_s)
    assert child.poll() is None
    child.kill()
    child.wait(5)
    assert not is_alive(child.pid, created_s)
