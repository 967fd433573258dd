"""What the tests have killed: programs that play, and say how far they are.

python programs.py trains               a pool of two games, stepped for ever
python programs.py owns_a_family        a job with a child and its child, until it is killed
"""

from __future__ import annotations

import subprocess
import sys


def trains() -> None:
    from sc2pool import SC2VectorEnv

    print("constructing", flush=True)
    env = SC2VectorEnv("MoveToBeacon", n=2)
    print("resetting", flush=True)
    env.reset(seed=1)
    print("training", flush=True)
    while True:
        env.step(env.action_space.sample())


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
    child.stdin.write(b"\n")  # only now, so that what it starts is in the job
    child.stdin.flush()
    print(child.pid, int(child.stdout.readline()), flush=True)
    sys.stdin.read()
    job.close()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
