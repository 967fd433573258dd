"""The installation that all sides play: the stand-in, with canned maps of several step costs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from bench.tasks import CANNED
from sc2pool.game.program.installation import Installation, find_map, read_installation

COSTS = {
    "burn 0.5 ms": {"burn_ms": 0.5},
    "burn 2 ms": {"burn_ms": 2.0},
    "sleep 5 ms": {"sleep_ms": 5.0},
}
"""For each canned map: the cost of a step, in the format of the stand-in's maps."""


def install(folder: Path) -> Installation:
    """Write the installation, with the maps of `canned_map`."""
    command = [sys.executable, "-m", "sc2pool", "standin", "install", str(folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    installation = read_installation(folder, "the benchmark's stand-in")
    canned = find_map(installation, CANNED)
    for cost, step_cost in COSTS.items():
        scenario = json.loads(canned.read_bytes()) | {"step_cost": step_cost}
        canned.with_stem(canned_map(cost)).write_text(json.dumps(scenario))
    return installation


def canned_map(cost: str) -> str:
    """The name of the canned map with this step cost; the plain canned map for any other text."""
    return f"{CANNED} {cost}" if cost in COSTS else CANNED
