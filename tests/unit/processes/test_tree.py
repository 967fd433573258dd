"""Process trees are found, paused, resumed and ended, by pid and time of creation."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from sc2pool.deadline import Deadline
from sc2pool.errors import PauseError
from sc2pool.platform import LINUX, WINDOWS
from sc2pool.processes import tree as module
from sc2pool.processes.follower import Follower
from sc2pool.processes.tree import ProcessTree, created_at_s, descendants, end_orphan, is_alive
from tests.support.programs import assert_gone
from tests.support.systems import KILLED, SLEEPS, start_group

THREADED = """
import os, subprocess, sys, threading
child = [sys.executable, "-S", "-c", "import time; time.sleep(600)"]
started = []
keep = threading.Event()
def start():
    one = subprocess.Popen(child)
    started.append(one)
    os.write(1, b"%d\\n" % one.pid)  # a whole line at once: print of two threads may mix theirs
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
    below = {int(family.stdout.readline()) for _ in range(2)}
    parent = psutil.Process(family.pid)
    assert {process.pid for process in descendants(parent)} == below
    # Some other test's child may be there too; of these, none may be missing.
    found = {process.pid for process in descendants(psutil.Process())}
    assert found >= {family.pid, *below}
    assert descendants(psutil.Process(below.pop())) == []
    family.communicate("\n")


FAMILY = """
import os, subprocess, sys, time
depth = int(sys.argv[1])
if depth:
    subprocess.Popen([sys.executable, "-S", "-c", sys.argv[2], str(depth - 1), sys.argv[2]])
else:
    print("all there", flush=True)
time.sleep(600)
"""
BREEDER = """
import os, time
print("begun", flush=True)
while True:
    if os.fork() == 0:
        time.sleep(0.2)
        os._exit(0)
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
    time.sleep(0.002)
"""
if WINDOWS:  # it has no fork
    BREEDER = """
import subprocess, sys
print("begun", flush=True)
started = []
while True:
    command = [sys.executable, "-S", "-c", "import time; time.sleep(0.2)"]
    started = [*filter(lambda one: one.poll() is None, started), subprocess.Popen(command)]
"""


@pytest.fixture
def family() -> Iterator[psutil.Process]:
    """A process with a child and a grandchild."""
    yield from lives(start_group(FAMILY, "2", FAMILY))


@pytest.fixture
def breeder() -> Iterator[psutil.Process]:
    """A process that starts others all the time."""
    yield from lives(start_group(BREEDER))


def lives(group: Follower) -> Iterator[psutil.Process]:
    assert group.process.stdout.readline()
    yield psutil.Process(group.process.pid)
    group.kill()
    group.process.communicate()
    group.close()


def stopped(process: psutil.Process) -> bool:
    return bool(process.status() == psutil.STATUS_STOPPED)


def soon() -> Deadline:
    return Deadline.after(5.0)


def test_all_generations_are_stopped_and_go_on(family):
    everyone = [family, *family.children(recursive=True)]
    assert len(everyone) == 3
    tree = ProcessTree(family.pid)
    for _ in range(2):
        tree.stop(soon())
        assert all(stopped(process) for process in everyone)
    for _ in range(2):
        tree.resume()
        assert not any(stopped(process) for process in everyone)


def test_the_root_may_be_left_out(family):
    below = family.children(recursive=True)
    tree = ProcessTree(family.pid, with_root=False)
    tree.stop(soon())
    assert not stopped(family)
    assert all(stopped(process) for process in below)


def test_several_trees_stop_as_one(family, breeder):
    everyone = [family, *family.children(recursive=True), breeder]
    tree = ProcessTree(family.pid, breeder.pid)
    tree.stop(soon())
    assert all(stopped(process) for process in everyone)
    tree.resume()
    assert not any(stopped(process) for process in everyone)
    with pytest.raises(PauseError, match="there is no process 4194305"):
        ProcessTree(family.pid, 4194305)


def test_no_child_slips_through_while_the_tree_grows(breeder):
    tree = ProcessTree(breeder.pid)
    for _ in range(5):
        tree.stop(soon())
        everyone = [breeder, *breeder.children(recursive=True)]
        states = {process.status() for process in everyone}
        assert states <= {psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE}
        tree.resume()


def test_process_stopped_by_others_stays_stopped(family):
    grandchild = family.children(recursive=True)[-1]
    grandchild.suspend()
    while not stopped(grandchild):  # a signal takes a moment
        pass
    tree = ProcessTree(family.pid)
    tree.stop(soon())
    tree.resume()
    assert stopped(grandchild)
    assert not stopped(family)


def test_process_that_ends_meanwhile_is_ignored(family):
    child = family.children()[0]
    tree = ProcessTree(family.pid)
    tree.stop(soon())
    child.kill()
    tree.stop(soon())
    tree.resume()
    assert not stopped(family)


def test_process_that_does_not_stop_in_time_goes_on_and_is_reported(family):
    everyone = [family, *family.children(recursive=True)]
    with pytest.raises(PauseError, match=f"did not stop in time: {family.pid}"):
        ProcessTree(family.pid).stop(Deadline.after(-1.0))
    assert not any(stopped(process) for process in everyone)


def test_process_that_may_not_be_stopped_is_reported(family, monkeypatch):
    suspend = psutil.Process.suspend

    def refuse(process: psutil.Process) -> None:
        if process.pid != family.pid:
            raise psutil.AccessDenied(process.pid)
        suspend(process)

    monkeypatch.setattr(psutil.Process, "suspend", refuse)
    with pytest.raises(PauseError, match="may not be stopped"):
        ProcessTree(family.pid).stop(soon())
    assert not stopped(family)


def test_there_is_no_such_process():
    child = subprocess.Popen([sys.executable, "-S", "-c", ""])
    child.wait()
    with pytest.raises(PauseError, match=f"no process {child.pid}"):
        ProcessTree(child.pid)


def test_a_tree_that_cannot_be_listed_is_not_stopped(limited):
    """Without a free descriptor; a pause that missed a process would not be one."""
    child = subprocess.Popen(SLEEPS)
    try:
        tree = ProcessTree(os.getpid(), with_root=False)
        with (
            limited("NOFILE", 0),
            pytest.raises(PauseError, match="Too many open files"),
        ):
            tree.stop(Deadline.after(5.0))
        assert psutil.Process(child.pid).status() != psutil.STATUS_STOPPED
    finally:
        child.kill()
        child.wait()


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
