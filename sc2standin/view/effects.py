"""Effects of spells on the ground: in the raw interface, and the part that a player sees."""

from __future__ import annotations

from s2clientprotocol import common_pb2 as common
from s2clientprotocol import raw_pb2 as raw_pb

from sc2standin.simulation.game import Game
from sc2standin.simulation.world import Effect

SCANNER_SWEEP = 6


def seen_effects(game: Game) -> list[Effect]:
    """The player's own scans, and what spells show where it sees."""
    world, player, sight = game.world, game.viewer, game.sight
    if not world.scans and not world.effects:
        return []
    scans = [
        Effect(SCANNER_SWEEP, player, scan.x, scan.y, scan.radius)
        for scan in world.scans
        if scan.owner == player
    ]
    return scans + [
        effect
        for effect in world.effects
        if effect.owner == player or sight is None or sight.sees(effect.x, effect.y)
    ]


class EffectsView:
    """The effects in the raw interface of one player."""

    def __init__(self, raw: raw_pb.ObservationRaw, player: int) -> None:
        self._raw, self._player = raw, player
        self._shown: list[Effect] = []

    def update(self, effects: list[Effect]) -> None:
        """Show these effects."""
        if effects == self._shown:
            return
        self._shown = effects
        self._raw.ClearField("effects")
        for effect in effects:
            self._raw.effects.add(
                effect_id=effect.id,
                pos=[common.Point2D(x=effect.x, y=effect.y)],
                alliance=raw_pb.Self if effect.owner == self._player else raw_pb.Enemy,
                owner=effect.owner,
                radius=effect.radius,
            )
