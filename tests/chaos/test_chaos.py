"""The short forms of `scripts/chaos.py`, which is run for an hour by hand.

They end after a number of attacks, not after a time, so a busy machine does not fail them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.programs import run

pytestmark = pytest.mark.timeout(1800.0)
SCRIPT = Path(__file__).parents[2] / "scripts" / "chaos.py"
Chaos = Callable[..., dict[str, Any]]
TAKES_S = 1800.0
"""Much longer than on a machine that does nothing else."""


@pytest.fixture
def chaos(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Runs the script, which must pass, and returns its report."""

    def run_script(*arguments: str, python: str = sys.executable) -> dict[str, Any]:
        report = tmp_path / "chaos.json"
        words = (python, SCRIPT, *arguments, "--report", report)
        finished = run(*words, timeout_s=TAKES_S - 10.0)
        assert finished.returncode == 0, finished.stdout + finished.stderr
        figures: dict[str, Any] = json.loads(report.read_text())
        return figures

    return run_script


def test_attacks_of_all_kinds(chaos: Chaos) -> None:
    figures = chaos("run", "--n", "2", "--rounds", "7", "--strikes", "4", "--seed", "1")
    assert (figures["wrong"], figures["stuck"], figures["left"]) == (0, 0, 0)
    assert sum(figures["attacks"].values()) >= 7
    assert figures["transitions"] > 100


def test_games_on_a_cluster_of_two_nodes(chaos: Chaos, python_with_ray: str) -> None:
    on_nodes = ("--ray", "--n", "2", "--rounds", "2", "--strikes", "4", "--seed", "1")
    figures = chaos("run", *on_nodes, python=python_with_ray)
    assert (figures["wrong"], figures["stuck"], figures["left"]) == (0, 0, 0)
    assert figures["transitions"] > 20


def test_a_session_that_is_interrupted_often(chaos: Chaos) -> None:
    figures = chaos("interrupts", "--count", "20", "--n", "1", "--spares", "0")
    assert figures["problems"] == []
    assert figures["counts"]["interrupts"] >= 20


def test_trainers_killed_at_random_instants(chaos: Chaos) -> None:
    figures = chaos("kills", "--count", "5", "--n", "1")
    assert figures["left"] == []
    assert sum(figures["killed"].values()) == 5
