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
        child = int(parent.stdout.readline())
        yield parent.pid, child
        psutil.Process(child).kill()
        parent.kill()


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
    table = make(os.getpid())
    assert not table.read().at(child).stopped
    psutil.Process(child).suspend()
    while psutil.Process(child).status() != psutil.STATUS_STOPPED:
        pass
    processes = table.read()
    assert (processes.at(parent).stopped, processes.at(child).stopped) == (False, True)
    psutil.Process(child).kill()
    while psutil.Process(child).status() != psutil.STATUS_ZOMBIE:
        pass
    assert table.read().at(child) is None, "it has ended, though its parent has not reaped it"


def test_later_processes_are_found(make):
    table = make(os.getpid())
    table.read()
    for _ in range(3):
        child = subprocess.Popen(["sleep", "60"])
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
