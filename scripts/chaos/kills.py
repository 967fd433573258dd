"""Kill trainers at random instants; two seconds later none of their processes may live."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import psutil

from tests.support.audit.belongings import describe, is_marked

PROGRAM = Path(__file__).with_name("trainee.py")
GONE_WITHIN_S = 2.0
MARK = "SC2POOL_CHAOS_TRAINEE"
STAGES = ("constructing", "playing", "closing")
"""The lines that the program prints after its imports, one at the start of each stage."""


class Trainee:
    """A running training program and all its processes."""

    def __init__(self, game: Path, n: int) -> None:
        self._mark = uuid.uuid4().hex
        self.process = subprocess.Popen(
            [sys.executable, PROGRAM, game, str(n)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), MARK: self._mark},
        )

    def wait_for(self, stage: str) -> bool:
        """Wait until the program prints this stage; False if it ended before."""
        assert self.process.stdout is not None
        return any(line.strip() == stage for line in self.process.stdout)

    def end(self, number: signal.Signals) -> tuple[str, list[str]]:
        """Send the program a signal.

        Returns:
            The stage in which the program ended, and its processes that live two seconds later.
        """
        self.process.send_signal(number)
        printed, _ = self.process.communicate()
        ended_s = time.monotonic()
        while (left := self.living()) and time.monotonic() < ended_s + GONE_WITHIN_S:
            time.sleep(0.01)
        lines = [describe(process) for process in left]
        for process in left:
            process.kill()
        return (printed.split() or ["importing"])[-1], lines

    def living(self) -> list[psutil.Process]:
        """The program's living processes, wherever they are in the process tree, but no zombies."""
        mark = f"{MARK}={self._mark}".encode()
        found = []
        for pid in psutil.pids():
            if is_marked(pid, mark) and psutil.pid_exists(pid):
                found.append(psutil.Process(pid))
        return found


def stage_ends(game: Path, n: int) -> list[float]:
    """The seconds from the start until each stage begins, and until the first stage comes again."""
    trainee = Trainee(game, n)
    began_s = time.monotonic()
    ends = []
    for stage in (*STAGES, STAGES[0]):
        assert trainee.wait_for(stage)
        ends.append(time.monotonic() - began_s)
    trainee.end(signal.SIGKILL)
    return ends


def kill_trainers(count: int, n: int, seed: int, game: Path) -> dict[str, Any]:
    """Kill `count` trainers one after the other, the same number in each stage."""
    rng = Random(seed)
    ends = stage_ends(game, n)
    spans = list(zip([0.0, *ends], ends, strict=False))
    stages: Counter[str] = Counter()
    left: list[Sequence[str]] = []
    for number in range(count):
        trainee = Trainee(game, n)
        time.sleep(rng.uniform(*spans[number % len(spans)]))
        stage, lives = trainee.end(signal.SIGKILL)
        stages[stage] += 1
        if lives:
            left.append(lives)
            print(f"LEFT after {number}: {stage}: {lives}", flush=True)
    return {"killed": dict(stages), "left": left}
