"""python-sc2's bots on the melee: they fight, build where its helpers say, and spread workers.

`tests/peers/python_sc2_examples.py` plays the examples of python-sc2's own repository.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BOTS = Path(__file__).with_name("python_sc2_melee.py")


@pytest.fixture
def play(installation):
    """Plays one of the bots; what it reached."""

    def run(bot: str) -> dict[str, Any]:
        done = subprocess.run(
            [sys.executable, BOTS, bot],
            env=os.environ
            | {"SC2PATH": str(installation), "SC2PF": "Linux", "PYTHONHASHSEED": "1"},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        assert "Traceback" not in done.stderr, done.stderr[-3000:]
        return json.loads(done.stdout.splitlines()[-1])

    return run


def test_a_worker_rush_is_fought_out(play):
    reached = play("Rush")
    assert reached["result"] == "Victory"
    assert reached["killed"] >= 600


def test_a_builder_walls_expands_and_spreads_its_workers(play):
    reached = play("Builder")
    assert reached["wall"] >= 2
    assert reached["town_halls"] == 2
    assert reached["at_expansions"]
    assert len(reached["marines"]) >= 4
    assert max(reached["surplus"]) <= 2
    assert reached["errors"] == []


def test_a_mechanic_has_mules_a_tech_lab_cyclones_and_a_barracks_that_moved(play):
    reached = play("Mechanic")
    assert reached["cyclones"] >= 2
    assert reached["labs"] == [True]
    assert reached["mules"] >= 1
    assert reached["lifted"]
    assert reached["errors"] == []
