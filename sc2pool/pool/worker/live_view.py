"""A worker's part of the window: it puts the newest observation where onlookers find it.

    thread: does anyone ask? (a `stat`, once a second) ─► event loop: show, some times a second

Why a thread: the worker's event loop may be blocked in for as long as steps go on, so a timer of
its own would not ring; a call from another thread wakes it in any case. Rules: with nobody asking
the step path knows nothing of this; the game's messages are only ever read in the loop's thread;
what cannot be shown is no fault of the game or of the worker.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

from sc2pool.pool.report import live_files
from sc2pool.tasks.player import Player

log = logging.getLogger("sc2pool")

LOOK_EVERY_S = 1.0
SHOW_EVERY_S = 0.25


class LiveView:
    """Shows one worker's player.

    Args:
        directory: the instance's folder, inside the run's.
        player: the player, as soon as there is one.
    """

    def __init__(self, directory: Path, player: Callable[[], Player | None]) -> None:
        self._directory = directory
        self._player = player
        self._under_way = threading.Event()
        self._broken = False
        self._shown_map: object = None
        self._map_key = ""

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Look from now on, until the process ends."""
        thread = threading.Thread(
            target=self._run, args=(loop,), name="sc2pool-showing", daemon=True
        )
        thread.start()

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        while not self._broken:
            asked = live_files.is_asked(self._directory.parent)
            if asked and not self._under_way.is_set():  # a busy loop is not called twice
                self._under_way.set()
                try:
                    loop.call_soon_threadsafe(self._show)
                except RuntimeError:
                    return  # the loop is closed: the worker ends
            time.sleep(SHOW_EVERY_S if asked else LOOK_EVERY_S)

    def _show(self) -> None:
        try:
            self._show_newest()
        except Exception:
            self._broken = True
            log.exception("the newest observation could not be shown")
        finally:
            self._under_way.clear()

    def _show_newest(self) -> None:
        player = self._player()
        latest_view = None if player is None else player.latest_view()
        if latest_view is None:
            return
        # Only now: a worker without a game never loads the protocol.
        from sc2pool.tasks.players.view import map_of, view_of  # noqa: PLC0415

        observation, game_info = latest_view
        if game_info is not self._shown_map:
            self._shown_map = game_info
            shown = map_of(game_info)
            if shown["key"] != self._map_key:
                self._map_key = shown["key"]
                live_files.show(self._directory / live_files.MAP_FILE, shown)
        view = {**view_of(observation), "map": self._map_key}
        live_files.show(self._directory / live_files.VIEW_FILE, view)
