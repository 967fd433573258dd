"""Tests the measurements of a round of `sc2pool bench`, and the advice that follows from them."""

from __future__ import annotations

import shlex
import subprocess
import sys
import time

import psutil
import pytest

from sc2pool.cli.bench.command import as_text
from sc2pool.cli.bench.measuring import (
    Limit,
    Measured,
    Resets,
    Round,
    Rounds,
    advice,
    best,
    cpu_between,
    cpu_by_process,
    limit_of,
    measure,
    memory_by_role,
    step_for,
)
from sc2pool.platform import LINUX

# ---- a round -------------------------------------------------------------------------------------


BURN_S = 0.3
ROUNDED_S = 0.0 if LINUX else 0.02
"""The error of CPU times in seconds: outside Linux, psutil's times have ticks of 10 ms."""
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

    # The shell ends at once, so the program that it leaves is not a child of this process.
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
        assert cpu_between(burnt, cpu_by_process())[role] < 0.05  # the child only waits
        assert memory_by_role()[role][0].uss_bytes > 1_000_000
        child.stdin.close()


def test_this_process_is_the_trainer():
    before = cpu_by_process()
    until_s = time.process_time() + 0.05
    while time.process_time() < until_s:
        pass
    assert 0.05 - ROUNDED_S <= cpu_between(before, cpu_by_process())["trainer"] < 1.0


# ---- advice --------------------------------------------------------------------------------------


MB = 1_000_000


def pool(n, rate, cpu_us=(10.0, 200.0, 800.0), env_mb=1000, others_cores=0.0):
    used_s = dict(
        zip(("trainer", "worker", "game"), (us * rate / 1e6 for us in cpu_us), strict=True)
    )
    rounds = Rounds([Round(round(rate), 1.0, used_s, others_cores)] * 3)
    return Measured(n, rounds, 2.0, (env_mb - 30) * MB, 30 * MB)


def resets(spares, cost_percent):
    return Resets(4, spares, {"restart_game": 900.0}, {"restart_game": cost_percent})


def test_the_tables_hold_every_figure():
    text = as_text([pool(1, 500), pool(4, 1900)], [resets(0, 400.0), resets(1, 3.0)])
    assert "| 4 | 1,900 | 1,900–1,900 | 3.80 |" in text
    assert "| restart_game, n=4, spares=1 | 900.0 ms | +3 % |" in text
    assert "to its first observation: " in text
    tables = [block.splitlines() for block in text.split("\n\n")[:2]]
    assert all(len({line.count("|") for line in table}) == 1 for table in tables)


def test_the_smallest_of_the_fast_ones_is_best():
    assert best([pool(1, 100), pool(2, 200), pool(4, 390), pool(8, 400)]).n == 4
    assert best([pool(1, 100), pool(2, 90)]).n == 1


@pytest.mark.parametrize(
    ("measured", "cores", "free_mb", "limit"),
    [
        ([pool(1, 500), pool(4, 1900)], 2, 64_000, Limit.CORES),
        ([pool(1, 500), pool(4, 1900)], 16, 64_000, Limit.GAME),
        ([pool(1, 500), pool(4, 1900)], 16, 7_000, Limit.MEMORY),
        ([pool(1, 500), pool(4, 1000)], 16, 64_000, Limit.BATCH),
        ([pool(1, 500), pool(4, 1000, others_cores=15.0)], 16, 64_000, Limit.CORES),
        # The limit is not memory if a larger pool was measured and was not faster.
        ([pool(1, 500), pool(4, 1900), pool(8, 1900)], 16, 7_000, Limit.GAME),
    ],
)
def test_limit_of_the_rate(measured, cores, free_mb, limit):
    assert limit_of(best(measured), measured, cores, free_mb * MB) is limit


def test_the_sentences_name_their_figures():
    measured = [pool(1, 500), pool(4, 1900)]
    said = " ".join(advice(measured, [], 2, 64_000 * MB))
    assert "n=4 looks best: 1,900 env steps" in said
    assert "1.9 of 2" in said
    assert "game takes 79%" in said
    assert "larger step_mul" in said
    said = " ".join(advice(measured, [], 16, 7_000 * MB))
    assert "1,000 MB" in said
    assert "about 7" in said
    assert "--n 8" in " ".join(advice(measured, [], 16, 64_000 * MB))
    busy = [pool(1, 500, others_cores=1.0)]
    busy_cores = " ".join(advice([pool(1, 500, (5.0, 47.5, 47.5), others_cores=1.9)], [], 2, 0))
    assert "0.1 of 2 work for it, other programs keep 1.9 busy." in busy_cores
    assert "the game takes 48%, the worker 48% and the trainer 4%" in busy_cores
    assert "Other programs took 1.0 cores" in " ".join(advice(busy, [], 16, 64_000 * MB))


@pytest.mark.parametrize(
    ("without", "spared", "said"),
    [(400.0, 3.0, "use them"), (5.0, 1.0, "only if games fail"), (400.0, 450.0, "do not help")],
)
def test_about_spares(without, spared, said):
    lines = advice([pool(1, 500)], [resets(0, without), resets(1, spared)], 16, 64_000 * MB)
    assert said in lines[-1]
    assert f"{without:+.0f} %" in lines[-1]
