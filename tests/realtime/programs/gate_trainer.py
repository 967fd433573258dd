"""Starts a program, pauses it, prints its pids, and waits to be killed: `gate_trainer.py HOW`.

The program is a live game with a pause key if HOW is "by key", else a program with a child process.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import psutil
from live_game import LiveGame
from realtime_tasks import start_family

from sc2pool.realtime.gate import PauseGate

game: Any = LiveGame() if sys.argv[1] == "by key" else start_family(1)
keys = {}
if sys.argv[1] == "by key":
    keys = {"pause": game.press_p, "resume": game.press_p, "ticks": game.read_tick}
gate = PauseGate(game.pid, **keys)
if sys.argv[1] != "never paused":
    gate.pause()
if sys.argv[1] == "resumed":
    gate.resume()
family = [game.pid, *(child.pid for child in psutil.Process(game.pid).children())]
print(json.dumps({"stage": "waiting", "children": family}), flush=True)
time.sleep(600)
