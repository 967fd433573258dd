"""The observation of an episode, kept from one request to the next.

The message is filled once; an update sets what may have changed since the last one. Grids that do
not change are kept as bytes in `Terrain`.

Rules it keeps: enemies out of sight do not appear; deaths appear once, in the first observation
after them; the result is the same as that of a message filled anew.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from s2clientprotocol import common_pb2 as common
from s2clientprotocol import raw_pb2 as raw_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.standin.abilities import (
    ABILITY_BY_ID,
    FIGHTER_ABILITIES,
    POINT_OR_UNIT,
    WALKER_ABILITIES,
)
from sc2pool.standin.game import Game
from sc2pool.standin.terrain import FOGGED, GROUND_Z, VISIBLE
from sc2pool.standin.view.score import ScoreView
from sc2pool.standin.view.units import UnitsView
from sc2pool.standin.world import ENEMY, ME, Army, Unit

FOOD_CAP = 200


class View:
    """The observation of one episode, with the parts that the interface asked for."""

    def __init__(self, game: Game, *, raw: bool, score: bool) -> None:
        self._game = game
        self._seen = sc_pb.Observation()
        self._score = ScoreView(self._seen.score, game.world) if score else None
        self._raw = RawView(self._seen.raw_data, game) if raw else None
        self._army: Army | None = None

    def update(self, *, fog: bool) -> sc_pb.Observation:
        """The observation at the current loop; it is valid until the next update."""
        seen, world = self._seen, self._game.world
        seen.game_loop = world.loop
        if self._army is not world.army:
            self._army = world.army
            _fill_common(seen.player_common, world.army)
            del seen.abilities[:]
            if world.army.mobile:
                seen.abilities.extend(_FIGHTERS_CAN if world.army.armed else _WALKERS_CAN)
        if self._score is not None:
            self._score.update()
        if self._raw is not None:
            self._raw.update(fog=fog)
        world.dead_tags.clear()
        return seen


def _fill_common(player: sc_pb.PlayerCommon, army: Army) -> None:
    player.player_id = ME
    player.minerals = player.vespene = 0
    player.food_cap = FOOD_CAP
    player.food_used = player.food_army = int(army.food)
    player.food_workers = player.idle_worker_count = 0
    player.army_count = army.count
    player.warp_gate_count = player.larva_count = 0


class RawView:
    """The raw interface: units, grids and deaths."""

    def __init__(self, raw: raw_pb.ObservationRaw, game: Game) -> None:
        self._raw, self._game = raw, game
        self._units = UnitsView(raw, game.world)
        self._fog: bool | None = None
        terrain, state = game.terrain, raw.map_state
        raw.player.camera.x = (terrain.x0 + terrain.x1) / 2
        raw.player.camera.y = (terrain.y0 + terrain.y1) / 2
        raw.player.camera.z = GROUND_Z
        for grid, bits in ((state.visibility, 8), (state.creep, 1)):
            grid.bits_per_pixel = bits
            grid.size.x, grid.size.y = terrain.width, terrain.height
        state.creep.data = terrain.creep_bits

    def update(self, *, fog: bool) -> None:
        """Show the current loop."""
        raw, world, terrain = self._raw, self._game.world, self._game.terrain
        if fog:
            lit = terrain.seen_from((u.x, u.y, u.type.sight) for u in world.owned_by(ME))
            raw.map_state.visibility.data = (
                np.where(lit, VISIBLE, FOGGED).astype(np.uint8).tobytes()
            )
            self._units.update([unit for unit in world.units if _in_sight(unit, lit)])
        else:
            if self._fog is not False:
                raw.map_state.visibility.data = terrain.lit_bytes
            self._units.update(world.units)
        self._fog = fog
        raw.ClearField("event")
        if world.dead_tags:
            raw.event.dead_units.extend(world.dead_tags)


def _in_sight(unit: Unit, lit: NDArray[np.bool_]) -> bool:
    height, width = lit.shape
    x, y = min(int(unit.x), width - 1), min(int(unit.y), height - 1)
    return unit.owner != ENEMY or bool(lit[y, x])


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
