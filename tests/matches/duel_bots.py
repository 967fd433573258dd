"""Bots for python-sc2 on the map of `MarineDuel`, with a learner and without one."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from sc2.bot_ai import BotAI
from sc2.data import Result
from sc2.units import Units

from sc2pool import commands
from sc2pool.commands import Commands
from sc2pool.tasks.bot import RLBotAI
from sc2pool.tasks.task import Task
from sc2pool.units import ENEMY, Kind, select

ENEMY_MARINES = Kind("Marine", ENEMY)
OWN_MARINES = Kind("Marine")

WAIT, ATTACK = 0, 1


class DuelBot(RLBotAI):
    """A learner's bot: attacks the enemy with the lowest tag, or waits."""

    map_name: ClassVar[str] = "MarineDuel"
    players: ClassVar[int] = 2
    max_loops: ClassVar[int | None] = 1920
    disable_fog: ClassVar[bool] = True
    action_space = spaces.Discrete(2)
    observation_space: spaces.Box = spaces.Box(0, 300, (3,), np.float32)

    def observe(self) -> Any:
        hit_points = [sum(unit.health for unit in side) for side in (self.units, self.enemy_units)]
        return np.array([self.player_id, *hit_points], np.float32)

    def act(self, action: int) -> None:
        if action == ATTACK and self.enemy_units:
            order_all(self.units, self.enemy_units)

    def reward(self) -> float:
        return float(self.state.game_loop)

    def info(self) -> dict[str, Any]:
        return {"loop": self.state.game_loop}


class DuelTask(Task):
    """A `Task` that does the same as `DuelBot`."""

    map_name: ClassVar[str] = "MarineDuel"
    players: ClassVar[int] = 2
    max_loops: ClassVar[int | None] = 1920
    disable_fog: ClassVar[bool] = True
    action_space = DuelBot.action_space
    observation_space: spaces.Box = DuelBot.observation_space

    def observe(self) -> Any:
        self.sides = select(self.lazy_observation, OWN_MARINES, ENEMY_MARINES)
        found = self.observation.raw_data.units
        hit_points = [sum(u.health for u in found if u.alliance == side) for side in (1, 4)]
        return np.array([self.observation.player_common.player_id, *hit_points], np.float32)

    def act(self, action: int) -> Commands:
        own, enemies = self.sides
        if action == WAIT or not len(enemies):
            return []
        return [commands.attack(sorted(own.tags), min(enemies.tags))]

    def reward(self) -> float:
        return float(self.lazy_observation.game_loop)

    def info(self) -> dict[str, Any]:
        return {"loop": self.lazy_observation.game_loop}


def order_all(own: Units, enemies: Units) -> None:
    """Let all own units attack the enemy with the lowest tag."""
    target = min(enemies, key=lambda unit: unit.tag)
    for unit in sorted(own, key=lambda unit: unit.tag):
        unit.attack(target)


class PlainDuelBot(BotAI):
    """A bot without a learner, which keeps the events that it gets.

    Args:
        attacks: True if the bot attacks; False if it waits.
        game_step: The bot's pace, in loops per step.
        gives_up_at: The iteration at which the bot leaves the game; -1 for never.
    """

    met: ClassVar[list[PlainDuelBot]] = []
    """The bots that have played in this process."""

    def __init__(
        self, attacks: bool = True, game_step: int | None = None, gives_up_at: int = -1
    ) -> None:
        super().__init__()
        self.attacks = attacks
        self.pace = game_step
        self.gives_up_at = gives_up_at
        self.loops: list[int] = []
        self.iterations: list[int] = []
        self.destroyed: list[int] = []
        self.created: list[int] = []
        self.ends: list[Result] = []

    async def on_start(self) -> None:
        self.met.append(self)
        if self.pace is not None:
            self.client.game_step = self.pace

    async def on_unit_created(self, unit: Any) -> None:
        self.created.append(unit.tag)

    async def on_unit_destroyed(self, unit_tag: int) -> None:
        self.destroyed.append(unit_tag)

    async def on_step(self, iteration: int) -> None:
        self.loops.append(self.state.game_loop)
        self.iterations.append(iteration)
        if iteration == self.gives_up_at:
            await self.client.leave()
        elif self.attacks and self.enemy_units:
            order_all(self.units, self.enemy_units)

    async def on_end(self, game_result: Result) -> None:
        self.ends.append(game_result)
