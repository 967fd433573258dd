"""Tests processes: how they start, their resources, how they end, and locks between them."""

from __future__ import annotations

import errno
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import sc2pool
from sc2pool.deadline import Deadline
from sc2pool.errors import PauseError
from sc2pool.platform import LINUX, WINDOWS
from sc2pool.processes import filelock
from sc2pool.processes import guard as guard_module
from sc2pool.processes import tree as tree_module
from sc2pool.processes.filelock import try_lock
from sc2pool.processes.guard import Guard
from sc2pool.processes.spawn import describe_exit, run_python, watch_exit, watch_in_thread
from sc2pool.processes.tree import (
    ProcessTree,
    PsutilTable,
    created_at_s,
    descendants,
    end_orphan,
    is_alive,
    process_table,
)
from sc2pool.processes.with_parent import Follower
from tests.support.programs import assert_gone, has_ended, talking
from tests.support.systems import KILLED, SLEEPS, start_group
from tests.unit.conftest import printed_by

# ---- start ---------------------------------------------------------------------------------------


PACKAGE = Path(sc2pool.__file__).parent


def test_a_child_gets_no_path_that_depends_on_the_working_directory(tmp_path, monkeypatch):
    """If PYTHONPATH has an empty entry (the working directory), a child must not get it."""
    folder = tmp_path / "folder"
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", ".", "relative", str(folder)]))
    monkeypatch.chdir(tmp_path)
    printed = run_python("site", timeout_s=60).stdout
    assert repr(str(folder)) in printed
    assert repr(str(tmp_path)) not in printed
    assert "relative" not in printed


def test_a_child_ends_where_the_users_own_program_would_not(monkeypatch):
    monkeypatch.setenv("PYTHONINSPECT", "1")
    assert run_python("base64", "-h", timeout_s=60).returncode == 0


def test_what_is_printed_may_have_any_letter(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "cp1252")  # the encoding of Windows in Western Europe
    done = run_python("sc2standin", "install", str(tmp_path / "Łukasz"), timeout_s=60)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.rstrip("\n")).is_file()


def test_a_child_that_takes_too_long_is_killed():
    with pytest.raises(subprocess.TimeoutExpired):
        run_python("timeit", "-n", "1", "-s", "import time", "time.sleep(60)", timeout_s=0.5)


def test_no_other_place_starts_a_python():
    starting = {
        file.relative_to(PACKAGE).as_posix()
        for file in PACKAGE.rglob("*.py")
        if "sys.executable" in file.read_text()
    }
    assert starting == {"processes/spawn.py", "shell.py"}  # shell.py only prints the command


