"""Two python-sc2 bots that play a melee with its helpers, and print what they reached as JSON.

    python python_sc2_melee.py Rush|Builder

`Rush` sends all workers to the enemy. `Builder` walls its ramp, expands, spreads its workers and
trains marines, and leaves once it has all of it.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from sc2 import maps
from sc2.bot_ai import BotAI
from sc2.data import Difficulty, Race
from sc2.ids.unit_typeid import UnitTypeId
from sc2.main import run_game
from sc2.player import Bot, Computer

reached: dict[str, Any] = {}
DEPOTS = {UnitTypeId.SUPPLYDEPOT, UnitTypeId.SUPPLYDEPOTLOWERED}


class Rush(BotAI):
    async def on_step(self, iteration: int) -> None:
        if iteration == 0:
            for worker in self.workers:
                worker.attack(self.enemy_start_locations[0])
        score = self.state.score
        reached["killed"] = score.killed_value_units + score.killed_value_structures


class Builder(BotAI):
    async def on_start(self) -> None:
        self.client.game_step = 8
        reached["errors"] = []

    async def on_step(self, _iteration: int) -> None:
        reached["errors"] += [error.result for error in self.state.action_errors]
        await self.distribute_workers()
        if self.townhalls.amount < 2 and self.structures(UnitTypeId.BARRACKS):
            await self.expand_when_rich()
            return
        self.wall()
        self.train_all()
        self.note()
        if len(reached.get("marines", ())) >= 4 and reached["town_halls"] == 2:
            await self.client.leave()

    async def expand_when_rich(self) -> None:
        pending = self.already_pending(UnitTypeId.COMMANDCENTER)
        if self.can_afford(UnitTypeId.COMMANDCENTER) and not pending:
            await self.expand_now()

    def wall(self) -> None:
        ramp = self.main_base_ramp
        depots = self.structures.of_type(DEPOTS)
        places = [p for p in ramp.corner_depots if not depots or depots.closest_distance_to(p) > 1]
        kind, place = UnitTypeId.SUPPLYDEPOT, places[0] if places else None
        if place is None:
            kind, place = UnitTypeId.BARRACKS, ramp.barracks_correct_placement
            if self.structures(UnitTypeId.BARRACKS):
                return
        free = self.can_afford(kind) and not self.already_pending(kind)
        if free and self.tech_requirement_progress(kind) == 1 and self.workers.gathering:
            self.workers.gathering.closest_to(place).build(kind, place)

    def train_all(self) -> None:
        if self.can_afford(UnitTypeId.SCV) and self.supply_workers < 18:
            self.train(UnitTypeId.SCV)
        self.train(UnitTypeId.MARINE)

    def note(self) -> None:
        reached["marines"] = [unit.tag for unit in self.units(UnitTypeId.MARINE)]
        reached["town_halls"] = self.townhalls.ready.amount
        reached["surplus"] = [hall.surplus_harvesters for hall in self.townhalls.ready]
        reached["at_expansions"] = all(
            hall.position in self.expansion_locations_list for hall in self.townhalls
        )
        reached["wall"] = sum(
            any(one.distance_to(place) < 1 for place in self.main_base_ramp.corner_depots)
            for one in self.structures
        )


if __name__ == "__main__":
    bot = {"Rush": Rush, "Builder": Builder}[sys.argv[1]]()
    result = run_game(
        maps.get("Simple64"),
        [Bot(Race.Terran, bot), Computer(Race.Zerg, Difficulty.VeryEasy)],
        realtime=False,
        random_seed=2,
        game_time_limit=600,
    )
    print(json.dumps({**reached, "result": getattr(result, "name", str(result))}))
