"""`scripts/walk.py`: both tables name files of the package, in the order in which a step enters."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import sc2pool

SCRIPT = Path(__file__).parents[2] / "scripts" / "walk.py"
PACKAGE = Path(sc2pool.__file__).parent


def test_a_step_is_followed_in_the_trainer_and_in_a_worker(standin_dir):
    done = subprocess.run(
        [sys.executable, SCRIPT],
        env=os.environ | {"SC2PATH": str(standin_dir), "PYTHONPATH": str(PACKAGE.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    trainer, worker = done.stdout.strip().split("\n\n")
    for table, first in ((trainer, "envs/sb3.py"), (worker, "tasks/minigames/move_to_beacon.py")):
        head, *lines = table.splitlines()
        n_files, n_calls = map(int, re.search(r"(\d+) files, (\d+) calls", head).groups())
        rows = [line.split() for line in lines]
        assert (n_files, n_calls) == (len(rows), sum(int(calls) for calls, _ in rows))
        assert rows[0][1] == first
        assert all((PACKAGE / file).is_file() for _, file in rows)
