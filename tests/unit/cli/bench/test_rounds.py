"""Rounds in turn, and whose CPU time is whose."""

from __future__ import annotations

import shlex
import subprocess
import sys
import time

import numpy as np
import psutil
import pytest

from sc2pool.cli.bench.processes import cpu_between, cpu_by_process, memory_by_role
from sc2pool.cli.bench.rounds import (
    CERTAINTY,
    Round,
    Rounds,
    alternate,
    measure,
    median_interval,
    step_for,
)

BURN_S = 0.3
BURN = f"""
import sys, time
until = time.process_time() + {BURN_S}
while time.process_time() < until: pass
print("burnt", flush=True)
sys.stdin.read()
"""


class Counting:
    """A side that notes when it is called."""

    def __init__(self, name, calls):
        self.name, self.calls = name, calls

    def prepare(self):
        self.calls.append(("prepare", self.name))

    def run(self, seconds):
        self.calls.append(("run", self.name))
        return 100, seconds


def test_the_order_alternates_and_every_round_is_prepared():
    calls = []
    sides = {name: Counting(name, calls) for name in "ABC"}
    measured = alternate(sides, 2, 0.5)
    assert [name for call, name in calls if call == "run"] == list("ABCCBA")
    assert [call for call, _ in calls] == ["prepare", "run"] * 6
    assert {name: len(rounds) for name, rounds in measured.items()} == dict.fromkeys("ABC", 2)
    assert measured["A"][0].steps_per_s == 200


def test_a_ratio_is_taken_round_by_round():
    def rounds(*rates):
        return Rounds(Round(rate, 1.0, {}) for rate in rates)

    # Round by round it is always twice as fast, whatever the machine does meanwhile.
    assert rounds(100, 20, 60).ratio(rounds(50, 10, 30)) == 2.0
    with pytest.raises(ValueError, match="zip"):
        rounds(1, 2).ratio(rounds(1))


@pytest.mark.parametrize(
    ("values", "interval"),
    [([7.0], (7, 7)), ([3, 1, 2], (1, 3)), (range(1, 6), (1, 5)), (range(1, 9), (2, 7))],
)
def test_interval_of_a_median_leaves_out_the_extremes(values, interval):
    assert median_interval(values) == interval


def test_a_medians_interval_is_as_certain_as_it_says():
    rng = np.random.default_rng(0)
    for n in (5, 9, 20):
        intervals = [median_interval(rng.exponential(size=n)) for _ in range(2000)]
        inside = np.mean([low <= np.log(2) <= high for low, high in intervals])
        assert CERTAINTY - 0.02 < inside < CERTAINTY + 0.08


class Rates:
    """A side with a rate for each round."""

    def __init__(self, *rates):
        self._rates = iter(rates)

    def prepare(self):
        pass

    def run(self, _):
        return next(self._rates), 1.0


def test_rounds_are_repeated_until_the_ratio_is_certain():
    steady, noisy = Rates(*[100] * 20), Rates(*[100, 200, 150, 110, 190, *[150] * 15])
    measured = alternate({"a": steady, "b": noisy}, 5, 1.0, most_rounds=20)
    low, high = measured["b"].ratio_interval(measured["a"])
    assert (low, high) == (1.5, 1.5)
    assert 5 < len(measured["a"]) == len(measured["b"]) < 20
    never = {"a": Rates(*[100] * 7), "b": Rates(*[1, 100, 2, 200, 3, 300, 4])}
    assert len(alternate(never, 2, 1.0, most_rounds=7)["a"]) == 7


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
        assert BURN_S <= used_s[role] < BURN_S + 2.0
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
    assert 0.05 <= cpu_between(before, cpu_by_process())["trainer"] < 1.0
