"""All processes below one are found, whoever of them started whom."""

from __future__ import annotations

import subprocess
import sys

import psutil
import pytest

from sc2pool.processes import tree as module
from sc2pool.processes.tree import descendants

THREADED = """
import subprocess, sys, threading
child = [sys.executable, "-S", "-c", "import time; time.sleep(600)"]
started = []
keep = threading.Event()
def start():
    started.append(subprocess.Popen(child))
    print(started[-1].pid, flush=True)
    keep.wait()
for _ in range(2):
    threading.Thread(target=start).start()
sys.stdin.readline()
for one in started:
    one.kill()
    one.wait()
keep.set()
"""


@pytest.mark.parametrize("kernel_lists", [True, False])
def test_children_of_every_thread(monkeypatch, kernel_lists):
    if kernel_lists and not module._KERNEL_LISTS_CHILDREN:
        pytest.skip("this kernel does not")
    monkeypatch.setattr(module, "_KERNEL_LISTS_CHILDREN", kernel_lists)
    family = subprocess.Popen(
        [sys.executable, "-S", "-c", THREADED],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert family.stdout is not None
    below = {int(family.stdout.readline()) for _ in range(2)}
    parent = psutil.Process(family.pid)
    assert {process.pid for process in descendants(parent)} == below
    # Some other test's child may be there too; of these, none may be missing.
    found = {process.pid for process in descendants(psutil.Process())}
    assert found >= {family.pid, *below}
    assert descendants(psutil.Process(below.pop())) == []
    family.communicate("\n")
