"""Drawn units on the map, and which agent each of them is.

The map gives the team's units types of their own, which only obey orders: the last nine of the
game's types, in the order of the names of the standard types. The enemies have standard types.

Source: `StarCraft2Env._init_ally_unit_types`, `_create_new_team` and `init_units`. Rules: agents
are numbered by type and place, enemies as the game lists them; nothing of a type is looked up by
name, which a game in another language has other ones of.
"""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

from s2clientprotocol import common_pb2, debug_pb2, raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.errors import ConfigError
from sc2pool.foreign import printable
from sc2pool.game.game import Game
from sc2pool.protocol.observed import Observed
from sc2pool.tasks.teams.smac.battle import Battle, Side, by_type_and_place, units_of
from sc2pool.tasks.teams.smac.rules import Rules
from sc2pool.tasks.teams.smac.scenarios import UnitType
from sc2pool.tasks.teams.smacv2.teams import MAPS, Drawn, RandomTeams
from sc2pool.units import Floats

_COPIED = sorted({kind for kinds in MAPS.values() for kind in kinds}, key=lambda kind: kind.name)
"""The types of which the map has copies, in their order."""
_TEAM, _ENEMY = 1, 2
"""The players."""
_first_copies: WeakKeyDictionary[Game, int] = WeakKeyDictionary()
"""The number of the first copy, which is the same in all episodes of a game process."""


async def copy_ids(game: Game) -> dict[UnitType, int]:
    """The number that the map gives the team's units of each type."""
    first = _first_copies.get(game)
    if first is None:
        asked = sc_pb.Request(data=sc_pb.RequestData(unit_type_id=True))
        first = len((await game.request(asked)).data.units) - len(_COPIED)
        _first_copies[game] = first
    return {kind: first + i for i, kind in enumerate(_COPIED)}


async def create(game: Game, drawn: Drawn, copies: dict[UnitType, int]) -> None:
    """Let the game create both sides with its next loop.

    Raises:
        ConfigError: it refuses: the map has no such types or places.
    """
    own = [copies[kind] for kind in drawn.allies]
    others = [kind.id for kind in drawn.enemies]
    units = [
        *_births(_TEAM, own, drawn.ally_places),
        *_births(_ENEMY, others, drawn.enemy_places),
    ]
    reply = await game.request(sc_pb.Request(debug=sc_pb.RequestDebug(debug=units)))
    if reply.error:
        words = printable(", ".join(reply.error))
        raise ConfigError(f"the game does not create the units: {words}")


def _births(player: int, unit_types: Sequence[int], places: Floats) -> list[debug_pb2.DebugCommand]:
    return [
        debug_pb2.DebugCommand(
            create_unit=debug_pb2.DebugCreateUnit(
                unit_type=unit_type, owner=player, pos=common_pb2.Point2D(x=x, y=y), quantity=1
            )
        )
        for unit_type, (x, y) in zip(unit_types, places.tolist(), strict=True)
    ]


def begun(
    teams: RandomTeams, rules: Rules, copies: dict[UnitType, int], observed: Observed
) -> Battle | None:
    """The battle that an observation shows; None if not all units are there yet."""
    own = sorted(units_of(observed, raw_pb2.Self), key=by_type_and_place)
    enemies = units_of(observed, raw_pb2.Enemy)
    if (len(own), len(enemies)) != (teams.n_agents, teams.n_enemies):
        return None
    allies = _side(own, teams.kinds, {copies[kind]: i for i, kind in enumerate(teams.kinds)})
    others = _side(enemies, teams.kinds, {kind.id: i for i, kind in enumerate(teams.kinds)})
    if allies is None or others is None:
        return None
    return Battle(teams, rules, allies, others, observed, recovery_counts=False)


def _side(
    units: Sequence[raw_pb2.Unit], kinds: tuple[UnitType, ...], index_of: dict[int, int]
) -> Side | None:
    """The units as a side; None if one is of another type."""
    if any(unit.unit_type not in index_of for unit in units):
        return None
    return Side(units, kinds, [index_of[unit.unit_type] for unit in units])
