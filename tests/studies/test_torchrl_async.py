"""The study of TorchRL's asynchronous pool measures every side, in TorchRL's environment."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

STUDY = Path(__file__).parents[2] / "scripts" / "studies" / "torchrl_async.py"
TIMEOUT_S = 180.0


@pytest.mark.timeout(TIMEOUT_S + 30)
def test_every_side_is_measured(python_with: Callable[[str], str], tmp_path: Path) -> None:
    done = subprocess.run(
        [python_with("torchrl"), STUDY, "--n", "4", "--rounds", "1", "--seconds", "0.2"],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    table = [line.split("|") for line in done.stdout.splitlines() if line.startswith("| ")]
    rates = [float(row[2].replace(",", "")) for row in table[2:]]
    assert len(rates) == 5
    assert all(0 < rate < 4 * 1000 for rate in rates), "a step sleeps 1 ms"
