"""The end of a child is noticed, and described in words."""

from __future__ import annotations

import select
import subprocess

import pytest

from sc2pool.platform import LINUX
from sc2pool.processes.exit import ThreadWatch, describe_exit, watch_exit

WATCHES = [watch_exit] + ([ThreadWatch.of] if LINUX else [])


@pytest.mark.parametrize(
    ("code", "words"),
    [(0, "exit code 0"), (3, "exit code 3"), (-9, "signal SIGKILL"), (-250, "signal 250")],
)
def test_describe_exit(code, words):
    assert describe_exit(code) == words


@pytest.mark.parametrize("make", WATCHES)
def test_exit_watch(make):
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    watch = make(child)
    assert select.select([watch.fileno()], [], [], 0)[0] == []
    child.kill()
    assert select.select([watch.fileno()], [], [], 5)[0] == [watch.fileno()]
    assert child.wait(5) == -9
    assert child.stdin is not None
    child.stdin.close()
    watch.close()
    watch.close()
