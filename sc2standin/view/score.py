"""The score and its details in the observation."""

from __future__ import annotations

from operator import attrgetter

from s2clientprotocol import score_pb2 as score_pb

from sc2standin.game_time import LOOPS_PER_DATA_S
from sc2standin.simulation.economy.economy import Economy
from sc2standin.simulation.game import Game
from sc2standin.simulation.world import Army, Ledger
from sc2standin.view.melee_score import fill_melee

_OF_LATER_BUILDS = ("current_apm", "current_effective_apm")
"""Fields that the game of the reported build does not have."""
_SUMS = attrgetter(*Ledger.__dataclass_fields__)


class ScoreView:
    """The score of one episode; filled again when it has changed."""

    def __init__(self, score: score_pb.Score, game: Game) -> None:
        self._score, self._world, self._player = score, game.world, game.viewer
        self._economy = game.economies.get(game.viewer)
        self._melee = game.scenario.melee is not None
        self._shown: object = None
        score.score_type = score_pb.Score.Melee if self._melee else score_pb.Score.Curriculum
        _set_to_zero(score.score_details)

    def update(self) -> None:
        """Show the current loop."""
        world = self._world
        economy = self._economy
        money = rates = None
        if economy is not None:
            rates = economy.earnings.rates(world.loop)
            self._show_idle(economy)
            money = (economy.earnings.collected, rates, economy.spent, economy.minerals)
        player = self._player
        army, ledger = world.army_of(player), world.ledger_of(player)
        upgrades = world.upgrades.count
        current = (world.score_of(player), army, money, _SUMS(ledger), upgrades)
        if current != self._shown:
            self._shown = current
            self._score.score = world.score_of(player)
            self._fill_details(army, ledger)
            if economy is not None and rates is not None:
                _fill_economy(self._score.score_details, army, economy, rates)
                if self._melee:
                    fill_melee(self._score, world, economy)

    def _show_idle(self, economy: Economy) -> None:
        """Show times, which change in every loop, in seconds of 16 loops."""
        details = self._score.score_details
        details.idle_worker_time = economy.idle_worker_loops / LOOPS_PER_DATA_S
        details.idle_production_time = economy.idle_production_loops / LOOPS_PER_DATA_S

    def _fill_details(self, army: Army, ledger: Ledger) -> None:
        details = self._score.score_details
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
        details.total_healed.life = ledger.healed_life


def _fill_economy(
    details: score_pb.ScoreDetails, army: Army, economy: Economy, rates: tuple[float, float]
) -> None:
    """Set what was earned and spent, and tell workers and structures from the army."""
    details.collected_minerals, details.collected_vespene = economy.earnings.collected
    details.collection_rate_minerals, details.collection_rate_vespene = rates
    details.spent_minerals, details.spent_vespene = economy.spent
    details.total_value_structures = army.structure_minerals
    details.total_value_units -= army.structure_minerals
    details.food_used.economy = army.workers
    details.food_used.army = army.food - army.workers


def _set_to_zero(details: score_pb.ScoreDetails) -> None:
    """Set every field, as the game does."""
    for field in details.DESCRIPTOR.fields:
        if field.name in _OF_LATER_BUILDS:
            continue
        if field.message_type is None:
            setattr(details, field.name, 0.0)
        else:
            part = getattr(details, field.name)
            for number in field.message_type.fields:
                setattr(part, number.name, 0.0)
