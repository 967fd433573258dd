"""`scripts/recovery.py`, in its shortest form: all parts run and print their tables."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "recovery.py"
SHORT = ["--n", "2", "--kills", "1", "--recycles", "2", "--seconds", "0.5"]


def test_all_parts(standin_dir):
    done = subprocess.run(
        [sys.executable, SCRIPT, *SHORT],
        env=os.environ | {"SC2PATH": str(standin_dir)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in done.stdout.splitlines()
        if line.startswith("|")
    ]
    names = ["batch, with a spare", "batch, cold", "death detected", "sc2pool, spares=2"]
    assert set(names) <= {row[0] for row in rows}
    (mappings,) = (row for row in rows if row[0] == "shared mappings")
    assert mappings[1] == mappings[-1]
