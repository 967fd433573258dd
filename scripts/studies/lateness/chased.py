"""Chased: a game in which an idle unit dies, and any new action keeps it alive.

One zergling runs laps around the middle of the map, chased by two roaches. It is faster than they
are, but each action is an order for one second only: without a next one the zergling stops, and is
shot one to two seconds later. The actions differ only in the width of the lap, so any policy
survives as long as it acts: the study measures delays, not how well a policy plays.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from sc2pool.tasks import commands
from sc2pool.tasks.commands import Commands
from sc2pool.tasks.task import Task

MAP_NAME = "Chased"
RADII = (9.0, 9.5, 10.0, 10.5)
"""Of the laps, in cells; one for each action."""
LEG_RAD = 0.35
"""Angle around the middle that one order covers: a second's run."""
OWN, ENEMY = 1, 2
SCENARIO: dict[str, Any] = {
    "format": "sc2pool-standin-scenario/1",
    "name": MAP_NAME,
    "size": [88, 88],
    "playable_area": [[24, 24], [64, 64]],
    "fog": False,
    "time_limit_loops": 1 << 18,
    "units": [
        {"type": "Zergling", "owner": OWN, "count": 1, "place": "side"},
        {"type": "Roach", "owner": ENEMY, "count": 2, "place": "opposite"},
    ],
    "rules": [],
}
MIDDLE = np.array([44.0, 44.0])


def write_map(maps: Path) -> None:
    """Write the map into an installation's folder of maps."""
    (maps / f"{MAP_NAME}.SC2Map").write_text(json.dumps(SCENARIO))


class Chased(Task):
    """Run on. Observation: own place and offset of the nearest roach, in tens of cells."""

    map_name: ClassVar[str] = MAP_NAME
    step_mul: ClassVar[int] = 4
    observation_space = spaces.Box(-5.0, 5.0, (4,), np.float32)
    action_space = spaces.Discrete(len(RADII))

    died = False

    def act(self, action: int) -> Commands:
        units = self.lazy_observation.columns
        mine = [row for row, owner in enumerate(units.alliance) if owner == OWN]
        if not mine:
            return []
        (row,) = mine
        angle = math.atan2(units.y[row] - MIDDLE[1], units.x[row] - MIDDLE[0]) + LEG_RAD
        radius = RADII[int(action)]
        target = MIDDLE + radius * np.array([math.cos(angle), math.sin(angle)])
        return [commands.move([units.tag[row]], (float(target[0]), float(target[1])))]

    def observe(self) -> NDArray[np.float32]:
        units = self.lazy_observation.columns
        points = np.column_stack([units.x, units.y])
        owners = np.array(units.alliance)
        mine, theirs = points[owners == OWN], points[owners != OWN]
        self.died = len(mine) == 0
        seen = np.zeros(4, np.float32)
        if not self.died:
            offsets = theirs - mine
            nearest = offsets[np.hypot(*offsets.T).argmin()]
            seen[:] = [*((mine[0] - MIDDLE) / 10.0), *(nearest / 10.0)]
        return seen

    def reward(self) -> float:
        return -1.0 if self.died else 0.01

    def info(self) -> dict[str, Any]:
        return {"died": True} if self.died else {}
