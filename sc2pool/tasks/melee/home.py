"""The learner's town in a melee: a `Town` around its first command centre.

Rules: only what lies near the command centre belongs to it; structures stand on cells of the
placement grid, with a cell between two of them, so that units can pass.
"""

from __future__ import annotations

import math

from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.tasks.melee.grid import bits_of
from sc2pool.tasks.minigames.geometry import PlayableArea
from sc2pool.tasks.minigames.towns.town import Town, at
from sc2pool.tasks.minigames.towns.unit_types import COMMAND_CENTER, GEYSER, MINERAL_FIELD

MINERAL_FIELDS = frozenset({341, 483, 146, 147, 665, 666, 796, 797, 884, 885, 886, 887})
"""The types of mineral fields on the maps of the real game."""
GEYSERS = frozenset({342, 343, 344, 880, 881})
"""The types of geysers."""
NEAR_CELLS = 12.0
"""How far from the command centre its mineral fields and geysers lie at most."""
BUILD_CELLS = 15.0
"""How far from the command centre structures are put."""
PASSAGE_CELLS = 1.0
"""Free cells between two structures."""


class Home(Town):
    """The town around the first command centre of an observation.

    Attributes:
        centre: where the command centre stands.
    """

    def __init__(self, game_info: sc_pb.ResponseGameInfo, observation: sc_pb.Observation) -> None:
        area = PlayableArea.of(game_info)
        centres = [
            at(unit)
            for unit in observation.raw_data.units
            if unit.unit_type == COMMAND_CENTER and unit.alliance == 1
        ]
        self.centre = centres[0] if centres else area.centre
        x, y = self.centre
        near = PlayableArea(
            *area.clamp(x - BUILD_CELLS, y - BUILD_CELLS),
            *area.clamp(x + BUILD_CELLS, y + BUILD_CELLS),
        )
        super().__init__(near, bits_of(game_info.start_raw.placement_grid), PASSAGE_CELLS)

    def update(self, observation: sc_pb.Observation) -> None:
        super().update(observation)
        for name, types in ((MINERAL_FIELD, MINERAL_FIELDS), (GEYSER, GEYSERS)):
            found = [unit for kind in sorted(types) for unit in self._units.get(kind, ())]
            self._units[name] = [
                unit for unit in found if math.dist(at(unit), self.centre) < NEAR_CELLS
            ]
