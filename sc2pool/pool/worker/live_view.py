"""A worker's live files: the newest observation of each game, while they are requested.

    thread: are they requested? (a `stat`, once a second) ─► event loop: write, four times a second

Why a thread: while steps go on, the worker's event loop may never get to a timer of its own; a call
from another thread always wakes it. Rules: without a request the step path does nothing for this;
the game's messages are read in the loop's thread only; an observation that cannot be written is no
fault of the game or of the worker.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from weakref import WeakKeyDictionary

from sc2pool.pool.report import live_files
from sc2pool.processes.shortage import start_thread
from sc2pool.tasks.player import Player

log = logging.getLogger("sc2pool")

_POLL_INTERVAL_S = 1.0
_WRITE_EVERY_S = 0.25


class LiveView:
    """Writes the live files of one worker.

    Args:
        players: returns the players that there are, each with the folder of its instance.
    """

    def __init__(self, run: Path, players: Callable[[], Sequence[tuple[Path, Player]]]) -> None:
        self._run = run
        self._players = players
        self._under_way = threading.Event()
        self._broken = False
        self._maps: WeakKeyDictionary[Player, tuple[object, str]] = WeakKeyDictionary()
        """The map that was written for each player, and its key."""

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to look for requests; it goes on until the process ends."""
        start_thread(self._poll, "sc2pool-live-view", loop)

    def _poll(self, loop: asyncio.AbstractEventLoop) -> None:
        while not self._broken:
            requested = live_files.is_requested(self._run)
            if requested and not self._under_way.is_set():  # a busy loop is not called twice
                self._under_way.set()
                try:
                    loop.call_soon_threadsafe(self._write)
                except RuntimeError:
                    return  # the loop is closed: the worker ends
            time.sleep(_WRITE_EVERY_S if requested else _POLL_INTERVAL_S)

    def _write(self) -> None:
        try:
            for directory, player in self._players():
                self._write_newest(directory, player)
        except Exception:
            self._broken = True
            log.exception("the newest observation could not be written")
        finally:
            self._under_way.clear()

    def _write_newest(self, directory: Path, player: Player) -> None:
        latest_view = player.latest_view()
        if latest_view is None:
            return
        # Only now: a worker without a game never loads the protocol.
        from sc2pool.tasks.players.view import map_of, view_of  # noqa: PLC0415

        observation, game_info = latest_view
        written_map, key = self._maps.get(player, (None, ""))
        if game_info is not written_map:
            described = map_of(game_info)
            self._maps[player] = game_info, described["key"]
            if described["key"] != key:
                key = described["key"]
                live_files.write(directory / live_files.MAP_FILE, described)
        view = {**view_of(observation), "map": key}
        live_files.write(directory / live_files.VIEW_FILE, view)
