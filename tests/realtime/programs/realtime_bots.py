"""A bot that is played here; apart from the tasks, whose workers need no python-sc2."""

from __future__ import annotations

from typing import Any

from sc2.data import Result

from sc2pool.tasks.minigames.move_to_beacon_bot import MoveToBeaconBot


class RealtimeBot(MoveToBeaconBot):
    """A bot that tells what python-sc2 tells it; with the last action its marine dies."""

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
