"""`fault_tasks` for bots: a module of its own, for python-sc2 takes long to import."""

from __future__ import annotations

from sc2pool.tasks.minigames.move_to_beacon_bot import MoveToBeaconBot


class ShortBot(MoveToBeaconBot):
    """Episodes of five steps."""

    max_loops = 40
