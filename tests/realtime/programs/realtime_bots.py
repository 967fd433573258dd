"""Bots and a task that report events in their infos, and opponents that note their turns.

These classes are not in `realtime_tasks`, whose workers need no python-sc2.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from s2clientprotocol import debug_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb
from sc2.bot_ai import BotAI
from sc2.data import Result

from sc2pool.tasks.bot import RLBotAI
from sc2pool.tasks.minigames.move_to_beacon_bot import MoveToBeaconBot
from sc2pool.tasks.task import Task
from sc2pool.units import Kind, select


class RealtimeBot(MoveToBeaconBot):
    """A bot whose info has python-sc2's events; its last action kills the bot's marine."""

    DIE = 7
    step_mul = 8

    async def on_start(self) -> None:
        await super().on_start()
        self.marine = self.units[0].tag
        self.destroyed: list[int] = []
        self.over = ""

    async def on_unit_destroyed(self, unit_tag: int) -> None:
        self.destroyed.append(unit_tag)

    async def on_end(self, game_result: Result) -> None:
        self.over = str(game_result)
        await super().on_end(game_result)

    async def act(self, action: int) -> None:
        super().act(action)
        if action == self.DIE:
            await self.client.debug_kill_unit([self.marine])

    def info(self) -> dict[str, Any]:
        return {
            "loop": self.state.game_loop,
            "realtime": self.realtime,
            "marine": self.marine,
            "destroyed": self.destroyed,
            "over": self.over,
        }


OWN_MARINES = Kind("Marine")

turns: list[int] = []
"""The game loops at which the opponent in this process acted."""


class TellsLoops(Task):
    """A task in which both sides stand still. The last action kills the marines of its own side."""

    DIE: ClassVar[int] = 1
    map_name: ClassVar[str] = "MarineDuel"
    players: ClassVar[int] = 2
    step_mul: ClassVar[int] = 8
    disable_fog: ClassVar[bool] = True
    action_space = spaces.Discrete(2)
    observation_space: spaces.Box = spaces.Box(0, 10_000, (1,), np.float32)

    def observe(self) -> Any:
        return np.array([self.lazy_observation.game_loop], np.float32)

    async def act(self, action: int) -> None:
        if action == self.DIE:
            (own,) = select(self.lazy_observation, OWN_MARINES)
            kill = debug_pb2.DebugKillUnit(tag=own.tags)
            order = debug_pb2.DebugCommand(kill_unit=kill)
            await self.game.request(sc_pb.Request(debug=sc_pb.RequestDebug(debug=[order])))

    def info(self) -> dict[str, Any]:
        return {
            "loop": self.lazy_observation.game_loop,
            "delay_s": self.delay_s,
            "turns": len(turns),
            "loops_of_turns": list(turns),
        }


class TellsLoopsBot(RLBotAI):
    """A bot like `TellsLoops`, but without the action that kills marines."""

    map_name: ClassVar[str] = "MarineDuel"
    players: ClassVar[int] = 2
    step_mul: ClassVar[int] = 8
    action_space = spaces.Discrete(2)
    observation_space: spaces.Box = spaces.Box(0, 10_000, (1,), np.float32)

    def observe(self) -> Any:
        return np.array([self.state.game_loop], np.float32)

    def act(self, action: int) -> None:
        """Stand still."""

    def info(self) -> dict[str, Any]:
        return {
            "loop": self.state.game_loop,
            "delay_s": self.delay_s,
            "turns": len(turns),
        }


def decide(observation: Any) -> int:
    """An opponent that does nothing, and notes the loops of its turns."""
    turns.append(int(observation[0]))
    return 0


class CountingBot(BotAI):
    """A bot that does nothing, and notes the loops of its turns."""

    async def on_start(self) -> None:
        turns.clear()

    async def on_step(self, iteration: int) -> None:
        turns.append(self.state.game_loop)
