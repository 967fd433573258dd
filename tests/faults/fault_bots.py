"""Bots that do harm. They are not in `fault_tasks`, because python-sc2 takes long to import."""

from __future__ import annotations

from fault_tasks import await_cancelled

from sc2pool.tasks.minigames.move_to_beacon_bot import MoveToBeaconBot


class ShortBot(MoveToBeaconBot):
    """A bot whose episodes have five steps."""

    max_loops = 40


class CancelledBot(MoveToBeaconBot):
    """A bot that awaits its own future, which is cancelled."""

    async def on_step(self, iteration: int) -> None:
        await super().on_step(iteration)
        await await_cancelled()
