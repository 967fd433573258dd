"""What processes do and use, read in one pass, in both variants."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from sc2pool.platform import LINUX
from sc2pool.processes.table import PsutilTable, process_table
from tests.support.programs import has_ended
from tests.support.systems import SLEEPS

MB = 1_000_000
FAMILY = """
import subprocess, sys
data = b"1" * 50_000_000
while sum(range(100_000)) and sum(__import__("os").times()[:2]) < 0.1:
    pass
if len(sys.argv) > 1:
    child = subprocess.Popen([sys.executable, "-S", "-c", sys.argv[1]], stdout=subprocess.PIPE)
    child.stdout.readline()
    print(child.pid, flush=True)
else:
    print(flush=True)
import time
time.sleep(600)
"""
TABLES = [process_table, *([PsutilTable] if LINUX else [])]
pytestmark = pytest.mark.parametrize("make", TABLES)


@pytest.fixture
def family() -> Iterator[tuple[int, int]]:
    """The pids of a process and of its child, both up."""
    parent = subprocess.Popen(
        [sys.executable, "-S", "-c", FAMILY, FAMILY], stdout=subprocess.PIPE, text=True
    )
    with parent:
        child = psutil.Process(int(parent.stdout.readline()))
        yield parent.pid, child.pid
        parent.kill()
        if child.is_running():
            child.kill()


def test_a_process_and_all_below_it(make, family):
    parent, child = family
    processes = make(os.getpid()).read()
    row = processes.at(parent)
    assert row.parent_pid == os.getpid()
    assert 50 * MB < row.rss_bytes < 100 * MB
    assert 0.1 <= row.cpu_s < 60.0
    assert processes.below(parent) == [processes.at(child)]
    assert processes.below(child) == []
    assert {row, processes.at(child)} <= set(processes.below(os.getpid()))


def test_only_processes_below_the_root(make, family):
    parent, _ = family
    processes = make(parent).read()
    assert processes.at(os.getpid()) is None
    assert processes.at(os.getppid()) is None
    assert len(processes.below(parent)) == 1


def test_stopped_and_ended(make, family):
    parent, child = family
    process = psutil.Process(child)
    table = make(os.getpid())
    assert not table.read().at(child).stopped
    process.suspend()
    while process.status() != psutil.STATUS_STOPPED:
        pass
    processes = table.read()
    assert (processes.at(parent).stopped, processes.at(child).stopped) == (False, True)
    process.kill()
    while not has_ended(process):
        pass
    assert table.read().at(child) is None, "it has ended, though its parent has not reaped it"


def test_later_processes_are_found(make):
    table = make(os.getpid())
    table.read()
    for _ in range(3):
        child = subprocess.Popen(SLEEPS)
        try:
            assert table.read().at(child.pid) is not None
        finally:
            child.kill()
            child.wait()
        assert table.read().at(child.pid) is None


def test_without_a_free_descriptor(make, limited):
    table = make(os.getpid())
    with limited("NOFILE", 0), pytest.raises(OSError, match="Too many open files"):
        table.read()
    table.read()
