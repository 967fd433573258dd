"""The observation: the world as the client sees it.

Grids that do not change are kept as bytes in `Terrain`.

Rules it keeps: units appear in the order of their creation; enemies out of sight do not appear;
only the client's own units show orders and weapons; deaths and action errors appear once, in the
first observation after them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from s2clientprotocol import common_pb2 as common
from s2clientprotocol import raw_pb2 as raw_pb
from s2clientprotocol import sc2api_pb2 as sc_pb
from s2clientprotocol import score_pb2 as score_pb

from sc2pool.standin.abilities import (
    ABILITY_BY_ID,
    ABILITY_BY_KIND,
    FIGHTER_ABILITIES,
    POINT_OR_UNIT,
    WALKER_ABILITIES,
    OrderKind,
)
from sc2pool.standin.game import Game
from sc2pool.standin.state import PLAYER_ID, State
from sc2pool.standin.terrain import FOGGED, GROUND_Z, VISIBLE, Terrain
from sc2pool.standin.unit_types import UNIT_TYPES, UnitType
from sc2pool.standin.world import ENEMY, ME, NEUTRAL, Unit, World

FOOD_CAP = 200
_ALLIANCE = {ME: raw_pb.Self, NEUTRAL: raw_pb.Neutral}


def observation(state: State, request: sc_pb.RequestObservation, response: sc_pb.Response) -> None:
    """Everything that the joined interface requested, at the current loop."""
    game = state.playing()
    world = game.world
    reply = response.observation
    reply.action_errors.extend(state.action_errors)
    state.action_errors.clear()
    if state.created().scenario.stamp:
        reply.chat.add(player_id=PLAYER_ID, message=state.provenance.text(world.loop))
    seen = reply.observation
    seen.game_loop = world.loop
    _fill_common(seen.player_common, world)
    if state.options.score:
        _fill_score(seen.score, world)
    if state.options.raw:
        _fill_raw(seen.raw_data, game, fog=game.fog and not request.disable_fog)
    army = world.army
    if army.mobile:
        seen.abilities.extend(_FIGHTERS_CAN if army.armed else _WALKERS_CAN)
    world.dead_tags.clear()
    reply.player_result.extend(player_results(state))


def player_results(state: State) -> list[sc_pb.PlayerResult]:
    """Each player's result; empty before the end."""
    result = state.playing().result
    if result is None:
        return []
    results = [sc_pb.PlayerResult(player_id=PLAYER_ID, result=result)]
    if state.created().computer is not None:
        results.append(sc_pb.PlayerResult(player_id=PLAYER_ID + 1, result=_OPPOSITE[result]))
    return results


_OPPOSITE = {
    sc_pb.Victory: sc_pb.Defeat,
    sc_pb.Defeat: sc_pb.Victory,
    sc_pb.Tie: sc_pb.Tie,
}


def _fill_common(player: sc_pb.PlayerCommon, world: World) -> None:
    army = world.army
    player.player_id = PLAYER_ID
    player.minerals = player.vespene = 0
    player.food_cap = FOOD_CAP
    player.food_used = player.food_army = int(army.food)
    player.food_workers = player.idle_worker_count = 0
    player.army_count = army.count
    player.warp_gate_count = player.larva_count = 0


def _fill_score(score: score_pb.Score, world: World) -> None:
    score.score_type = score_pb.Score.Curriculum
    score.score = world.score
    army, ledger, details = world.army, world.ledger, score.score_details
    details.CopyFrom(_BLANK_DETAILS)
    used_minerals = army.minerals + ledger.lost_minerals
    used_vespene = army.vespene + ledger.lost_vespene
    details.total_value_units = used_minerals + used_vespene
    details.killed_value_units = ledger.killed_value
    details.food_used.army = army.food
    details.killed_minerals.army = ledger.killed_minerals
    details.killed_vespene.army = ledger.killed_vespene
    details.lost_minerals.army = ledger.lost_minerals
    details.lost_vespene.army = ledger.lost_vespene
    details.used_minerals.army = army.minerals
    details.used_vespene.army = army.vespene
    details.total_used_minerals.army = used_minerals
    details.total_used_vespene.army = used_vespene
    details.total_damage_dealt.life = ledger.dealt_life
    details.total_damage_dealt.shields = ledger.dealt_shields
    details.total_damage_taken.life = ledger.taken_life
    details.total_damage_taken.shields = ledger.taken_shields


