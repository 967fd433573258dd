"""A round of a side, and whose CPU time is whose."""

from __future__ import annotations

import shlex
import subprocess
import sys
import time

import psutil
import pytest

from sc2pool.cli.bench.measuring import (
    cpu_between,
    cpu_by_process,
    measure,
    memory_by_role,
    step_for,
)
from sc2pool.platform import LINUX

BURN_S = 0.3
ROUNDED_S = 0.0 if LINUX else 0.02
"""psutil, asked elsewhere, tells user and system time in ticks of 10 ms each."""
BURN = f"""
import sys, time
until = time.process_time() + {BURN_S}
while time.process_time() < until: pass
print("burnt", flush=True)
sys.stdin.read()
"""


@pytest.mark.timing
def test_a_round_tells_what_other_programs_used():
    class Waiting:
        def prepare(self):
            pass

        def run(self, seconds):
            time.sleep(seconds)
            return 1, seconds

    # The shell is no child of this process, so what it starts is another program.
    burn = shlex.join([sys.executable, "-c", "while True: pass"])
    script = f"{burn} >/dev/null & echo $!"
    started = subprocess.run(["setsid", "sh", "-c", script], stdout=subprocess.PIPE, check=True)
    other = psutil.Process(int(started.stdout))
    try:
        assert measure(Waiting(), 1.0).others_cores > 0.3
    finally:
        other.kill()
        psutil.wait_procs([other], 5.0)


def test_steps_end_by_time():
    steps, elapsed_s = step_for(lambda: 1, 0.01)
    assert steps > 0
    assert elapsed_s >= 0.01


@pytest.mark.timing
@pytest.mark.parametrize(("arguments", "role"), [([], "worker"), (["-listen", "x"], "game")])
def test_a_childs_cpu_time_is_its_roles(arguments, role):
    before = cpu_by_process()
    with subprocess.Popen(
        [sys.executable, "-c", BURN, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        child.stdout.readline()
        burnt = cpu_by_process()
        used_s = cpu_between(before, burnt)
        assert BURN_S - ROUNDED_S <= used_s[role] < BURN_S + 2.0
        other = "game" if role == "worker" else "worker"
        assert used_s[other] == 0.0
        assert cpu_between(burnt, cpu_by_process())[role] < 0.05  # it only waits now
        assert memory_by_role()[role][0].uss_bytes > 1_000_000
        child.stdin.close()


def test_this_process_is_the_trainer():
    before = cpu_by_process()
    until_s = time.process_time() + 0.05
    while time.process_time() < until_s:
        pass
    assert 0.05 - ROUNDED_S <= cpu_between(before, cpu_by_process())["trainer"] < 1.0
