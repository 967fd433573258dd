"""A bot that calls each helper of python-sc2 once, and prints the results as JSON.

`python python_sc2_bot.py MAP REPLAY` starts the bot. The bot plays until the second step, saves the
replay and leaves.
"""

from __future__ import annotations

import json
import sys
from typing import Any, ClassVar

from sc2 import maps
from sc2.bot_ai import BotAI
from sc2.data import Race
from sc2.ids.ability_id import AbilityId
from sc2.ids.unit_typeid import UnitTypeId
from sc2.ids.upgrade_id import UpgradeId
from sc2.main import run_game
from sc2.player import Bot


class Asking(BotAI):
    said: ClassVar[dict[str, Any]] = {}

    async def on_step(self, iteration: int) -> None:
        if iteration == 1:
            await self.client.leave()
            return
        marine = self.units.first
        inside = marine.position.towards(self.game_info.playable_area.center, 5)
        self.said |= {
            "costs": [
                [(cost := self.calculate_cost(kind)).minerals, cost.vespene]
                for kind in (UnitTypeId.MARINE, UnitTypeId.HIVE, UpgradeId.STIMPACK)
            ],
            "supply": self.calculate_supply_cost(UnitTypeId.ZERGLING),
            "value": self.calculate_unit_value(UnitTypeId.ORBITALCOMMAND).minerals,
            "can_afford": self.can_afford(UnitTypeId.MARINE),
            "pending": [
                self.already_pending(UnitTypeId.BARRACKS),
                self.already_pending_upgrade(UpgradeId.STIMPACK),
                self.structure_type_build_progress(UnitTypeId.BARRACKS),
                self.tech_requirement_progress(UnitTypeId.BARRACKS),
            ],
            "dps": [marine.ground_dps, marine.air_range, marine.movement_speed],
            "damage": marine.calculate_damage_vs_target(marine)[0],
            "place": await self.can_place(
                UnitTypeId.SUPPLYDEPOT,
                [inside, self.game_info.map_center.offset((-31, -31))],
            ),
            "found": (await self.find_placement(UnitTypeId.BARRACKS, marine.position)) is not None,
            "distance": await self.client.query_pathing(marine, inside),
            "abilities": [
                ability.name for ability in (await self.get_available_abilities([marine]))[0]
            ],
            "can_cast": await self.can_cast(
                marine, AbilityId.ATTACK_ATTACK, only_check_energy_and_cooldown=True
            ),
        }


if __name__ == "__main__":
    map_name, replay = sys.argv[1:]
    run_game(
        maps.get(map_name),
        [Bot(Race.Terran, Asking())],
        realtime=False,
        save_replay_as=replay,
        random_seed=3,
    )
    print(json.dumps(Asking.said))
