"""Calls every method of python-sc2's `Client` and `BotAI`, in the pool and under `run_game`.

Usage: `python python_sc2_calls.py INSTALLATION`.

The program prints JSON. For the pool and for `run_game`, the JSON has each call's result or error,
and the bot's view after the call.
"""

from __future__ import annotations

import inspect
import json
import os
import random
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from enum import Enum
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from s2clientprotocol import common_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

if __name__ == "__main__":
    os.environ |= {"SC2PATH": sys.argv[1], "SC2PF": "Linux"}  # python-sc2 reads these variables

from sc2.data import Alert, Race
from sc2.ids.ability_id import AbilityId
from sc2.ids.unit_typeid import UnitTypeId
from sc2.ids.upgrade_id import UpgradeId
from sc2.position import Point2
from sc2.unit import Unit

from sc2pool import RLBotAI, SC2GymEnv
from sc2pool.config import Computer

MARINE, SCV, DEPOT = UnitTypeId.MARINE, UnitTypeId.SCV, UnitTypeId.SUPPLYDEPOT
Call = Callable[["Calls"], Any]


def scv(bot: Calls) -> Unit:
    return bot.workers.sorted_by_distance_to(bot.start_location).first


def near(bot: Calls) -> Point2:
    return bot.start_location.towards(bot.game_info.map_center, 8).rounded