def _blank_details() -> score_pb.ScoreDetails:
    """Every field set to zero, as the game sends them."""
    details = score_pb.ScoreDetails()
    for field in details.DESCRIPTOR.fields:
        if field.message_type is None:
            setattr(details, field.name, 0.0)
        else:
            part = getattr(details, field.name)
            for number in field.message_type.fields:
                setattr(part, number.name, 0.0)
    return details


_BLANK_DETAILS = _blank_details()


def _fill_raw(raw: raw_pb.ObservationRaw, game: Game, *, fog: bool) -> None:
    world, terrain = game.world, game.terrain
    raw.player.camera.x = (terrain.x0 + terrain.x1) / 2
    raw.player.camera.y = (terrain.y0 + terrain.y1) / 2
    raw.player.camera.z = GROUND_Z
    lit = _lit_cells(world, terrain) if fog else None
    for unit in world.units:
        if lit is None or _in_sight(unit, terrain, lit):
            _fill_unit(raw.units.add(), unit, world.loop)
    state = raw.map_state
    for grid, bits in ((state.visibility, 8), (state.creep, 1)):
        grid.bits_per_pixel = bits
        grid.size.x, grid.size.y = terrain.width, terrain.height
    state.visibility.data = (
        terrain.lit_bytes
        if lit is None
        else np.where(lit, VISIBLE, FOGGED).astype(np.uint8).tobytes()
    )
    state.creep.data = terrain.creep_bits
    if world.dead_tags:
        raw.event.dead_units.extend(world.dead_tags)


def _lit_cells(world: World, terrain: Terrain) -> NDArray[np.bool_]:
    return terrain.seen_from((unit.x, unit.y, unit.type.sight) for unit in world.owned_by(ME))


def _in_sight(unit: Unit, terrain: Terrain, lit: NDArray[np.bool_]) -> bool:
    x, y = min(int(unit.x), terrain.width - 1), min(int(unit.y), terrain.height - 1)
    return unit.owner != ENEMY or bool(lit[y, x])


def _fill_unit(shown: raw_pb.Unit, unit: Unit, loop: int) -> None:
    shown.CopyFrom(_TEMPLATES[unit.type])
    shown.tag = unit.tag
    shown.owner = unit.owner
    shown.alliance = _ALLIANCE.get(unit.owner, raw_pb.Enemy)
    shown.pos.x = unit.x
    shown.pos.y = unit.y
    shown.facing = unit.facing
    if unit.type.invulnerable:
        return
    shown.health = max(unit.life, 0.0)
    shown.shield = unit.shields
    shown.energy = unit.energy
    if unit.owner != ME:
        return
    shown.weapon_cooldown = max(unit.ready_at - loop, 0.0)
    shown.engaged_target_tag = unit.engaged
    if unit.order.kind:
        _fill_orders(shown, unit)


def _fill_orders(shown_unit: raw_pb.Unit, unit: Unit) -> None:
    for order in (unit.order, *unit.queue):
        shown = shown_unit.orders.add(ability_id=ABILITY_BY_KIND[order.kind])
        if order.target_tag:
            shown.target_unit_tag = order.target_tag
        elif order.kind != OrderKind.HOLD:
            pos = shown.target_world_space_pos
            pos.x, pos.y, pos.z = order.x, order.y, GROUND_Z


def _template(kind: UnitType) -> raw_pb.Unit:
    """The fields of a unit that depend on its type alone."""
    unit = raw_pb.Unit(
        display_type=raw_pb.Visible,
        unit_type=kind.id,
        pos=common.Point(z=GROUND_Z),
        radius=kind.radius,
        build_progress=1.0,
        cloak=raw_pb.NotCloaked,
        is_selected=False,
        is_on_screen=True,
        is_blip=False,
        is_flying=False,
        is_burrowed=False,
        is_hallucination=False,
        is_active=False,
        is_powered=False,
    )
    if not kind.invulnerable:
        unit.health_max = kind.life
        unit.shield_max = kind.shields
        unit.energy_max = 0.0
        unit.attack_upgrade_level = unit.armor_upgrade_level = unit.shield_upgrade_level = 0
    return unit


_TEMPLATES = {kind: _template(kind) for kind in UNIT_TYPES}


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
