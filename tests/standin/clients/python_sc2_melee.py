"""Three bots that play a melee with python-sc2's helpers, and print their results as JSON.

`python python_sc2_melee.py Rush|Builder|Mechanic` starts one of the three bots.

`Rush` sends all workers to the enemy. `Builder` walls its ramp, expands, spreads its workers,
trains marines, and then leaves. `Mechanic` leaves the game as soon as it has an orbital
command, a factory with a tech lab, cyclones, and a barracks that has moved.
"""

from __future__ import annotations

import json
import random
import sys
from typing import Any

from sc2 import maps
from sc2.bot_ai import BotAI
from sc2.data import Difficulty, Race
from sc2.ids.ability_id import AbilityId
from sc2.ids.unit_typeid import UnitTypeId
from sc2.main import run_game
from sc2.player import Bot, Computer
from sc2.position import Point2

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


class Mechanic(BotAI):
    async def on_start(self) -> None:
        self.client.game_step = 8
        reached.update(errors=[], mules=0, lifted=False)

    async def on_step(self, _iteration: int) -> None:
        reached["errors"] += [error.result for error in self.state.action_errors]
        if not self.townhalls:
            return
        await self.distribute_workers()
        await self.build_town()
        self.use_orbital_command()
        await self.move_barracks()
        for factory in self.structures(UnitTypeId.FACTORY).ready.idle:
            if not factory.has_add_on and self.can_afford(UnitTypeId.FACTORYTECHLAB):
                factory.build(UnitTypeId.FACTORYTECHLAB)
        self.train(UnitTypeId.CYCLONE)
        reached["cyclones"] = self.units(UnitTypeId.CYCLONE).amount
        reached["labs"] = [one.has_techlab for one in self.structures(UnitTypeId.FACTORY)]
        reached["mules"] = max(reached["mules"], self.units(UnitTypeId.MULE).amount)
        landed = reached["lifted"] and self.structures(UnitTypeId.BARRACKS)
        if reached["cyclones"] >= 2 and landed:
            await self.client.leave()

    async def build_town(self) -> None:
        hall = self.townhalls.first
        front = hall.position.towards(self.game_info.map_center, 8)
        waits = self.tech_requirement_progress(UnitTypeId.ORBITALCOMMAND) == 1
        upgraded = hall.type_id == UnitTypeId.ORBITALCOMMAND
        if hall.is_idle and self.supply_workers < 20 and (upgraded or not waits):
            self.train(UnitTypeId.SCV)
        if self.supply_left < 4 and not self.already_pending(UnitTypeId.SUPPLYDEPOT):
            await self.build_once(UnitTypeId.SUPPLYDEPOT, front)
        if self.structures.of_type({UnitTypeId.BARRACKS, UnitTypeId.BARRACKSFLYING}):
            await self.build_gas(hall.position)
            if not self.structures(UnitTypeId.FACTORY):
                await self.build_once(UnitTypeId.FACTORY, front, addon_place=True)
        else:
            await self.build_once(UnitTypeId.BARRACKS, front, addon_place=True)

    async def build_once(self, kind: UnitTypeId, near: Point2, addon_place: bool = False) -> None:
        can = self.can_afford(kind) and self.tech_requirement_progress(kind) == 1
        if can and not self.already_pending(kind) and self.workers.gathering:
            place = await self.find_placement(kind, near, addon_place=addon_place)
            if place is not None:
                self.workers.gathering.closest_to(place).build(kind, place)

    async def build_gas(self, near: Point2) -> None:
        taken = self.gas_buildings
        free = [
            geyser
            for geyser in self.vespene_geyser.closer_than(10, near)
            if not taken or taken.closest_distance_to(geyser) > 1
        ]
        pending = self.already_pending(UnitTypeId.REFINERY)
        if free and self.can_afford(UnitTypeId.REFINERY) and not pending:
            await self.build(UnitTypeId.REFINERY, near=free[0])

    def use_orbital_command(self) -> None:
        if self.tech_requirement_progress(UnitTypeId.ORBITALCOMMAND) == 1:
            for hall in self.townhalls(UnitTypeId.COMMANDCENTER).idle:
                if self.can_afford(UnitTypeId.ORBITALCOMMAND):
                    hall(AbilityId.UPGRADETOORBITAL_ORBITALCOMMAND)
        for hall in self.townhalls(UnitTypeId.ORBITALCOMMAND):
            if hall.energy >= 50:
                field = self.mineral_field.closest_to(hall)
                hall(AbilityId.CALLDOWNMULE_CALLDOWNMULE, field)

    async def move_barracks(self) -> None:
        if not self.structures(UnitTypeId.FACTORY) or reached["lifted"]:
            return
        for barracks in self.structures(UnitTypeId.BARRACKS).ready.idle:
            barracks(AbilityId.LIFT)
        for barracks in self.structures(UnitTypeId.BARRACKSFLYING).idle:
            place = await self.find_placement(
                AbilityId.LAND_BARRACKS, barracks.position.towards(self.townhalls.first, -3)
            )
            if place is not None:
                barracks(AbilityId.LAND, place)
                reached["lifted"] = True


if __name__ == "__main__":
    random.seed(1)  # python-sc2 chooses places at random
    bot = {"Rush": Rush, "Builder": Builder, "Mechanic": Mechanic}[sys.argv[1]]()
    result = run_game(
        maps.get("AcropolisLE"),
        [Bot(Race.Terran, bot), Computer(Race.Zerg, Difficulty.VeryEasy)],
        realtime=False,
        random_seed=2,
        game_time_limit=600,
    )
    print(json.dumps({**reached, "result": getattr(result, "name", str(result))}))
