"""Bots that do harm, as in `fault_tasks`; a separate module, because python-sc2 imports slowly."""

from __future__ import annotations

from fault_tasks import await_cancelled

from sc2pool.tasks.minigames.move_to_beacon_bot import MoveToBeaconBot


class ShortBot(MoveToBeaconBot):
    """Episodes of five steps."""

    max_loops = 40


class CancelledBot(MoveToBeaconBot):
    """A bot that awaits its own future, which is cancelled."""

    async def on_step(self, iteration: int) -> None:
        await super().on_step(iteration)
        await await_cancelled()
