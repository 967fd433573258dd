"""Half a minute of the soak in each mode: `scripts/soak.py` is run for an hour by hand."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "soak.py"
TAKES_S = 300.0
"""Longer than a minute: the last faults have to be noticed, and the machine may be busy."""


@pytest.mark.timeout(TAKES_S)
@pytest.mark.parametrize(
    "mode",
    [["--envs-per-worker", "1"], ["--envs-per-worker", "3"], ["--matches"]],
    ids=["a worker each", "shared workers", "matches"],
)
def test_half_a_minute(standin_dir: Path, tmp_path: Path, mode: list[str]) -> None:
    report = tmp_path / "soak.json"
    options = ["--minutes", "0.5", "--n", "4", "--fault-every", "2", "--game", standin_dir]
    options += mode
    finished = subprocess.run(
        [sys.executable, SCRIPT, *options, "--report", report],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TAKES_S - 10.0,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout
    figures = json.loads(report.read_text())
    assert figures["violations"] == 0
    assert figures["faults_seen_total"] == figures["faults_injected_total"] >= 5
    assert figures["synthetic_transitions"] > 0
