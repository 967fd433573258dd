from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from sc2pool.platform import WINDOWS

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
    """As in a trainer with many games, or many files."""
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
