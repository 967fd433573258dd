"""`fault_tasks` for bots: a module of its own, because python-sc2 takes long to import."""

from __future__ import annotations

from fault_tasks import await_cancelled

from sc2pool.tasks.minigames.move_to_beacon_bot import MoveToBeaconBot


class ShortBot(MoveToBeaconBot):
    """Episodes of five steps."""

    max_loops = 40


class CancelledBot(MoveToBeaconBot):
    """Awaits something of its own that is cancelled."""

    async def on_step(self, iteration: int) -> None:
        await super().on_step(iteration)
        await await_cancelled()
