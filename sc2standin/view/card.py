"""The command card: what the selected units can do now.

Rule it keeps: as in the real game, an ability that none of them can use now is not on it.
"""

from __future__ import annotations

from s2clientprotocol import common_pb2 as common
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.data.abilities import available_to, needs_target
from sc2standin.data.spells import ABILITIES_OF
from sc2standin.simulation.economy.economy import Economy
from sc2standin.simulation.economy.offers import can_use
from sc2standin.simulation.units import Unit
from sc2standin.simulation.world import World


class CardView:
    """The abilities in the observation; set again when they have changed."""

    def __init__(
        self, seen: sc_pb.Observation, player: int, economy: Economy | None, world: World
    ) -> None:
        self._seen, self._player, self._economy, self._world = seen, player, economy, world
        self._selected: tuple[Unit, ...] = ()
        """The units whose abilities are shown."""
        self._shown: list[int] = []

    def update(self, selected: tuple[Unit, ...]) -> None:
        """Show what the selected units can do."""
        changes = self._economy is not None or any(
            one.type.name in ABILITIES_OF for one in selected
        )
        if selected == self._selected and not (selected and changes):
            return
        self._selected = selected
        card = _possible(selected, self._player, self._economy, self._world.loop)
        if card == self._shown:
            return
        self._shown = card
        del self._seen.abilities[:]
        self._seen.abilities.extend(
            common.AvailableAbility(ability_id=ability_id, requires_point=needs_target(ability_id))
            for ability_id in card
        )


def _possible(
    selected: tuple[Unit, ...], player: int, economy: Economy | None, loop: int
) -> list[int]:
    """The abilities of these units together; those of other players have none for this one."""
    possible: dict[int, None] = {}
    for unit in selected:
        if unit.owner == player:
            for ability_id in available_to(unit.type):
                if ability_id not in possible and can_use(economy, unit, ability_id, loop):
                    possible[ability_id] = None
    return list(possible)
