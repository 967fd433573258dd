"""The end of a child is noticed, and described in words."""

from __future__ import annotations

import select
import subprocess
import sys

import pytest

from sc2pool.platform import LINUX, WINDOWS
from sc2pool.processes.exit import describe_exit, watch_exit, watch_in_thread

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