def test_an_interrupt_leaves_no_zombie(monkeypatch):
    started: list[subprocess.Popen[bytes]] = []

    class Interrupted(subprocess.Popen[bytes]):
        def communicate(self, *_: object) -> tuple[bytes, bytes]:
            started.append(self)
            self._sigint_wait_secs = 0.0
            raise KeyboardInterrupt

    monkeypatch.setattr("sc2pool.processes.spawn.subprocess.Popen", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_python("timeit", "-s", "import time", "time.sleep(60)", timeout_s=60)
    assert started[0].returncode is not None


# ---- the end with the parent ---------------------------------------------------------------------


FOLLOWS = """
import os, resource, sys, time
from sc2pool.processes.with_parent import end_group_with
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (2048, most))
os.dup2(int(sys.argv[1]), 2000)
end_group_with(os.getppid(), 2000)
print("follows", flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(WINDOWS, reason="a job ends a worker there")
def test_a_lifeline_may_have_a_high_number() -> None:
    """In a trainer with many games or files, the number of a new descriptor is high."""
    reading, writing = os.pipe()
    with subprocess.Popen(
        [sys.executable, "-c", FOLLOWS, str(reading)],
        pass_fds=[reading],
        process_group=0,
        stdout=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"follows\n"
        os.close(reading)
        os.close(writing)
        assert child.wait(30) == -signal.SIGKILL


# ---- guards --------------------------------------------------------------------------------------


def test_a_stopped_guard_ends(monkeypatch):
    monkeypatch.setattr(guard_module, "_ENDS_WITHIN_S", 0.1)
    before = set(psutil.Process().children())
    guard = Guard()
    (process,) = set(psutil.Process().children()) - before
    process.suspend()
    guard.note(None)
    guard.close()
    assert not process.is_running()


@pytest.mark.skipif(WINDOWS, reason="its pipes always wait for room")
def test_stopped_guard_blocks_no_caller(sleeper):
    before = set(psutil.Process().children())
    guard = Guard()
    (stopped,) = set(psutil.Process().children()) - before
    stopped.suspend()
    created_s = created_at_s(sleeper.pid)
    for _ in range(5000):
        guard.note(None)
        guard.note((sleeper.pid, created_s))
    assert not stopped.is_running()
    (another,) = set(psutil.Process().children()) - before
    assert another != stopped
    guard.close()  # as at the program's end: the guard ends the process that was noted last
    assert sleeper.wait() in KILLED


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
def test_stopped_guard_goes_on_when_its_program_has_ended(sleeper, wait_for):
    command = [sys.executable, "-c", PROGRAM, str(sleeper.pid), str(created_at_s(sleeper.pid))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        program.stdout.readline()
        (guard,) = psutil.Process(program.pid).children()
        wait_for(lambda: ignores_hangup(guard))
        guard.suspend()
        wait_for(lambda: guard.status() == psutil.STATUS_STOPPED)
        program.kill()
    assert sleeper.wait(30) in KILLED
    wait_for(lambda: has_ended(guard))


# ---- the end of a child --------------------------------------------------------------------------


WATCHES = [watch_exit] + ([watch_in_thread] if LINUX else [])


@pytest.mark.parametrize(
    ("code", "words"),
    [(0, "exit code 0"), (3, "exit code 3"), (-9, "signal SIGKILL"), (-250, "signal 250")],
)
def test_describe_exit(code, words):
    if WINDOWS and code == -9:
        pytest.skip("it has no name for this signal")
    assert describe_exit(code) == words


@pytest.mark.parametrize("make", WATCHES)
def test_exit_watch(make):
    child = subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE
    )
    watch = make(child)
    assert select.select([watch.fileno()], [], [], 0)[0] == []
    child.kill()
    assert select.select([watch.fileno()], [], [], 5)[0] == [watch.fileno()]
    assert child.wait(5) == (1 if WINDOWS else -9)
    child.stdin.close()
    watch.close()
    watch.close()


# ---- trees ---------------------------------------------------------------------------------------


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
    if kernel_lists and not tree_module._KERNEL_LISTS_CHILDREN:
        pytest.skip("this kernel does not")
    monkeypatch.setattr(tree_module, "_KERNEL_LISTS_CHILDREN", kernel_lists)
    with talking(sys.executable, "-S", "-c", THREADED) as family:
        below = {int(family.stdout.readline()) for _ in range(2)}
        parent = psutil.Process(family.pid)
        assert {process.pid for process in descendants(parent)} == below
        # Children of other tests may be found as well, but all these processes must be found.
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
if WINDOWS:  # Windows has no fork
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
    """A process that starts other processes all the time."""
    yield from lives(start_group(BREEDER))


def lives(group: Follower) -> Iterator[psutil.Process]:
    assert group.process.stdout.readline()
    yield psutil.Process(group.process.pid)
    group.kill()
    group.process.communicate()
    group.close()


@pytest.mark.skipif(WINDOWS, reason="Windows has no sessions of processes")
def test_kill_ends_what_has_left_the_group():
    """If a script that starts a game calls setsid, the game leaves the process group."""
    group = start_group(
        "import subprocess; subprocess.run(['setsid', '-w', 'sh', '-c', 'echo; sleep 600'])"
    )
    assert group.process.stdout.readline()
    everyone = psutil.Process(group.process.pid).children(recursive=True)
    assert any(os.getsid(one.pid) == one.pid for one in everyone)
    group.kill()
    group.process.communicate()
    group.close()
    assert_gone(everyone)


def stopped(process: psutil.Process) -> bool:
    return bool(process.status() == psutil.STATUS_STOPPED)


def soon() -> Deadline:
    return Deadline.after(5.0)


def test_the_root_may_be_left_out(family):
    below = family.children(recursive=True)
    tree = ProcessTree(family.pid, with_root=False)
    tree.stop(soon())
    assert not stopped(family)
    assert all(stopped(process) for process in below)


def test_all_generations_of_several_trees_stop_as_one_and_go_on(family, breeder):
    everyone = [family, *family.children(recursive=True), breeder]
    assert len(everyone) == 4
    tree = ProcessTree(family.pid, breeder.pid)
    for _ in range(2):
        tree.stop(soon())
        assert all(stopped(process) for process in everyone)
    for _ in range(2):
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


def test_a_tree_that_cannot_be_listed_is_not_stopped(sleeper, limited):
    """Without a free descriptor, a list of processes may be incomplete, so the pause must fail."""
    tree = ProcessTree(os.getpid(), with_root=False)
    with limited("NOFILE", 0), pytest.raises(PauseError, match="Too many open files"):
        tree.stop(soon())
    assert psutil.Process(sleeper.pid).status() != psutil.STATUS_STOPPED


PARENT = (
    "import subprocess, sys; child = subprocess.Popen(sys.argv[1:]);"
    "print(child.pid, flush=True); child.wait()"
)


def test_it_ends_with_its_children_even_if_stopped():
    with talking(sys.executable, "-c", PARENT, *SLEEPS) as parent:
        child = psutil.Process(int(parent.stdout.readline()))
        psutil.Process(parent.pid).suspend()
        assert end_orphan(parent.pid, created_at_s(parent.pid))
        assert parent.wait(5) in KILLED
        assert_gone([child], within_s=5)


def test_another_process_under_the_same_pid_is_left_alone(sleeper):
    assert not end_orphan(sleeper.pid, created_at_s(sleeper.pid) - 60.0)
    assert sleeper.poll() is None


@pytest.mark.skipif(not LINUX, reason="elsewhere the wall clock tells it")
def test_a_step_of_the_wall_clock_loses_no_process(sleeper, monkeypatch):
    """A step of the clock changes the boot time, from which psutil computes a process's start."""
    created_s = created_at_s(sleeper.pid)
    started_s = psutil.boot_time() + 3600.0
    monkeypatch.setattr("psutil._pslinux.boot_time", lambda: started_s)
    assert created_at_s(sleeper.pid) == created_s
    assert is_alive(sleeper.pid, created_s)


def test_ended_process_is_gone(sleeper):
    created_s = created_at_s(sleeper.pid)
    sleeper.kill()
    sleeper.wait(5)
    assert created_at_s(sleeper.pid) is None
    assert not end_orphan(sleeper.pid, created_s)


def test_without_a_free_descriptor_it_is_left_alone(sleeper, limited):
    """A process that may be alive must not count as dead, because its files would be deleted."""
    created_s = created_at_s(sleeper.pid)
    with limited("NOFILE", 0):
        assert created_at_s(sleeper.pid) is None
        assert is_alive(sleeper.pid, created_s)
        assert not end_orphan(sleeper.pid, created_s)
    assert sleeper.poll() is None
    sleeper.kill()
    sleeper.wait(5)
    assert not is_alive(sleeper.pid, created_s)


# ---- the table of processes ----------------------------------------------------------------------


MB = 1_000_000
PAIR = """
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


@pytest.fixture
def pair() -> Iterator[tuple[int, int]]:
    """The pids of a process and of its child, both running."""
    with talking(sys.executable, "-S", "-c", PAIR, PAIR) as parent:
        child = psutil.Process(int(parent.stdout.readline()))
        yield parent.pid, child.pid
        if child.is_running():
            child.kill()


@pytest.mark.parametrize("make", TABLES)
def test_a_process_and_all_below_it(make, pair):
    parent, child = pair
    processes = make(os.getpid()).read()
    row = processes.at(parent)
    assert row.parent_pid == os.getpid()
    assert 50 * MB < row.rss_bytes < 100 * MB
    assert 0.1 <= row.cpu_s < 60.0
    assert processes.below(parent) == [processes.at(child)]
    assert processes.below(child) == []
    assert {row, processes.at(child)} <= set(processes.below(os.getpid()))


@pytest.mark.parametrize("make", TABLES)
def test_only_processes_below_the_root(make, pair):
    parent, _ = pair
    processes = make(parent).read()
    assert processes.at(os.getpid()) is None
    assert processes.at(os.getppid()) is None
    assert len(processes.below(parent)) == 1


@pytest.mark.parametrize("make", TABLES)
def test_stopped_and_ended(make, pair):
    parent, child = pair
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


@pytest.mark.parametrize("make", TABLES)
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


@pytest.mark.parametrize("make", TABLES)
def test_without_a_free_descriptor(make, limited):
    table = make(os.getpid())
    with limited("NOFILE", 0), pytest.raises(OSError, match="Too many open files"):
        table.read()
    table.read()


# ---- work that no interrupt reaches --------------------------------------------------------------


@pytest.mark.skipif(WINDOWS, reason="it has no fork")
def test_a_forked_child_works_in_a_thread_of_its_own():
    program = """
import os, signal
from sc2pool.processes.spawn import uninterrupted
assert uninterrupted(os.getpid) == os.getpid()
if os.fork() == 0:
    signal.alarm(10)
    os._exit(uninterrupted(os.getpid) != os.getpid())
print(os.waitstatus_to_exitcode(os.wait()[1]))
"""
    assert printed_by(program) == "0\n"


# ---- locks on files ------------------------------------------------------------------------------


@pytest.mark.skipif(WINDOWS, reason="it does not delete an open file")
@pytest.mark.parametrize("is_new", [False, True])
def test_a_lock_whose_file_the_last_holder_deletes(tmp_path, monkeypatch, is_new):
    lock, take = tmp_path / "lock", filelock._take

    def take_too_late(fd: int) -> None:
        lock.unlink()
        if is_new:
            lock.touch()
        monkeypatch.setattr(filelock, "_take", take)
        take(fd)

    monkeypatch.setattr(filelock, "_take", take_too_late)
    fd = try_lock(lock)
    assert os.path.samestat(os.fstat(fd), lock.stat())
    os.close(fd)


@pytest.mark.skipif(WINDOWS, reason="its folders are each user's own")
def test_a_link_in_the_place_of_a_lock_creates_no_file(tmp_path):
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError) as caught:
        try_lock(tmp_path / "lock")
    assert caught.value.errno == errno.ELOOP
    assert not (tmp_path / "elsewhere").exists()
