"""Programs that tests end. Each program prints the stage that it has reached.

`python programs.py trains` steps a pool of two games for ever. `owns_a_family` has a job with a
child and a grandchild until the job is killed. `starts_children` starts one child after the other,
each in a job of its own. `saves OUT` is `sc2pool train`, whose console is closed after an episode.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
import threading
import time
from ctypes import wintypes
from pathlib import Path


def trains() -> None:
    from sc2pool import SC2VectorEnv

    print("constructing", flush=True)
    env = SC2VectorEnv("MoveToBeacon", n=2)
    print("resetting", flush=True)
    env.reset(seed=1)
    print("training", flush=True)
    while True:
        env.step(env.action_space.sample())


CTRL_BREAK, CLOSED = 1, 2
"""The numbers of Windows' console events."""
WAITS = "import sys; sys.stdin.read()"
STARTS_ANOTHER = f"""
import subprocess, sys
sys.stdin.readline()
child = subprocess.Popen([sys.executable, "-c", {WAITS!r}], stdin=subprocess.PIPE)
print(child.pid, flush=True)
sys.stdin.read()
"""


def owns_a_family() -> None:
    from sc2pool.processes.windows import Job

    child = subprocess.Popen(
        [sys.executable, "-c", STARTS_ANOTHER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    job = Job(child)
    assert child.stdin is not None and child.stdout is not None
    child.stdin.write(b"\n")  # the child is in the job, so it may start its own child
    child.stdin.flush()
    print(child.pid, int(child.stdout.readline()), flush=True)
    sys.stdin.read()
    job.close()


def starts_children() -> None:
    from sc2pool.processes.windows import Job, ending_with_us

    print("starting", flush=True)
    while True:
        with ending_with_us():
            child = subprocess.Popen([sys.executable, "-c", WAITS], stdin=subprocess.PIPE)
            job = Job(child)
        job.close()
        child.communicate()


def tell(event: int) -> None:
    """Do what Windows does for a console event: start a thread in the program."""
    kernel32 = ctypes.WinDLL("kernel32")
    kernel32.CreateThread.argtypes = (
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.c_void_p,
        ctypes.c_void_p,
        wintypes.DWORD,
        ctypes.c_void_p,
    )
    function = ctypes.cast(kernel32.CtrlRoutine, ctypes.c_void_p)
    kernel32.CreateThread(None, 0, function, event, 0, None)


def saves(out: str) -> None:
    from sc2pool.cli.main import main

    episodes = Path(out) / "episodes.csv"

    def tell_later() -> None:
        while not (episodes.exists() and episodes.read_text().count("\n") > 1):
            time.sleep(0.1)
        tell(CLOSED)

    threading.Thread(target=tell_later, daemon=True).start()
    sys.exit(main(["train", "--steps", "100000", "--n", "1", "--out", out]))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
