"""Debug commands change the world directly, or crash, hang or end the process.

The whole request is checked before any command is carried out. Commands that crash, hang or end the
process take effect at once, or after the delay that they name. As in the real game, commands
that change the world or end the game take effect in the next loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from s2clientprotocol import debug_pb2 as debug_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.data.research import RESEARCH
from sc2standin.map_reader.scenario import MAX_UNITS
from sc2standin.process.state import Fate, RequestRefused, State
from sc2standin.simulation.game import Game
from sc2standin.simulation.units import NEUTRAL

MAX_SCORE = 1_000_000_000
GIFT = 5000
"""The amount of minerals or gas that a client gets by a debug command."""
_FATES = {
    debug_pb.DebugTestProcess.hang: Fate.HANG,
    debug_pb.DebugTestProcess.crash: Fate.CRASH,
    debug_pb.DebugTestProcess.exit: Fate.EXIT,
}
_RESULTS = {
    debug_pb.DebugEndGame.Surrender: sc_pb.Defeat,
    debug_pb.DebugEndGame.DeclareVictory: sc_pb.Victory,
}


def debug(state: State, request: sc_pb.RequestDebug, response: sc_pb.Response) -> None:
    """Carry out the commands, in order."""
    response.debug.SetInParent()
    game = state.playing()
    kinds = [command.WhichOneof("command") for command in request.debug]
    if None in kinds:
        raise RequestRefused("An empty debug command")
    if state.created().scenario.canned and not _CHANGING.isdisjoint(kinds):
        raise RequestRefused("Nothing can be changed on a canned map, only ended")
    for command in request.debug:
        _check_numbers(command)
    births = [command.create_unit for command in request.debug if command.HasField("create_unit")]
    _check_births(state, births)
    game.units_asked[state.player_id] += _count(births)
    for kind, command in zip(kinds, request.debug, strict=True):
        if kind == "test_process":
            _test_process(state, command.test_process)
        elif kind in _COMMANDS:
            state.ask(partial(_COMMANDS[kind], game, state.player_id, getattr(command, kind)))


def _check_numbers(command: debug_pb.DebugCommand) -> None:
    if not abs(command.score.score) <= MAX_SCORE:
        raise RequestRefused(f"A score of {command.score.score} is out of range")
    if not math.isfinite(command.unit_value.value):
        raise RequestRefused(f"{command.unit_value.value} is not a value for a unit")


def _count(births: list[debug_pb.DebugCreateUnit]) -> int:
    return sum(max(1, birth.quantity) for birth in births)


def _check_births(state: State, births: list[debug_pb.DebugCreateUnit]) -> None:
    game = state.playing()
    for birth in births:
        if game.scenario.creatable(birth.unit_type) is None:
            raise RequestRefused(
                f"Unknown unit type {birth.unit_type}: the stand-in has the units and structures "
                "of melee games; on SMAC's maps, those of SMAC"
            )
        if not 1 <= birth.owner <= NEUTRAL:
            raise RequestRefused(f"No such player: {birth.owner}")
        if not game.terrain.on_map(birth.pos.x, birth.pos.y):
            raise RequestRefused(f"({birth.pos.x}, {birth.pos.y}) is not on the map")
    # Do not count the other client's new units, because its requests arrive at random times.
    asked = game.units_asked[state.player_id] + _count(births)
    if len(game.world.units) + asked > MAX_UNITS:
        raise RequestRefused(f"Too many units: the stand-in's limit is {MAX_UNITS}")


def _create_unit(game: Game, _player: int, create: debug_pb.DebugCreateUnit) -> None:
    place = game.terrain.clamp(create.pos.x, create.pos.y)
    kind = game.scenario.creatable(create.unit_type)
    assert kind is not None  # `_check_births` has checked the type
    if game.routes is not None and kind.mobile and not kind.aloft:
        game.routes.update()
        place = game.routes.blocks.free_point(*place)
    units = game.world.spawn(kind, create.owner, [place] * max(1, create.quantity))
    for unit in units if not game.world.reaction_loops else ():
        unit.ready_at = game.world.loop + 1.0  # a client can see a new unit before the unit fires
    game.employ(units)


def _kill_unit(game: Game, _player: int, kill: debug_pb.DebugKillUnit) -> None:
    world = game.world
    world.doomed += [tag for tag in kill.tag if tag in world.by_tag]


def _set_unit_value(game: Game, _player: int, change: debug_pb.DebugSetUnitValue) -> None:
    world = game.world
    unit = world.by_tag.get(change.unit_tag)
    if unit is None:
        return
    if change.unit_value == debug_pb.DebugSetUnitValue.Life:
        if unit.type.invulnerable:
            return
        unit.life = min(change.value, unit.type.life)
        if unit.life <= 0:
            world.doomed.append(unit.tag)
    elif change.unit_value == debug_pb.DebugSetUnitValue.Shields:
        unit.shields = min(max(change.value, 0.0), unit.type.shields)
    else:
        unit.energy = min(max(change.value, 0.0), unit.type.energy)


def _set_score(game: Game, player: int, score: debug_pb.DebugSetScore) -> None:
    game.world.scores[player] = int(score.score)


def _set_state(game: Game, player: int, change: debug_pb.DebugGameState.ValueType) -> None:
    game.world.cheats ^= {(player, change)}  # the same command sent again restores the rule
    if change == debug_pb.upgrade:
        _upgrade(game, player)
    if change == debug_pb.show_map:
        _lift_fog(game, player)
    economy = game.economies.get(player)
    if economy is None:
        return
    if change in (debug_pb.minerals, debug_pb.all_resources):
        economy.minerals += GIFT
    if change in (debug_pb.gas, debug_pb.all_resources):
        economy.vespene += GIFT


def _lift_fog(game: Game, player: int) -> None:
    """Lift the fog for a player, or restore it."""
    sight = game.sight_of(player)
    if sight is not None:
        sight.is_lifted = not sight.is_lifted


def _upgrade(game: Game, player: int) -> None:
    """Give a player each missing upgrade; of an upgrade with levels, give only the next level."""
    if game.scenario.canned:
        return
    done = set(game.world.upgrades.of(player))
    for one in RESEARCH:
        if one.id not in done and (not one.after or one.after in done):
            game.world.upgrade(player, one.id)


def _end_game(game: Game, player: int, end: debug_pb.DebugEndGame) -> None:
    game.end(player, _RESULTS[end.end_result])


def _test_process(state: State, test: debug_pb.DebugTestProcess) -> None:
    state.fate = _FATES[test.test]
    state.fate_delay_s = max(0, test.delay_ms) / 1000.0


# Drawing commands and the game state `cooldown` are missing, because they change nothing.
_COMMANDS: dict[str, Callable[[Game, int, Any], None]] = {
    "create_unit": _create_unit,
    "kill_unit": _kill_unit,
    "unit_value": _set_unit_value,
    "score": _set_score,
    "end_game": _end_game,
    "game_state": _set_state,
}

_CHANGING = frozenset({"create_unit", "kill_unit", "unit_value", "score"})
"""The commands that change observations."""
