"""The observation of an episode, kept from one request to the next.

The message is filled once; an update sets what may have changed since the last one. Grids that do
not change are kept as bytes in `Terrain`.

Rules it keeps: what is out of sight appears only as it is remembered; deaths appear once, in the
first observation after them; the result is the same as that of a message filled anew.
"""

from __future__ import annotations

import numpy as np
from s2clientprotocol import common_pb2 as common
from s2clientprotocol import raw_pb2 as raw_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.standin.data.abilities import (
    ABILITY_BY_ID,
    FIGHTER_ABILITIES,
    POINT_OR_UNIT,
    WALKER_ABILITIES,
    OrderKind,
)
from sc2pool.standin.data.unit_types import SCV
from sc2pool.standin.simulation.economy.economy import Economy
from sc2pool.standin.simulation.game import Game
from sc2pool.standin.simulation.terrain import FOGGED, HIDDEN, VISIBLE
from sc2pool.standin.simulation.world import ME, MOST_FOOD, Army, World
from sc2pool.standin.view.score import ScoreView
from sc2pool.standin.view.units import UnitsView

CAMERA_BELOW = 3.0
"""The camera stands this far below the point that it shows, in cells."""


class View:
    """The observation of one episode, with the parts that the interface asked for."""

    def __init__(self, game: Game, *, raw: bool, score: bool) -> None:
        self._game = game
        self._seen = sc_pb.Observation()
        self._score = ScoreView(self._seen.score, game) if score else None
        self._raw = RawView(self._seen.raw_data, game) if raw else None
        self._army: Army | None = None
        self._minerals = -1

    def update(self, *, fog: bool) -> sc_pb.Observation:
        """The observation at the current loop; it is valid until the next update.

        Args:
            fog: False to show the whole map also in an episode with fog.
        """
        seen, world = self._seen, self._game.world
        seen.game_loop = world.loop
        if self._minerals != world.minerals:
            self._minerals = seen.player_common.minerals = world.minerals
        if self._army is not world.army:
            self._army = world.army
            _fill_common(seen.player_common, world.army)
            del seen.abilities[:]
            if world.army.mobile:
                seen.abilities.extend(_FIGHTERS_CAN if world.army.armed else _WALKERS_CAN)
        if self._game.economy is not None:
            _fill_economy(seen.player_common, self._game.economy, world)
        if self._score is not None:
            self._score.update()
        if self._raw is not None:
            self._raw.update(fog=fog)
        world.dead_tags.clear()
        return seen


def _fill_common(player: sc_pb.PlayerCommon, army: Army) -> None:
    player.player_id = ME
    player.vespene = 0
    player.food_cap = min(MOST_FOOD, int(army.food_provided))
    player.food_used = int(army.food)
    player.food_army = int(army.food - army.workers)
    player.food_workers = army.workers
    player.idle_worker_count = 0
    player.army_count = army.soldiers
    player.warp_gate_count = 0


def _fill_economy(player: sc_pb.PlayerCommon, economy: Economy, world: World) -> None:
    """Set what an economy changes without a birth or a death."""
    player.vespene = economy.vespene
    player.food_used = int(economy.food_used)
    player.idle_worker_count = sum(
        unit.type is SCV and unit.owner == ME and unit.order.kind == OrderKind.IDLE
        for unit in world.walkers
    )


class RawView:
    """The raw interface: units, grids and deaths."""

    def __init__(self, raw: raw_pb.ObservationRaw, game: Game) -> None:
        self._raw, self._game = raw, game
        self._units = UnitsView(raw, game.world)
        self._all_lit = False
        """True if the grid shown is that of a map without fog."""
        terrain, state = game.terrain, raw.map_state
        raw.player.camera.x = (terrain.x0 + terrain.x1) / 2
        raw.player.camera.y = (terrain.y0 + terrain.y1) / 2 - CAMERA_BELOW
        for grid, bits in ((state.visibility, 8), (state.creep, 1)):
            grid.bits_per_pixel = bits
            grid.size.x, grid.size.y = terrain.width, terrain.height
        state.creep.data = terrain.creep_bits

    def update(self, *, fog: bool) -> None:
        """Show the current loop."""
        raw, world = self._raw, self._game.world
        sight = self._game.sight if fog else None
        if sight is not None:
            sight.look()
            grid = np.where(sight.lit, VISIBLE, np.where(sight.explored, FOGGED, HIDDEN))
            raw.map_state.visibility.data = grid.astype(np.uint8).tobytes()
            self._units.update([*sight.in_sight, *sight.snapshots])
        else:
            if not self._all_lit:
                raw.map_state.visibility.data = self._game.terrain.lit_bytes
            self._units.update(world.units)
        self._all_lit = sight is None
        raw.ClearField("event")
        if world.dead_tags:
            raw.event.dead_units.extend(world.dead_tags)


def _available(ability_ids: tuple[int, ...]) -> list[common.AvailableAbility]:
    return [
        common.AvailableAbility(
            ability_id=ability_id,
            requires_point=ABILITY_BY_ID[ability_id].target == POINT_OR_UNIT,
        )
        for ability_id in ability_ids
    ]


# The abilities of all own units together; the real game lists those of the selected units.
_FIGHTERS_CAN = _available(FIGHTER_ABILITIES)
_WALKERS_CAN = _available(WALKER_ABILITIES)
