"""The command card: what the selected units can do now.

Rule it keeps: as in the real game, an ability that is not paid for, whose requirements are not met,
or that brings home what no worker carries, is not on it.
"""

from __future__ import annotations

from s2clientprotocol import common_pb2 as common
from s2clientprotocol import error_pb2 as error_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.standin.data.abilities import (
    KIND_BY_ABILITY,
    RETURN,
    OrderKind,
    available_to,
    needs_target,
)
from sc2pool.standin.data.unit_types import UNIT_TYPES
from sc2pool.standin.simulation.economy.economy import Economy
from sc2pool.standin.simulation.economy.jobs import Site
from sc2pool.standin.simulation.world import Unit

_MADE_BY = {kind.build_ability_id: kind for kind in UNIT_TYPES if kind.build_ability_id}


class CardView:
    """The abilities in the observation; set again when they have changed."""

    def __init__(self, seen: sc_pb.Observation, player: int, economy: Economy | None) -> None:
        self._seen, self._player, self._economy = seen, player, economy
        self._selected: tuple[Unit, ...] = ()
        """The units whose abilities are shown."""
        self._shown: list[int] = []

    def update(self, selected: tuple[Unit, ...]) -> None:
        """Show what the selected units can do."""
        if selected == self._selected and (self._economy is None or not selected):
            return
        self._selected = selected
        card = _possible(selected, self._player, self._economy)
        if card == self._shown:
            return
        self._shown = card
        del self._seen.abilities[:]
        self._seen.abilities.extend(
            common.AvailableAbility(ability_id=ability_id, requires_point=needs_target(ability_id))
            for ability_id in card
        )


def _possible(selected: tuple[Unit, ...], player: int, economy: Economy | None) -> list[int]:
    """The abilities of these units together; those of other players have none for this one."""
    workable = [
        unit for unit in selected if unit.owner == player and not isinstance(unit.job, Site)
    ]
    abilities = dict.fromkeys(
        ability_id for unit in workable for ability_id in available_to(unit.type)
    )
    carried = any(any(unit.cargo) for unit in workable)
    return [
        ability_id for ability_id in abilities if _is_possible(ability_id, economy, carried=carried)
    ]


def _is_possible(ability_id: int, economy: Economy | None, *, carried: bool) -> bool:
    if KIND_BY_ABILITY.get(ability_id, OrderKind.IDLE) < OrderKind.GATHER:
        return True
    if economy is None:
        return False
    if ability_id == RETURN:
        return carried
    made = _MADE_BY.get(ability_id)
    return made is None or economy.allows(made) == error_pb.Success