CLIENT: dict[str, Call] = {
    "observation": lambda bot: bot.client.observation(),
    "observation, of a later loop": lambda bot: bot.client.observation(bot.state.game_loop + 8),
    "get_game_data": lambda bot: bot.client.get_game_data(),
    "get_game_info": lambda bot: bot.client.get_game_info(),
    "dump_data": lambda bot: bot.client.dump_data(effect_id=False),
    "ping": lambda bot: bot.client.ping(),
    "save_replay": lambda bot: bot.client.save_replay("calls.SC2Replay"),
    "actions": lambda bot: bot.client.actions([scv(bot).move(near(bot))], return_successes=True),
    "query_pathing": lambda bot: bot.client.query_pathing(scv(bot), near(bot)),
    "query_pathings": lambda bot: bot.client.query_pathings([(scv(bot), near(bot))]),
    "query_building_placement": lambda bot: bot.client.query_building_placement(
        bot.game_data.units[DEPOT.value].creation_ability, [near(bot)]
    ),
    "query_available_abilities": lambda bot: bot.client.query_available_abilities([scv(bot)]),
    "query_available_abilities_with_tag": lambda bot: bot.client.query_available_abilities_with_tag(
        [scv(bot)]
    ),
    "chat_send": lambda bot: bot.client.chat_send("hello", False),
    "toggle_autocast": lambda bot: bot.client.toggle_autocast(
        [scv(bot)], AbilityId.EFFECT_REPAIR_SCV
    ),
    "move_camera": lambda bot: bot.client.move_camera(bot.start_location),
    "move_camera_spatial": lambda bot: bot.client.move_camera_spatial(Point2((3, 3))),
    "obs_move_camera": lambda bot: bot.client.obs_move_camera(bot.start_location),
    "debug_text_simple": lambda bot: bot.client.debug_text_simple("text"),
    "debug_text_screen": lambda bot: bot.client.debug_text_screen("text", (0.5, 0.5)),
    "debug_text_2d": lambda bot: bot.client.debug_text_2d("text", (0.5, 0.5)),
    "debug_text_world": lambda bot: bot.client.debug_text_world("text", scv(bot)),
    "debug_text_3d": lambda bot: bot.client.debug_text_3d("text", scv(bot)),
    "debug_line_out": lambda bot: bot.client.debug_line_out(scv(bot), bot.townhalls.first),
    "debug_box_out": lambda bot: bot.client.debug_box_out(scv(bot), bot.townhalls.first),
    "debug_box2_out": lambda bot: bot.client.debug_box2_out(scv(bot)),
    "debug_sphere_out": lambda bot: bot.client.debug_sphere_out(scv(bot), 1),
    "debug_create_unit": lambda bot: bot.client.debug_create_unit([(MARINE, 3, near(bot), 1)]),
    "debug_set_unit_value": lambda bot: bot.client.debug_set_unit_value(bot.units(MARINE), 2, 9),
    "debug_kill_unit": lambda bot: bot.client.debug_kill_unit(bot.units(MARINE).first),
    "debug_show_map": lambda bot: bot.client.debug_show_map(),
    "debug_control_enemy": lambda bot: bot.client.debug_control_enemy(),
    "debug_food": lambda bot: bot.client.debug_food(),
    "debug_free": lambda bot: bot.client.debug_free(),
    "debug_all_resources": lambda bot: bot.client.debug_all_resources(),
    "debug_god": lambda bot: bot.client.debug_god(),
    "debug_minerals": lambda bot: bot.client.debug_minerals(),
    "debug_gas": lambda bot: bot.client.debug_gas(),
    "debug_cooldown": lambda bot: bot.client.debug_cooldown(),
    "debug_tech_tree": lambda bot: bot.client.debug_tech_tree(),
    "debug_upgrade": lambda bot: bot.client.debug_upgrade(),
    "debug_fast_build": lambda bot: bot.client.debug_fast_build(),
    "debug_hang": lambda bot: bot.client.debug_hang(3600),
    "step": lambda bot: bot.client.step(4),
    "join_game": lambda bot: bot.client.join_game(race=Race.Terran),
    "quick_save": lambda bot: bot.client.quick_save(),
    "quick_load": lambda bot: bot.client.quick_load(),
    "quit": lambda bot: bot.client.quit(),
}
"""A call for each method, or for each case of a method. `leave` and `debug_leave` end the game."""
BOT: dict[str, Call] = {
    "alert": lambda bot: bot.alert(Alert.NuclearLaunchDetected),
    "get_available_abilities": lambda bot: bot.get_available_abilities([scv(bot)]),
    "expand_now": lambda bot: bot.expand_now(),
    "get_next_expansion": lambda bot: bot.get_next_expansion(),
    "distribute_workers": lambda bot: bot.distribute_workers(),
    "calculate_supply_cost": lambda bot: bot.calculate_supply_cost(MARINE),
    "can_feed": lambda bot: bot.can_feed(MARINE),
    "calculate_unit_value": lambda bot: bot.calculate_unit_value(MARINE),
    "calculate_cost": lambda bot: bot.calculate_cost(MARINE),
    "can_afford": lambda bot: bot.can_afford(SCV),
    "can_cast": lambda bot: bot.can_cast(scv(bot), AbilityId.ATTACK, bot.townhalls.first),
    "select_build_worker": lambda bot: bot.select_build_worker(near(bot)),
    "can_place_single": lambda bot: bot.can_place_single(DEPOT, near(bot)),
    "can_place": lambda bot: bot.can_place(DEPOT, [near(bot), bot.start_location]),
    "find_placement": lambda bot: bot.find_placement(DEPOT, near(bot)),
    "already_pending_upgrade": lambda bot: bot.already_pending_upgrade(UpgradeId.STIMPACK),
    "structure_type_build_progress": lambda bot: bot.structure_type_build_progress(DEPOT),
    "tech_requirement_progress": lambda bot: bot.tech_requirement_progress(DEPOT),
    "already_pending": lambda bot: bot.already_pending(SCV),
    "worker_en_route_to_build": lambda bot: bot.worker_en_route_to_build(DEPOT),
    "build": lambda bot: bot.build(DEPOT, near=near(bot)),
    "research": lambda bot: bot.research(UpgradeId.STIMPACK),
    "train": lambda bot: bot.train(SCV),
    "chat_send": lambda bot: bot.chat_send("hello"),
    "in_map_bounds": lambda bot: bot.in_map_bounds(near(bot)),
    "get_terrain_height": lambda bot: bot.get_terrain_height(near(bot)),
    "get_terrain_z_height": lambda bot: bot.get_terrain_z_height(near(bot)),
    "in_placement_grid": lambda bot: bot.in_placement_grid(near(bot)),
    "is_visible": lambda bot: bot.is_visible(near(bot)),
    "has_creep": lambda bot: bot.has_creep(near(bot)),
    "do": lambda bot: bot.do(scv(bot).stop(), ignore_warning=True),
    "synchronous_do": lambda bot: bot.synchronous_do(bot.townhalls.first.train(SCV)),
    "prevent_double_actions": lambda bot: bot.prevent_double_actions(scv(bot).stop()),
    "issue_events": lambda bot: bot.issue_events(),
    "square_to_condensed": lambda bot: bot.square_to_condensed(1, 2),
    "convert_tuple_to_numpy_array": lambda bot: bot.convert_tuple_to_numpy_array((1, 2)),
    "distance_math_hypot": lambda bot: bot.distance_math_hypot((1, 2), (4, 6)),
    "distance_math_hypot_squared": lambda bot: bot.distance_math_hypot_squared((1, 2), (4, 6)),
    "_advance_steps": lambda bot: bot._advance_steps(4),
    # The grid is read at the places of all structures, among them the one that `build` built.
    "in_pathing_grid": lambda bot: [bot.in_pathing_grid(one) for one in bot.structures],
}
PROPERTIES = (
    "time time_formatted start_location enemy_start_locations main_base_ramp units_created "
    "expansion_locations expansion_locations_list expansion_locations_dict owned_expansions "
    "structures_without_construction_SCVs step_time"
).split()
"""Properties of `BotAI`; the value of `step_time` depends on the machine."""
CALLS = {f"client.{name}": call for name, call in CLIENT.items()} | BOT


