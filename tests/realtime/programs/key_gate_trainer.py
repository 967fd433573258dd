"""Pauses a live game by its key, prints its pid, and waits to be killed."""

from __future__ import annotations

import json
import time

from live_game import LiveGame

from sc2pool.realtime.gate import PauseGate

game = LiveGame()
gate = PauseGate(game.pid, pause=game.press_p, resume=game.press_p, ticks=game.read_tick)
gate.pause()
print(json.dumps({"stage": "paused", "children": [game.pid], "tick": game.tick}), flush=True)
time.sleep(600)