def told(value: Any) -> Any:
    """A call's result, in a form that can be compared."""
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, Unit):
        return value.type_id.name, value.tag
    if isinstance(value, dict):
        return {str(told(key)): told(one) for key, one in value.items()}
    if isinstance(value, set):
        return sorted(str(told(one)) for one in value)
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return [told(one) for one in value]
    plain = value is None or isinstance(value, bool | int | float | str)
    return value if plain else type(value).__name__


class Calls(RLBotAI):
    """Makes one call in each step, and leaves the game after the last call."""

    map_name = "Simple64"
    max_loops = 20_000
    opponents = (Computer(common_pb2.Terran, sc_pb.VeryEasy),)
    observation_space = spaces.Box(0, np.inf, (1,), np.float32)
    action_space = spaces.Discrete(1)
    leaves: ClassVar[str] = "leave"
    outcomes: ClassVar[dict[str, Any]] = {}
    seed: ClassVar[int] = 0

    async def on_start(self) -> None:
        Calls.seed = self.episode.seed if hasattr(self, "episode") else 0
        self.unit_command_uses_self_do = True
        self._left = list(CALLS.items()) if Calls.leaves == "leave" else []
        for name in PROPERTIES:
            Calls.outcomes[f"property {name}"] = told(getattr(self, name))
        Calls.outcomes["property step_time"] = None

    def observe(self) -> Any:
        return np.array([len(self.units)], np.float32)

    async def act(self, action: Any) -> None:
        del action
        self.note("sees")
        if not self._left:
            await getattr(self.client, Calls.leaves)()
            return
        self._name, call = self._left.pop(0)
        if self._name == "client.quit" and not in_pool:
            return  # the call would end the game, and with it `run_game`
        random.seed(1)  # a seed for python-sc2's random choice of places
        try:
            value = call(self)
            Calls.outcomes[self._name] = told(await value if inspect.isawaitable(value) else value)
        except Exception as error:
            Calls.outcomes[self._name] = f"raises {type(error).__name__}"

    async def on_end(self, game_result: Any) -> None:
        Calls.outcomes[f"client.{Calls.leaves}"] = game_result.name
        await super().on_end(game_result)

    def note(self, what: str) -> None:
        """Record the bot's view after the newest call."""
        name = getattr(self, "_name", "first")
        seen = self.state.game_loop, self.minerals, self.vespene, self.supply_used
        units = len(self.all_own_units), len(self.all_enemy_units), len(self.state.chat)
        Calls.outcomes[f"{name} {what}"] = [*seen, *units, len(self.state.action_errors)]


in_pool = True


def played_in_pool(installation: str) -> dict[str, Any]:
    with closing(SC2GymEnv(Calls, game=installation, serial=True)) as env:
        for leaves in ("debug_leave", "leave"):
            Calls.leaves = leaves
            env.reset(seed=1)
            over = False
            while not over:
                _, _, over, truncated, info = env.step(0)
                assert not truncated, info
    return dict(Calls.outcomes)


def played_by_run_game() -> dict[str, Any]:
    global in_pool  # noqa: PLW0603
    in_pool = False
    from sc2 import maps
    from sc2.data import Difficulty
    from sc2.main import run_game
    from sc2.player import Bot
    from sc2.player import Computer as RunGamesComputer

    Calls.outcomes.clear()
    seed = Calls.seed
    for leaves in ("debug_leave", "leave"):
        Calls.leaves = leaves
        players = [
            Bot(Race.Terran, Calls(policy=lambda _: 0)),
            RunGamesComputer(Race.Terran, Difficulty.VeryEasy),
        ]
        run_game(maps.get(Calls.map_name), players, realtime=False, random_seed=seed)
    return dict(Calls.outcomes)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # some of the calls write files into this folder
        pool = played_in_pool(sys.argv[1])
        files = sorted(path.name for path in Path(folder).iterdir())
        run_game = played_by_run_game()
        os.chdir("/")
    print(json.dumps({"pool": pool, "run_game": run_game, "files": files}))
